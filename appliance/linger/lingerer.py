"""The virtual IPs that move with their connections: polls vrrp's board, and makes everything follow.

A served address is also on `lo`, so that it is never missing when `vrrp` takes it from its interface.
Afterwards it stays there as long as connections need it. Packets that belong to none of our connections are
forwarded to the node that has the connection, before the kernel would answer with a reset.
"""

import contextlib
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.core.linger import shared_address_rules
from appliance.core.linger.hops import hops
from appliance.core.linger.nodes import Keeper, Nodes
from appliance.core.linger.ruleset import TABLE, Elements
from appliance.core.linger.served_addresses import ServedAddress, after
from appliance.core.linger.shared_address_nodes import Settled
from appliance.core.linger.silent_nodes import Elsewhere, informed, unheard
from appliance.linger.address_reports import ANSWERED, INTERVAL, Reports
from appliance.linger.address_sets import AddressSet, address_sets, entrances, indexes, shared_sets
from appliance.linger.kernel_rules import FAMILIES, Ends, ForwardingRules
from appliance.linger.node_exchange import NodeExchange
from appliance.linger.open_connections import OpenConnections
from appliance.linger.segments import Segments
from appliance.linger.shared_address_holder import SharedHolder
from appliance.linger.shared_address_reports import SharedReports
from appliance.linger.tunnels import Tunnels
from appliance.linger.vrrp_view import VrrpView
from appliance.model.operator_events import Publish
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER
from appliance.model.snapshot.linger import Linger
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.sync import synced_addresses
from appliance.net.files import hmac_keys
from appliance.net.logging import log as logs
from appliance.net.netlink.connection_room import RoomWatch
from appliance.net.netlink.loopback_addresses import KeptAddresses
from appliance.net.netlink.table_notices import TableNotices
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.linger_node import NodeFacts
from appliance.wire.linger_report import CHALLENGE, ReportedAddress

_GLANCE: Final = 0.1  # seconds between two glances at what may have changed
_LOOK: Final = INTERVAL  # seconds between two looks at everything while nothing changes
_TRIED: Final = 1.0  # seconds between two attempts to listen for reports
_COUNTED: Final = 1.0  # minimum seconds between two counts of connections
_COUNTED_AT_LEAST: Final = 10.0  # maximum seconds between two
_COUNTING: Final = 0.02  # maximum share of the time for counting: with many connections counts are rarer


class Lingerer:
    """The virtual addresses of the snapshot applied last.

    `trouble` is the present problem, empty for none. `publish` gets events. `on_fault` is called
    with a bug that has ended the polling: the program no longer works.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        publish: Publish,
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.trouble = ""
        self.log = log
        self.nodes = Nodes(draw=lambda: secrets.token_bytes(CHALLENGE))
        self.served: Mapping[str, ServedAddress] = {}
        self.routers: dict[str, str] = {}
        self.reports: Reports | None = None
        self.segments = Segments()
        self._vrrp = VrrpView(paths)
        self._sets: tuple[AddressSet, ...] = ()
        self._settings: Linger | None = None
        self._kept = KeptAddresses()
        self._connections = OpenConnections(paths)
        self._led = ForwardingRules()
        self._sharing = Nodes(draw=lambda: secrets.token_bytes(CHALLENGE))
        self.shared = SharedHolder(self._sharing, self._led, log, publish=publish)
        self._tunnels = Tunnels()
        self._room = RoomWatch()
        self._settled = Settled()
        self._segment_trouble = ""
        self._news = Event()
        self._count_due = self._look_due = float("-inf")
        self._reported_at = float("-inf")
        self._tried_at = float("-inf")
        self._report_trouble = ""
        self._strangers = ""
        self._unguarded = ""
        self._removed = False
        self._flushed = 0
        self._on_fault = on_fault
        self._notices = TableNotices(TABLE, on_removal=self._see_removal, on_fault=on_fault)
        self.exchange = NodeExchange(
            paths, log=lambda: self.log, publish=publish, send=self._send_facts, on_fault=on_fault
        )
        self._looks = gevent.spawn(self._look_when_due)
        self._looks.link_exception(lambda ended: self._on_fault(ended.exception))

    # Configuration

    def apply(self, snapshot: Snapshot) -> None:
        """Change to the virtual addresses of a snapshot; addresses that stay keep their state."""
        first = self.snapshot is None
        self.log = self.shared.log = logs.obey(LINGER, snapshot.log)
        wanted = tuple(address_sets(snapshot)) if snapshot.linger else ()
        shared = tuple(shared_sets(snapshot)) if snapshot.linger else ()
        changed = (wanted, shared, snapshot.linger) != (self._sets, self.shared.sets, self._settings)
        self.snapshot, self._sets, self._settings = snapshot, wanted, snapshot.linger
        self.routers = {address: name for place in wanted for address, name in place.routers.items()}
        self.shared.apply(shared)
        self.exchange.apply(snapshot)
        if changed:
            self._close_reports()
        if first:
            self._adopt()
        self._news.set()

    def close(self, *, ends: bool) -> None:
        """Stop; `ends` means that all connections have ended, and nothing of ours stays in the kernel."""
        self._notices.close()
        self.exchange.close()
        self._looks.kill()
        if ends:
            self.served = {}
            if self.reports is not None:
                self.reports.send(self._reported, has=self.shared.has)
            if self.shared.reports is not None:
                self.shared.reports.leave()
            self._try(self._forget_all)
        self._close_reports()
        self.shared.close()
        self._led.close()
        self._tunnels.close()
        self._vrrp.close()
        self.segments.close()
        self._kept.close()
        self._connections.close()

    def change_owner(self, *, ours: Sequence[Ends], others: Sequence[Ends]) -> None:
        """Note connections that have come from another node or gone to one; raises NftablesError."""
        for family in FAMILIES:
            mine, theirs = (
                [each for each in some if (":" in each[0]) == (family == 6)] for some in (ours, others)
            )
            if shared := [each for each in theirs if self.shared.has(each[2])]:
                self._led.note(shared_address_rules.given(FAMILIES[family], shared, table=TABLE))
            if mine or theirs:
                self._led.change_owner(family, ours=mine, others=theirs)

    def keepers(self) -> tuple[Keeper, ...]:
        """Return the connections that the other nodes have of our addresses."""
        return self.nodes.keepers(indexes(self._sets), time.monotonic())

    def followers(self, address: str) -> tuple[str, ...]:
        """Return the nodes that would forward packets of an address here, if they served it."""
        index = indexes(self._sets).get(address)
        macs = set(self.reports.macs.values()) if self.reports else set[bytes]()
        family = 6 if ":" in address else 4
        known = self.nodes.neighbours(index or 0, family=family, now=time.monotonic())
        return tuple(each.node for each in known if not each.heard.isdisjoint(macs))

    def _listen(self, settings: Linger, now: float) -> None:
        """Begin to exchange reports with the other nodes, if that has not been possible; raises OSError."""
        if self.reports is not None or now - self._tried_at < _TRIED:
            return
        self._tried_at = now
        keys = tuple(hmac_keys.secrets(settings.keys).values())
        shared = None
        if self.shared.sets:
            shared = SharedReports(
                self.shared.sets,
                port=settings.port,
                secrets=keys,
                nodes=self._sharing,
                on_strays=self.shared.receive,
                log=self.log,
            )
        try:
            self.reports = Reports(
                self._sets,
                port=settings.port,
                secrets=keys,
                nodes=self.nodes,
                on_news=self._news.set,
                log=self.log,
                shared=shared,
            )
        except OSError as error:
            self._report_trouble = f"no reports on port {settings.port}: {error.strerror or error}"
        else:
            self._report_trouble, self.shared.reports = "", shared
            self.reports.on_node = self.exchange.receive
            self.reports.link_fault(self._on_fault)

    def _close_reports(self) -> None:
        reports, self.reports, self._tried_at = self.reports, None, float("-inf")
        self.shared.reports = None
        if reports is not None:
            reports.close()

    def _adopt(self) -> None:
        """Continue with the addresses of an earlier run; those no longer configured are removed."""
        with self._noting_errors():
            found = self._kept.present(self.routers)
            now = time.monotonic()
            mine = sorted(found & self.routers.keys())
            self.served = {each: ServedAddress(address=each, left_at=now, led_at=now) for each in mine}
            for each in sorted(found - self.routers.keys()):
                self._kept.remove(each)
            if mine:
                self.log.info("linger-adopted", addresses=mine)

    def _forget_all(self) -> None:
        for each in self._kept.present(self.routers):
            self._kept.remove(each)
        self._led.remove()
        self._tunnels.remove()

    # Polling

    def _look_when_due(self) -> None:
        while True:
            news = self._news.wait(_GLANCE)
            self._news.clear()
            now = time.monotonic()
            if self.snapshot is not None and (self._glance(now) or news or now >= self._look_due):
                self._look_due = now + _LOOK
                self._look(now)

    def _glance(self, now: float) -> bool:
        """Return whether something cannot wait: usually nothing can be seen, and nothing costs time."""
        with contextlib.suppress(OSError):  # the look meets and reports it
            shared = self.shared.glance(now)
            awaited = self.reports is not None and self.reports.awaited
            kept = any(not each.active for each in self.served.values())
            return shared or awaited or kept or (bool(self._sets) and self._vrrp.has_changed())
        return True

    def _look(self, now: float) -> None:
        self._room.look(self.log, now)
        interfaces, before = indexes(self._sets), self.served
        active = self._active()
        self._expire_dead_nodes(active)
        keepers = self.nodes.keepers(interfaces, now)
        if self._tunnels.follow(self._settings, self.shared.sets, now):
            self.shared.wake(now)
        with self._noting_errors():
            if self._settings is not None:
                self._listen(self._settings, now)
            self.shared.look(now)
            self._keep(active, interfaces)
            if self.snapshot is not None:
                self._segment_trouble = self.segments.trouble(self.snapshot, now)
            changes = after(
                before,
                active=active,
                connections=self._counts(now),
                led=(each.address for each in keepers if each.active),
                longest=self._settings.longest if self._settings else 0.0,
                now=now,
            )
            self.served = changes.served
            self._report(before, now)
            for address in changes.cut:
                self._cut(address)
            for address, reason in changes.given_up.items():
                left = before[address].connections
                self.log.info("linger-ended", address=address, reason=reason.value, connections=left)
                self._kept.remove(address)
            refused = self.reports.refused(now) if self.reports else {}
            troubles = (*self._unheard_nodes(keepers, interfaces, now), *self.shared.troubles(refused, now))
            self._strangers = "; ".join(dict.fromkeys(troubles))
            if self._lead(keepers, now) and self.reports is not None:
                talking, macs = self.reports.talking(), self.reports.macs.values()
                self._vrrp.inform(informed(self.routers, keepers, macs=macs, talking=talking, now=now))

    def _unheard_nodes(
        self, keepers: tuple[Keeper, ...], interfaces: Mapping[str, int], now: float
    ) -> Iterator[str]:
        """Yield the other nodes that do not understand this one, or that it does not understand."""
        for place in self._sets:
            index = next((interfaces[each] for each in place.routers if each in interfaces), 0)
            listening = self.reports.listening(place, index, now) if self.reports else None
            if listening is None:
                continue
            elsewhere = (
                Elsewhere(
                    name=name, peer=peer, addresses=[at for at, of in place.routers.items() if of == name]
                )
                for name, peer in self._vrrp.elsewhere.items()
                if name in place.routers.values()
            )
            neighbours = self.nodes.neighbours(index, family=place.family, now=now)
            yield from unheard(listening, neighbours, elsewhere, keepers, now=now)

    def _active(self) -> frozenset[str]:
        """Return the addresses that `vrrp` holds; the previous ones if it does not answer."""
        active = self._vrrp.active(self.routers)
        if active is None:
            return frozenset(each.address for each in self.served.values() if each.active)
        return active

    def _expire_dead_nodes(self, active: frozenset[str]) -> None:
        """Wait no longer for a node that `vrrp` reports dead: its clients get a reset."""
        come = {each for each in active if each not in self.served or not self.served[each].active}
        if come:
            self.nodes.doubt(self._vrrp.died(come, self.routers))

    def _keep(self, active: frozenset[str], interfaces: Mapping[str, int]) -> None:
        """Put newly held addresses on `lo`."""
        for address in sorted(active):
            one = self.served.get(address)
            if one is None and address in interfaces:
                if ":" not in address:
                    self._kept.silence(interfaces[address])
                self._kept.keep(address)

    def _counts(self, now: float) -> dict[str, int]:
        """Return the connections of kept addresses, if another count is due."""
        left = [each.address for each in self.served.values() if not each.active]
        if not left or now < self._count_due:
            return {}
        begun = time.thread_time()
        synced = synced_addresses(self.snapshot) if self.snapshot else ()
        counted = self._connections.count(left, forwards=self._forwards, synced=synced)
        pause = (time.thread_time() - begun) / _COUNTING
        self._count_due = now + min(max(pause, _COUNTED), _COUNTED_AT_LEAST)
        return counted

    def _cut(self, address: str) -> None:
        """End the connections of an address that was kept for the longest time allowed."""
        cut = self._connections.cut(address, forwards=self._forwards)
        self._count_due = float("-inf")
        self.log.warning("linger-cut", address=address, connections=cut.connections)
        if cut.trouble:
            self.log.error("linger-not-cut", address=address, reason=cut.trouble)

    @property
    def _forwards(self) -> bool:
        """Whether the kernel forwards connections here."""
        return self.snapshot is not None and bool(self.snapshot.forwarded)

    def _report(self, before: Mapping[str, ServedAddress], now: float) -> None:
        if self.reports is None:
            return
        moved = {each.address: each.active for each in before.values()} != {
            each.address: each.active for each in self.served.values()
        }
        if moved:
            kept = [each.address for each in self.served.values() if not each.active]
            active = [each.address for each in self.served.values() if each.active]
            self.log.info("linger-addresses", active=sorted(active), kept=sorted(kept))
        due = self._reported_at + (ANSWERED if self.reports.awaited else INTERVAL)
        if moved or now >= due:
            self._reported_at = now
            self.reports.send(self._reported, has=self.shared.has)

    def _send_facts(self, facts: NodeFacts) -> None:
        if self.reports is not None:
            self.reports.send_facts(facts)

    def _reported(self, address: str) -> ReportedAddress | None:
        one = self.served.get(address)
        if one is None:
            return None
        left = 0.0 if one.left_at is None else time.monotonic() - one.left_at
        return ReportedAddress(address=address, active=one.active, left=left, connections=one.connections)

    def _see_removal(self) -> None:
        self._removed = True
        self._news.set()

    def _lead(self, keepers: tuple[Keeper, ...], now: float) -> bool:
        """Forward packets to the nodes that have their connections; return whether they are forwarded."""
        if self._settings is None:
            self._led.remove()
            return False
        if self._removed:
            self._removed = False
            self._led.look()
        nodes, led = self.nodes.macs(now), True
        settled = self._settled.at(now, keepers=keepers, ours=self.served.values())
        away = {each.address for each in keepers if not each.active}
        away |= {each.address for each in self.served.values() if not each.active}
        families = {each.family for each in self._sets}
        for family in sorted(families.union(each.family for each in self.shared.sets)):
            here = [each for each in self._sets if each.family == family]
            addresses = tuple(address for place in here for address in place.routers)
            mine = [each for each in keepers if each.address in addresses]
            there = self._led.lead(
                family,
                entrances=entrances(here),
                elements=Elements(
                    addresses=addresses,
                    hops=hops(mine, self.served, nodes=nodes),
                    nodes=nodes,
                    settled=settled & away & set(addresses),
                    shared=self.shared.elements(family),
                ),
                port=self._settings.port,
                longest=self._settings.longest,
                tunnel=next(map(self._tunnels.rules, self.shared.of(family)), None),
            )
            self.shared.put(family, there=there)
            led &= there
        if self._led.flushed > self._flushed:
            self._flushed = self._led.flushed
            self.log.warning("linger-rules-gone")
            self.shared.restart()
        self.shared.exchange(now)
        self._note_guard(self._led.unguarded)
        return led

    def _note_guard(self, reason: str) -> None:
        before, self._unguarded = self._unguarded, reason
        if reason and reason != before:
            self.log.warning("linger-not-guarded", reason=reason)

    # Troubles

    @contextlib.contextmanager
    def _noting_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, NftablesError) as error:
            self._note(str(error))
        else:
            reason = self._report_trouble or self._tunnels.trouble or self._segment_trouble
            self._note(reason or self._strangers)

    def _try(self, do: Callable[[], None]) -> None:
        with self._noting_errors():
            do()

    def _note(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble and trouble != before:
            self.log.error("linger-failed", reason=trouble)
        elif before and not trouble:
            self.log.info("linger-works-again")
