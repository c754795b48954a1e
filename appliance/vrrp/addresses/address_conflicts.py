"""Watches for other machines that use the router id or an address of one virtual router wrongly.

It collects what the sockets report: adverts that were dropped, answers to ARP and neighbour discovery, and
addresses on this machine that are not ours. Before the first claim a conflict may keep the router from
becoming active, depending on the operator's `on_conflict`; afterwards it is only logged and shown in the
status.
"""

from collections.abc import Callable, Collection

from appliance.core.vrrp.advert_rules import bare
from appliance.core.vrrp.conflicts import Conflict, Conflicts
from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link
from appliance.vrrp.addresses.claim_probe import ClaimProbe
from appliance.vrrp.addresses.neighbour_queries import AskedAddress, AskingInterface
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment
from appliance.vrrp.sockets.advert_receiver import AdvertDeviation, DroppedAdvert
from appliance.wire.vrrp.advertisement import Advertisement


class ConflictWatch:
    """The conflicts of one virtual router; each report calls `on_found` with its name and the time."""

    def __init__(self, router: VirtualRouter, environment: RouterEnvironment) -> None:
        self.conflicts = Conflicts(router.on_conflict, advert=router.advert)
        self.on_found: Callable[[str, float], None] | None = None
        self._router = router
        self._environment = environment
        self._probe: ClaimProbe | None = None
        self._asked = frozenset[AskedAddress]()
        self._own_mac = b""
        self._index = 0

    @property
    def deadline(self) -> float | None:
        """Return when the next probe is due, None without a probe."""
        return self._probe.deadline if self._probe else None

    def tick(self, now: float) -> None:
        """Send the probes that are due."""
        if self._probe is not None and (at := self._probe.deadline) is not None and now >= at:
            self._probe.tick(now)

    def reconfigure(self, router: VirtualRouter) -> None:
        """Use a new configuration; a router that was refused may try again."""
        self._router = router
        self.conflicts.policy, self.conflicts.advert = router.on_conflict, router.advert
        self.conflicts.refused = False

    def probe(self, link: Link, now: float) -> None:
        """Probe for the addresses until some router is active; raises OSError."""
        self._index = link.index
        if self._probe is None:
            self._probe = ClaimProbe(
                self._router,
                loop=self._environment.loop,
                closer=self._environment.closer,
                mac=link.mac,
                now=now,
                on_answer=self._answered_probe,
                open_claims=self._environment.open_claims,
            )

    def ask(self, link: Link, *, source: str, own_mac: bytes, now: float) -> AskingInterface:
        """Ask while active, until `stop_asking`, whether another machine answers for the addresses.

        `own_mac` is the hardware address of the addresses. Return the interface that is asked on.
        """
        via = AskingInterface(interface=link.name, index=link.index, mac=link.mac, source=source)
        self._own_mac, self._index = own_mac, link.index
        questions, before = self._environment.asking, self._asked
        self._asked = frozenset(
            questions.begin(address, via, self._answered_question, now) for address in bare(self._router.here)
        )
        for each in before - self._asked:
            questions.end(each, self._answered_question)
        return via

    def stop_asking(self) -> None:
        """End `ask`; harmless when repeated."""
        for each in self._asked:
            self._environment.asking.end(each, self._answered_question)
        self._asked = frozenset()

    def close(self) -> None:
        """End `probe`; harmless when repeated."""
        if self._probe is not None:
            self._probe.close()
            self._probe = None

    # What the sockets report

    def valid(self, peer: str, *, interval: float, now: float) -> None:
        """Note a valid advertisement: there is an active router, so answers for the addresses are right."""
        self.conflicts.valid(peer, interval=interval, now=now)
        if self._probe is not None:
            self.close()

    def claimed(self) -> None:
        """Note that this router has become active: from now on conflicts are only logged and shown."""
        self.conflicts.claimed()
        self.close()

    def dropped(self, dropped: DroppedAdvert, now: float) -> None:
        """Note an advertisement with our router id that was dropped."""
        if dropped.reason is DropReason.NOT_A_PEER and self._is_peer_of_another(dropped.peer):
            return
        advertisement = dropped.advertisement
        conflict = self.conflicts.dropped(
            dropped.reason,
            peer=dropped.peer,
            detail=_detail(dropped.reason, advertisement),
            interval=advertisement.interval if advertisement else 0.0,
            now=now,
        )
        self._report(conflict, now)

    def deviated(self, deviation: AdvertDeviation, now: float) -> None:
        """Note an advertisement that differs from ours but was used: this is only logged."""
        advertisement = deviation.advertisement
        self._log(
            self.conflicts.deviated(
                deviation.reason,
                peer=deviation.peer,
                detail=_detail(deviation.reason, advertisement),
                interval=advertisement.interval,
                now=now,
            )
        )

    def foreign(self, places: Collection[tuple[str, str]], now: float) -> None:
        """Store the interfaces of this machine that carry one of our addresses though we did not add it.

        Each place is an interface and its address; a new one is logged.
        """
        for conflict in self.conflicts.foreign(places, now=now):
            self._log(conflict)

    def _is_peer_of_another(self, peer: str) -> bool:
        """Return whether it is a unicast peer of another virtual router on this interface, with this id."""
        ours = self._router
        return any(
            peer in each.peers
            and (each.router_id, each.interface, each.family) == (ours.router_id, ours.interface, ours.family)
            for each in self._environment.routers()
        )

    def _answered_probe(self, mac: bytes, address: str, now: float) -> None:
        self._in_use(mac, address, interval=self._probe.interval if self._probe else 0.0, now=now)

    def _answered_question(self, mac: bytes, asked: AskedAddress, now: float) -> None:
        # By default Linux answers ARP on every interface for the addresses of all others (arp_ignore 0), so
        # an answer from another interface of this machine is no conflict. But a macvlan never receives the
        # broadcasts of its own machine: an answer from our virtual MAC comes from another machine with the
        # same MAC.
        from_our_virtual_mac = self._router.virtual_mac and mac == self._own_mac
        if from_our_virtual_mac or not self._environment.links.has_mac(mac):
            self._in_use(mac, asked.address, interval=self._environment.asking.interval, now=now)

    def _in_use(self, mac: bytes, address: str, *, interval: float, now: float) -> None:
        conflict = self.conflicts.answered(mac.hex(":"), address=address, interval=interval, now=now)
        if conflict is not None and (names := self._other_addresses_of(mac, now)):
            conflict = self.conflicts.explain(conflict, f"{address}, by {names}")
        self._report(conflict, now)

    def _other_addresses_of(self, mac: bytes, now: float) -> str:
        """Return the other addresses at which this machine knows a neighbour, "" for none."""
        virtual = frozenset(bare(self._router.addresses))
        try:
            known = self._environment.neighbours.addresses_of(self._index, mac, now)
        except OSError:  # then the log shows only the hardware address
            return ""
        return ", ".join(each for each in known if each not in virtual)

    def _report(self, conflict: Conflict | None, now: float) -> None:
        """Log a conflict if it is new; a lasting one may also keep the router from claiming."""
        self._log(conflict)
        if self.on_found is not None:
            self.on_found(self._router.name, now)

    def _log(self, conflict: Conflict | None) -> None:
        if conflict is not None:
            self._environment.log.warning(
                "address-conflict",
                router=self._router.name,
                kind=conflict.kind.value,
                peer=conflict.peer,
                detail=conflict.detail,
            )


def _detail(reason: DropReason, advertisement: Advertisement | None) -> str:
    """Return how an advertisement is wrong, and what of it could be decoded."""
    if advertisement is None:
        return reason.value
    addresses = ", ".join(advertisement.addresses)
    return f"{reason}, version {advertisement.version}, priority {advertisement.priority}, {addresses}"
