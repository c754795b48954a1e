"""What one virtual router knows of others that use its router id or its addresses in another way.

Before its first claim that may keep it from claiming, as the operator's `on_conflict` says; after it the log
and the status tell it.
"""

import socket
import time
from collections.abc import Callable, Collection

from appliance.core.vrrp.advert_rules import bare
from appliance.core.vrrp.conflicts import Conflict, Conflicts
from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.netlink.links import Link
from appliance.vrrp.addresses.address_questions import AskedAddress, AskingInterface
from appliance.vrrp.addresses.claim_probe import ClaimProbe
from appliance.vrrp.instance.environment import RouterEnvironment
from appliance.vrrp.port.advert_receiver import AdvertDeviation, DroppedAdvert
from appliance.wire.vrrp.advertisement import Advertisement


class ConflictWatch:
    """The conflicts of one virtual router; `on_alarm` is called with its name whenever one is seen."""

    def __init__(self, router: VirtualRouter, environment: RouterEnvironment) -> None:
        self.conflicts = Conflicts(router.on_conflict, advert=router.advert)
        self.on_alarm: Callable[[str], None] | None = None
        self._router = router
        self._environment = environment
        self._watch: ClaimProbe | None = None
        self._asked = frozenset[AskedAddress]()
        self._own_mac = b""
        self._index = 0

    @property
    def deadline(self) -> float | None:
        """Return when the addresses are asked for next."""
        return self._watch.deadline if self._watch else None

    def tick(self, now: float) -> None:
        """Ask for the addresses, if that is due."""
        if self._watch is not None and (at := self._watch.deadline) is not None and now >= at:
            self._watch.tick(now)

    def revise(self, router: VirtualRouter) -> None:
        """Take another policy; what was refused may be tried again."""
        self._router = router
        self.conflicts.policy, self.conflicts.advert = router.on_conflict, router.advert
        self.conflicts.refused = False

    def watch(self, *, mac: bytes, loop: Loop, closer: Closer, now: float) -> None:
        """Ask whether somebody else has the addresses, until there is an active; raises OSError."""
        self._index = socket.if_nametoindex(self._router.interface)
        if self._watch is None:
            self._watch = ClaimProbe(
                self._router, loop=loop, closer=closer, mac=mac, now=now, on_answer=self._answered
            )

    def valid(self, peer: str, *, interval: float, now: float) -> None:
        """Note a valid advertisement: there is an active, whose answers are as they should be."""
        self.conflicts.valid(peer, interval=interval, now=now)
        if self._watch is not None:
            self.close()

    def claimed(self) -> None:
        """Note that this router has become active: from now on a conflict is only told."""
        self.conflicts.claimed()
        self.close()

    def ask(self, link: Link, *, source: str, interface: bytes, now: float) -> AskingInterface:
        """Ask while active, until `ask_no_more`, whether somebody else answers for the addresses.

        `interface` is the hardware address that they are at. Return where it is asked.
        """
        place = AskingInterface(interface=link.name, index=link.index, mac=link.mac, source=source)
        self._own_mac, self._index = interface, link.index
        asking, before = self._environment.asking, self._asked
        self._asked = frozenset(
            asking.begin(address, place, self._answered_besides, now)
            for address in bare(self._router.addresses)
        )
        for each in before - self._asked:
            asking.end(each, self._answered_besides)
        return place

    def ask_no_more(self) -> None:
        """End `ask`; harmless when repeated."""
        for each in self._asked:
            self._environment.asking.end(each, self._answered_besides)
        self._asked = frozenset()

    def dropped(self, dropped: DroppedAdvert) -> None:
        """Take an advertisement with our router id that was not used."""
        if dropped.reason is DropReason.NOT_A_PEER and self._is_another_s(dropped.peer):
            return
        said = dropped.said
        conflict = self.conflicts.dropped(
            dropped.reason,
            peer=dropped.peer,
            detail=_detail(dropped.reason, said),
            interval=said.interval if said else 0.0,
            now=time.monotonic(),
        )
        self._alarm(conflict)

    def deviated(self, deviation: AdvertDeviation) -> None:
        """Take an advertisement that was used all the same: that is only told."""
        said = deviation.said
        self._tell(
            self.conflicts.deviated(
                deviation.reason,
                peer=deviation.peer,
                detail=_detail(deviation.reason, said),
                interval=said.interval,
                now=time.monotonic(),
            )
        )

    def foreign(self, places: Collection[tuple[str, str]]) -> None:
        """Take on which interfaces somebody else has which of our addresses now, and tell each new one."""
        for conflict in self.conflicts.foreign(places, now=time.monotonic()):
            self._tell(conflict)

    def close(self) -> None:
        """End `watch`; harmless when repeated."""
        if self._watch is not None:
            self._watch.close()
            self._watch = None

    def _is_another_s(self, peer: str) -> bool:
        """Say whether it is a peer of another virtual router of ours with this id, on the same interface."""
        ours = self._router
        return any(
            peer in each.peers
            and (each.router_id, each.interface, each.family) == (ours.router_id, ours.interface, ours.family)
            for each in self._environment.routers()
        )

    def _answered(self, mac: bytes, address: str) -> None:
        interval = self._watch.interval if self._watch else 0.0
        self._in_use(mac, address, interval=interval)

    def _answered_besides(self, mac: bytes, asked: AskedAddress) -> None:
        """Take an answer while we are active. Other interfaces of this machine on the segment answer, too.

        A virtual MAC does not answer its own environment: with ours it is another one's.
        """
        virtual = self._router.virtual_mac and mac == self._own_mac
        if virtual or not self._environment.links.has_mac(mac):
            self._in_use(mac, asked.address, interval=self._environment.asking.interval)

    def _in_use(self, mac: bytes, address: str, *, interval: float) -> None:
        conflict = self.conflicts.answered(
            mac.hex(":"), address=address, interval=interval, now=time.monotonic()
        )
        if conflict is not None and (who := self._who(mac)):
            conflict = self.conflicts.explain(conflict, f"{address}, by {who}")
        self._alarm(conflict)

    def _who(self, mac: bytes) -> str:
        """Return by which addresses of its own this machine knows a neighbour, "" where it does not."""
        virtual = frozenset(bare(self._router.addresses))
        try:
            known = self._environment.neighbours.addresses_of(self._index, mac, time.monotonic())
        except OSError:  # told by its hardware address alone
            return ""
        return ", ".join(each for each in known if each not in virtual)

    def _alarm(self, conflict: Conflict | None) -> None:
        """Tell a conflict that is new, and have it looked at in any case."""
        self._tell(conflict)
        if self.on_alarm is not None:
            self.on_alarm(self._router.name)

    def _tell(self, conflict: Conflict | None) -> None:
        if conflict is not None:
            self._environment.log.warning(
                "address-conflict",
                router=self._router.name,
                kind=conflict.kind.value,
                peer=conflict.peer,
                detail=conflict.detail,
            )


def _detail(reason: DropReason, said: Advertisement | None) -> str:
    """Return why an advertisement is not as it should be, and what it says as far as it can be read."""
    if said is None:
        return reason.value
    addresses = ", ".join(said.addresses)
    return f"{reason}, version {said.version}, priority {said.priority}, {addresses}"
