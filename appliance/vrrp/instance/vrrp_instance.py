"""Our part in one virtual router: the sockets and addresses that its election's effects are performed on.

What keeps it from taking part is in `reasons`, by what is wrong; the election is in FAULT while there is one.
An error here is this router's alone.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from appliance.core.tracking.first_verdicts import FirstVerdicts, FirstVerdictState
from appliance.core.tracking.priority import MissingVerdict, Priority, TrackResult, effective_priority
from appliance.core.vrrp.advert_rules import bare
from appliance.core.vrrp.announcement_times import AnnouncementTimes
from appliance.core.vrrp.election import OWNER, Election, ElectionSettings, Heard, RouterState
from appliance.core.vrrp.timers import ClaimHold
from appliance.model.snapshot.virtual_router import Track, TrackKind, VirtualRouter
from appliance.net.netlink.links import Link
from appliance.vrrp.addresses.address_conflicts import ConflictWatch
from appliance.vrrp.addresses.address_holder import AddressHolder
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.instance.counters import RouterCounters
from appliance.vrrp.instance.environment import RouterEnvironment
from appliance.vrrp.port import interface_addresses
from appliance.vrrp.port.advert_receiver import DroppedAdvert
from appliance.vrrp.port.router_sockets import RouterSockets, basis
from appliance.vrrp.router_terms import terms
from appliance.wire import literal

_TRY_AGAIN: Final = 1.0  # seconds until what the kernel refused is tried again


class VrrpInstance:
    """One virtual router here.

    Its group sets `on_readable`: its socket has something to `receive`; and `on_return`: another router is to
    be reached again while it is active.
    """

    def __init__(self, router: VirtualRouter, environment: RouterEnvironment) -> None:
        self.router = router
        self.name = router.name
        self.virtual = frozenset(bare(router.addresses))
        self.counters = RouterCounters()
        self.reasons: dict[str, str] = {}
        self.results: dict[str, TrackResult] = {}
        self.verdicts = FirstVerdicts()
        self.link: Link | None = None
        self.retry_at: float | None = None
        self._environment = environment
        self.on_readable: Callable[[str], None] | None = None
        self.on_return: Callable[[str], None] | None = None
        self._port: RouterSockets | None = None
        self._opened: object = None
        self._reached = frozenset[str]()
        self._prepare_at: float | None = None
        self.holder = AddressHolder(router, environment, self.counters, on_trouble=self._troubled)
        self.conflict_watch = ConflictWatch(router, environment)
        self._announcing = AnnouncementTimes(router.announce)
        self.priority = self._weighed()
        self.election = Election(terms(router, own=b""), priority=self.priority.value)
        if environment.missing:
            self.reasons["capabilities"] = f"missing {', '.join(environment.missing)}"

    # The interface

    def concerns(self, link: Link | None) -> bool:
        """Say whether to `look`: virtual IPs of this node that come and go change nothing for the others."""
        return bool(self.reasons) or interface_addresses.essence(link) != interface_addresses.essence(
            self.link
        )

    def look(self, link: Link | None) -> None:
        """Take the state of the interface, None while there is none, and have sockets that fit it."""
        self.link = link
        self.look_for_foreign()
        if link is None:
            self._fail("interface", f"interface {self.router.interface} does not exist")
            self._close_port()
        elif not link.up:
            self._fail("interface", f"interface {self.router.interface} is down or has no carrier")
        else:
            self.reasons.pop("interface", None)
            self.open_port()

    def look_for_foreign(self) -> None:
        """Tell of addresses of ours that somebody else has put on this machine, by hand perhaps."""
        # The owner's addresses (RFC 9568, priority 255) are the interface's own.
        idle = self.link is None or self.router.priority == OWNER
        places = () if idle else interface_addresses.foreign_places(self.router, self._environment)
        self.conflict_watch.foreign(places)

    def open_port(self) -> None:
        """Open the sockets, or open them again where the interface is another one now."""
        if self.link is None or self._environment.missing:
            return
        kept = self._port.source if self._port and self._port.of == basis(self.router) else None
        source = interface_addresses.source(self.router, self.link, kept=kept)
        if source is None:
            self._fail("source", f"{self.router.interface} has no IPv{self.router.family} address of its own")
            return
        self.reasons.pop("source", None)
        has_source = interface_addresses.has(self.link, source)
        wanted = (self.link.index, self.link.mac, source, has_source, basis(self.router))
        if self._port is not None and self._opened == wanted:
            self.reasons.pop("socket", None)
            self._look_for_routes(self.link)
            return
        try:
            interface, port = self._make_port(self.link, source)
        except OSError as error:
            # The sockets that it had stay for its last word: that it leaves.
            reason = f"cannot speak from {source} on {self.router.interface}: {error.strerror or error}"
            self._fail("socket", reason)
            self.retry_at = time.monotonic() + _TRY_AGAIN
            return
        self._close_port()
        self.holder.interface, self._port = interface, port
        self._opened, self._reached, self._prepare_at = (
            wanted,
            interface_addresses.reached(self.router, self.link),
            None,
        )
        self.reasons.pop("socket", None)
        self._environment.loop.read(self._port.fileno(), self._readable)
        if self.holder.held:
            self.ask_for_others(time.monotonic())

    def _make_port(self, link: Link, source: str) -> tuple[AddressInterface, RouterSockets]:
        environment = self._environment
        interface = AddressInterface(
            self.router, link, source=source, addresses=environment.addresses, requests=environment.requests
        )
        port = RouterSockets(
            self.router,
            interface=interface,
            source=source,
            closer=environment.closer,
            on_drop=self._dropped,
            on_deviation=self.conflict_watch.deviated,
        )
        return interface, port

    def _look_for_routes(self, link: Link) -> None:
        """Have what a claim needs made ready again, soon, if its addresses need another route by now."""
        reached = interface_addresses.reached(self.router, link)
        if reached != self._reached:
            self._reached, self._prepare_at = reached, time.monotonic()

    # What it hears

    def receive(self, now: float) -> Iterator[Heard]:
        """Yield what is to be told to the election."""
        if self._port is None:
            return
        wall = time.time()
        try:
            for heard in self._port.receiver.receive():
                self.counters.heard(heard.peer, heard.priority, now=now, wall=wall)
                self.conflict_watch.valid(heard.peer, interval=heard.interval, now=now)
                yield heard
        except OSError as error:
            self._troubled("receive", error)

    def watch(self, now: float) -> None:
        """Ask whether somebody else has the addresses, until there is an active."""
        if self.link is None or self._port is None:
            return
        loop, closer = self._environment.loop, self._environment.closer
        try:
            self.conflict_watch.watch(mac=self.link.mac, loop=loop, closer=closer, now=now)
        except OSError as error:
            self._troubled("watch", error)

    def ask_for_others(self, now: float) -> None:
        """Ask from now on, while active, whether somebody else answers for the addresses."""
        if self.link is not None and self.source is not None:
            interface = self.holder.interface.mac if self.holder.interface else b""
            place = self.conflict_watch.ask(self.link, source=self.source, interface=interface, now=now)
            known = self.router.peers or [each for each in self.counters.peers if each != self.source]
            # A peer behind a router never answers, and the owner's address (RFC 9568) is asked for already.
            peers = [each for each in known if interface_addresses.on_link(self.link, each)]
            others = [each for each in peers if each not in self.virtual]
            self._environment.returns.begin(self.name, others, place, self._back, now)

    def ask_no_more(self) -> None:
        """End `ask_for_others`; harmless when repeated."""
        self.conflict_watch.ask_no_more()
        self._environment.returns.end(self.name)

    def _back(self) -> None:
        if self.on_return is not None:
            self.on_return(self.name)

    def _dropped(self, dropped: DroppedAdvert) -> None:
        if self.counters.dropped(dropped.reason, dropped.peer):
            self._environment.log.warning(
                "drop", router=self.name, reason=dropped.reason.value, peer=dropped.peer
            )
        self.conflict_watch.dropped(dropped)

    # What it does

    @property
    def deadline(self) -> float | None:
        """Return when something besides the election is due."""
        rest = self._port.announcing.deadline if self._port else None
        prepare = None if self.holder.held else self._prepare_at  # who has the addresses has no use for it
        overdue = self.verdicts.deadline
        due = (self._announcing.deadline, rest, self.retry_at, self.conflict_watch.deadline, prepare, overdue)
        return min((at for at in due if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Announce, or try again what the kernel refused."""
        # While leaving the successor may have announced itself: ours would call its clients back.
        if (repeat := self._announcing.due(now)) and not self.election.handing_over:
            self._announce(repeat, now)
        self._announce_rest(now)
        self.conflict_watch.tick(now)
        if self._prepare_at is not None and not self.holder.held:
            self._prepare_at = None
            self.holder.prepare()
        if self.retry_at is not None and now >= self.retry_at:
            self.retry_at = None
            self.reasons.pop("addresses", None)
            self.open_port()
            self._take_again(now)

    def send(self, priority: int, now: float) -> None:
        """Send one advertisement."""
        if self._port is None:
            return
        try:
            self._port.sender.send(priority)
        except OSError as error:
            self._troubled("send", error)
            return
        self.counters.sent(priority, now=now)

    def take(self) -> None:
        """Put the addresses on the interface; raises OSError."""
        if self.link is None:
            raise OSError(f"interface {self.router.interface} does not exist")
        self.holder.take()

    def release(self) -> None:
        """Remove the addresses from the interface."""
        self._announcing.end()
        if self._port is not None:
            self._port.announcing.clear()
        self.holder.release()

    def hand_on(self, addresses: Iterable[str]) -> None:
        """Let go of the sockets, and leave these addresses to who takes this one's place."""
        self.holder.hand_on(addresses)
        self.close()
        self.holder.forget()

    def announce(self, repeat: int, now: float) -> None:
        """Announce the addresses, and plan what follows."""
        self._announce(repeat, now)
        self._announcing.begin(now)

    def could_not_take(self, error: OSError, now: float) -> None:
        """Take note that the addresses are not there, and when that is tried again."""
        self._fail("addresses", f"the addresses cannot be taken: {error.strerror or error}")
        self.retry_at = now + _TRY_AGAIN

    def ask_verdicts(self, now: float) -> None:
        """Hold a claim back until everything that is tracked has a verdict; one that serves goes on."""
        if self.election.state is RouterState.ACTIVE:
            self.verdicts.stop_waiting()
        else:
            self.verdicts.wait_for(self._unjudged, now)
        self.election.hold_claim(self.verdicts.claim_held_until, ClaimHold.TRACKS)

    def inherit(self, results: Mapping[str, TrackResult], *, yielded: bool) -> None:
        """Take what an earlier life knew of what is tracked, and whether an operator has moved it away."""
        tracked = {each.name for each in self.router.track if each.kind is not TrackKind.INTERFACE}
        self.results |= {name: result for name, result in results.items() if name in tracked}
        self.election.yielded = yielded

    def forgo_verdicts(self) -> None:
        """Wait for no verdict: all have come, or this router goes on as active."""
        self.verdicts.stop_waiting()
        self.election.hold_claim(0.0, ClaimHold.TRACKS)

    @property
    def _unjudged(self) -> list[Track]:
        return [each for each in self.router.track if each.name not in self.results]

    def judge_without(self, now: float) -> None:
        """Go on without verdicts whose time is over, or stay out where another active serves."""
        if (at := self.verdicts.deadline) is None or now < at:
            return
        first = self.verdicts.state is FirstVerdictState.WAITING
        serves = self.election.state is RouterState.ACTIVE
        self.verdicts.time_out(now, other_active_until=now if serves else self.election.other_active_until)
        self.election.hold_claim(0.0, ClaimHold.TRACKS)
        self.weigh()
        if first:
            self._environment.log.warning(
                "track-silent",
                router=self.name,
                tracks=[each.name for each in self._unjudged],
                counts_as="down" if self.verdicts.missing_means is MissingVerdict.FAULT else "passed",
            )

    def weigh(self) -> bool:
        """Take the tracks' results; return whether anything about the priority is another than before."""
        if self.verdicts.state is not FirstVerdictState.COMPLETE and not self._unjudged:
            self.forgo_verdicts()
        before, self.priority = self.priority, self._weighed()
        for name in [each for each in self.reasons if each.startswith("track ")]:
            del self.reasons[name]
        for name in self.priority.fault:
            detail = self.results[name].detail if name in self.results else "no result yet"
            self.reasons[f"track {name}"] = f"track {name}: {detail or 'down'}"
        return self.priority != before

    def revise(self, router: VirtualRouter, now: float) -> None:
        """Take other parameters of the same virtual router; while active its new addresses are taken.

        Those that it has no longer go when its holding settles: everybody has what is new by then.
        """
        before, self.router = self.router, router
        self.holder.revise(router)
        self.virtual = frozenset(bare(router.addresses))
        self._announcing.revise(router.announce, now)
        self.conflict_watch.revise(router)
        self.look_for_foreign()
        self.reasons.pop("conflict", None)
        self.open_port()
        if self.holder.held and before.addresses != router.addresses:
            self.take()
            self.announce(router.announce.repeat, now)

    def close(self) -> None:
        """Let go of the sockets; addresses that are held stay."""
        self.conflict_watch.close()
        self._close_port()
        self.holder.close()

    def may_restore(self, count: int, now: float) -> bool:
        """Count addresses that somebody else has removed; False puts them off: two may fight."""
        self.counters.restored += count
        if self.holder.may_restore(now):
            return True
        self.retry_at = now + _TRY_AGAIN
        return False

    def _take_again(self, now: float) -> None:
        if self.holder.held:
            try:
                self.take()
            except OSError as error:
                self.could_not_take(error, now)
                return
            self._announce(1, now)

    def _weighed(self) -> Priority:
        return effective_priority(
            self.router.priority, self.router.track, self.results, unknown=self.verdicts.missing_means
        )

    def _announce(self, repeat: int, now: float) -> None:
        if self._port is None:
            return
        try:
            self.counters.gratuitous_sent += self._port.announce(repeat, now)
        except OSError as error:
            self._troubled("announce", error)

    def _announce_rest(self, now: float) -> None:
        """Send what the interface could not take at once, unless a successor may have announced itself."""
        if self._port is None or (at := self._port.announcing.deadline) is None or now < at:
            return
        if self.election.handing_over:
            self._port.announcing.clear()
            return
        try:
            self.counters.gratuitous_sent += self._port.announcing.tick(now)
        except OSError as error:
            self._troubled("announce", error)

    def _readable(self) -> None:
        if self.on_readable is not None:
            self.on_readable(self.name)

    @property
    def source(self) -> str | None:
        """Return the address that it sends from, None while it has none."""
        return self._port.source if self._port else None

    @property
    def terms(self) -> ElectionSettings:
        """Return what the election is to know by now."""
        return terms(self.router, own=literal.packed(self.source) if self.source else b"")

    def _close_port(self) -> None:
        if self._port is not None:
            self._environment.loop.forget(self._port.fileno())
            self._port.close()
            self._port = None

    def _troubled(self, doing: str, error: OSError) -> None:
        """Count what the kernel refused, and say the first of each kind; netlink tells when it matters."""
        self.counters.send_errors += 1
        if self.counters.first(doing, str(error.errno)):
            self._environment.log.warning(
                "socket-error", router=self.name, doing=doing, reason=error.strerror or str(error)
            )

    def _fail(self, what: str, reason: str) -> None:
        self.reasons[what] = reason
