"""Our part in one virtual router, keepalived's `vrrp_instance`: its election and all that belongs to it.

The election decides and returns effects; its group performs them on the instance (`election_effects`). While
there is a fault in `faults` the election is in FAULT. An error in one instance does not affect another.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from appliance.core.tracking.priority import Priority, TrackResult
from appliance.core.vrrp.advert_rules import bare
from appliance.core.vrrp.election import OWNER, Election, ElectionSettings, ReceivedAdvert
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link
from appliance.vrrp.addresses.address_conflicts import ConflictWatch
from appliance.vrrp.addresses.address_holder import AddressHolder
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.instance.faults import FaultReason, Faults, RefusedOperation
from appliance.vrrp.instance.gratuitous_arp import GratuitousArp
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment
from appliance.vrrp.instance.tracked_priority import TrackedPriority
from appliance.vrrp.sockets import interface_addresses
from appliance.vrrp.sockets.advert_receiver import DroppedAdvert
from appliance.vrrp.sockets.instance_sockets import InstancePort, PortOpening
from appliance.wire import literal

_RETRY: Final = 1.0  # seconds until a refused operation is tried again


class VrrpInstance:
    """One virtual router here.

    Its group sets `on_readable`, called when its socket can be read, and `on_return`, called when a peer
    answers again while this router is active; both get the router's name and the time.
    """

    def __init__(self, router: VirtualRouter, environment: RouterEnvironment) -> None:
        self.router = router
        self.name = router.name
        self.virtual = frozenset(bare(router.addresses))
        self.counters = RouterCounters()
        self.faults = Faults()
        self.election = Election(_settings(router, own=b""))
        self.tracked = TrackedPriority(router, self.election, self.faults, environment.log)
        self.election.priority = self.priority.value
        self.retry_at: float | None = None
        self.on_readable: Callable[[str, float], None] | None = None
        self.on_return: Callable[[str, float], None] | None = None
        self._environment = environment
        self.holder = AddressHolder(router, environment, self.counters, on_error=self._refused)
        self.conflict_watch = ConflictWatch(router, environment)
        self.port = InstancePort(
            router,
            environment,
            faults=self.faults,
            holder=self.holder,
            on_readable=self._readable,
            on_drop=self._dropped,
            on_deviation=self.conflict_watch.deviated,
        )
        self.announcer = GratuitousArp(router.announce, self.port, self.counters, on_error=self._refused)
        if environment.missing:
            self.faults.add(FaultReason.CAPABILITIES, f"missing {', '.join(environment.missing)}")

    @property
    def priority(self) -> Priority:
        """Return the effective priority with its parts."""
        return self.tracked.priority

    @property
    def settings(self) -> ElectionSettings:
        """Return the present settings for the election; the source address comes with the sockets."""
        source = self.port.source
        return _settings(self.router, own=literal.packed(source) if source else b"")

    # The interface

    def concerns(self, link: Link | None) -> bool:
        """Return whether to call `update_link`: not if only virtual addresses of the interface changed."""
        if self.faults or self.port.others != self.port.others_now():
            return True
        return interface_addresses.without_virtual(link) != interface_addresses.without_virtual(
            self.port.link
        )

    def update_link(self, link: Link | None, now: float) -> None:
        """Store the state of the interface, None while there is none, and open sockets that fit it."""
        self.port.link = link
        self.find_foreign_addresses(now)
        self._opened(self.port.update_link(link, now), now)

    def find_foreign_addresses(self, now: float) -> None:
        """Look for virtual addresses on this machine that we did not add, such as ones added manually."""
        # RFC 9568 section 1.7: the owner (priority 255) has the addresses as its interface's real ones.
        unconcerned = self.port.link is None or self.router.priority == OWNER
        places = () if unconcerned else interface_addresses.foreign_places(self.router, self._environment)
        self.conflict_watch.foreign(places, now)

    def _opened(self, opening: PortOpening, now: float) -> None:
        if opening is PortOpening.OPENED and self.holder.held:
            self.ask_for_others(now)
        elif opening is PortOpening.REFUSED:
            self.retry_at = now + _RETRY

    # What it receives

    def receive(self, now: float) -> Iterator[ReceivedAdvert]:
        """Yield the received valid advertisements, for the election."""
        if self.port.open_port is None:
            return
        wall = time.time()  # shown to operators as the time a peer was last received
        try:
            for heard in self.port.open_port.receive(now):
                self.counters.heard(heard.peer, heard.priority, now=now, wall=wall)
                self.conflict_watch.valid(heard.peer, interval=heard.interval, now=now)
                yield heard
        except OSError as error:
            self._refused(RefusedOperation.RECEIVE, error)

    def probe(self, now: float) -> None:
        """Probe for the addresses before the first claim, until a router is active."""
        if self.port.link is None or self.port.open_port is None or not self.router.here:
            return
        try:
            self.conflict_watch.probe(self.port.link, now)
        except OSError as error:
            self._refused(RefusedOperation.PROBE, error)

    def ask_for_others(self, now: float) -> None:
        """Ask from now on, while active, which others answer for the addresses, and whether the peers do."""
        link, source = self.port.link, self.port.source
        if link is None or source is None:
            return
        own_mac = self.holder.interface.mac if self.holder.interface else b""
        via = self.conflict_watch.ask(link, source=source, own_mac=own_mac, now=now)
        known = self.router.peers or [each for each in self.counters.peers if each != source]
        # A peer behind a router never answers ARP. An owner's address is virtual, so already asked for.
        on_link = [each for each in known if interface_addresses.on_link(link, each)]
        peers = [each for each in on_link if each not in self.virtual]
        self._environment.returns.begin(self.name, peers, via, self._peer_returned, now)

    def stop_asking(self) -> None:
        """End `ask_for_others`; harmless when repeated."""
        self.conflict_watch.stop_asking()
        self._environment.returns.end(self.name)

    def _readable(self) -> None:
        if self.on_readable is not None:
            self.on_readable(self.name, time.monotonic())

    def _peer_returned(self, now: float) -> None:
        if self.on_return is not None:
            self.on_return(self.name, now)

    def _dropped(self, dropped: DroppedAdvert, now: float) -> None:
        if self.counters.dropped(dropped.reason, dropped.peer):
            self._environment.log.warning(
                "drop", router=self.name, reason=dropped.reason.value, peer=dropped.peer
            )
        self.conflict_watch.dropped(dropped, now)

    # What it does

    def send(self, priority: int, now: float) -> None:
        """Send one advertisement."""
        if self.port.open_port is None:
            return
        try:
            self.port.open_port.send(priority)
        except OSError as error:
            self._refused(RefusedOperation.SEND, error)
            return
        self.counters.sent(priority, now=now)

    def release(self) -> None:
        """Stop announcing, and remove the addresses from the interface."""
        self.announcer.end()
        self.holder.release()

    def leave_to_successor(self, addresses: Iterable[str]) -> None:
        """Close the sockets, and leave the given addresses to the instance that replaces this one."""
        self.holder.leave_to_successor(addresses)
        self.close()
        self.holder.disown()

    def could_not_take(self, error: OSError, now: float) -> None:
        """Note that the addresses could not be added, and when to try again."""
        self.faults.add(FaultReason.ADDRESSES, f"the addresses cannot be added: {error.strerror or error}")
        self.retry_at = now + _RETRY

    def may_restore(self, count: int, now: float) -> bool:
        """Count addresses that others removed; return False to delay restoring, as two programs may fight."""
        self.counters.restored += count
        if self.holder.may_restore(now):
            return True
        self.retry_at = now + _RETRY
        return False

    def reconfigure(self, router: VirtualRouter, now: float) -> None:
        """Use other parameters of the same virtual router; raises OSError.

        An active adds its new addresses at once. `AddressHolder.remove_surplus` removes the old ones later,
        when the router that gets them has them.
        """
        before, self.router = self.router, router
        self.holder.reconfigure(router)
        self.port.router = self.tracked.router = router
        self.virtual = frozenset(bare(router.addresses))
        self.announcer.reconfigure(router.announce, now)
        self.conflict_watch.reconfigure(router)
        self.find_foreign_addresses(now)
        self.faults.remove(FaultReason.CONFLICT)
        self._opened(self.port.open(now), now)
        if not self.holder.held:
            return
        if (before.addresses, before.elsewhere) != (router.addresses, router.elsewhere):
            self.holder.take(now)
            self.announcer.begin(router.announce.repeat, now)
        else:
            self.holder.routes.take(now)

    def close(self) -> None:
        """Close the sockets; addresses that are held stay on the interface."""
        self.conflict_watch.close()
        self.port.close()
        self.holder.close()

    # Deadlines

    @property
    def deadline(self) -> float | None:
        """Return when something is due besides the election's own deadline."""
        # An active needs no preparation: it has its addresses.
        prepare_at = None if self.port.prepare_at is None or self.holder.held else self.port.prepare_at
        due = [
            at
            for at in (
                self.announcer.deadline,
                self.retry_at,
                self.conflict_watch.deadline,
                prepare_at,
                self.tracked.deadline,
                self.holder.routes.deadline,
            )
            if at is not None
        ]
        return min(due) if due else None

    def tick(self, now: float) -> None:
        """Send what is due, or retry what the kernel refused."""
        self.announcer.tick(now, leaving=self.election.handing_over)
        self.conflict_watch.tick(now)
        self.holder.routes.tick(now)
        if self.port.prepare_at is not None and not self.holder.held:
            self.port.prepare_at = None
            self.holder.prepare()
        if self.retry_at is not None and now >= self.retry_at:
            self._retry(now)

    def _retry(self, now: float) -> None:
        self.retry_at = None
        self.faults.remove(FaultReason.ADDRESSES)
        self._opened(self.port.open(now), now)
        if self.holder.held:
            try:
                self.holder.take(now)
            except OSError as error:
                self.could_not_take(error, now)
                return
            self.announcer.announce(1, now)

    def resume(self, results: Mapping[str, TrackResult], *, yielded: bool) -> None:
        """Start with the state of an earlier run; `yielded` is whether an operator moved the router away."""
        self.tracked.resume(results)
        self.election.yielded = yielded

    def _refused(self, operation: RefusedOperation, error: OSError) -> None:
        """Count a refused operation, and log the first of each kind; netlink reports lasting causes."""
        self.counters.send_errors += 1
        if self.counters.first(operation.value, str(error.errno)):
            self._environment.log.warning(
                "socket-error",
                router=self.name,
                doing=operation.value,
                reason=error.strerror or str(error),
            )


def _settings(router: VirtualRouter, *, own: bytes) -> ElectionSettings:
    """Return the settings of a router for its election; `own` is its packed source address."""
    return ElectionSettings(
        version=router.version,
        router_id=router.router_id,
        priority=router.priority,
        advert=router.advert,
        preempt=router.preempt,
        preempt_delay=router.preempt_delay,
        down_timer_adverts=router.down_timer_adverts,
        own=own,
        listen=router.listen,
        hand_over=router.hand_over,
        announce=router.announce,
        informed_within=router.informed_within,
        informers=frozenset(router.informers),
    )
