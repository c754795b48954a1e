"""The shared addresses of this node: which other nodes may have their connections, and what is learnt of it.

`announce` puts the addresses on `lo` and takes them away; here it is only looked at.
"""

import contextlib
import socket
import time
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.linger import ruleset, shared_address_rules
from appliance.core.linger.nodes import Nodes
from appliance.core.linger.provocations import Provocations
from appliance.core.linger.segment import unreachable
from appliance.core.linger.shared_address_nodes import DEAD, Company, Exchange, company
from appliance.core.linger.shared_address_rules import SharedElements
from appliance.core.linger.silent_nodes import Listening, unheard
from appliance.core.linger.strays import Strays
from appliance.linger.address_sets import SharedSet
from appliance.linger.kernel_rules import FAMILIES, ForwardingRules
from appliance.linger.shared_address_reports import ANYWHERE, SharedReports
from appliance.model.operator_events import EventKind, OperatorEvent, Publish
from appliance.model.program_names import LINGER
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.netlink import neighbours
from appliance.net.netlink.address_messages import all_addresses, decode_address
from appliance.net.netlink.address_notices import AddressNotices
from appliance.net.netlink.conntrack import Conntrack, Flow
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.route_lookup import way
from appliance.net.netlink.rtnetlink import readable
from appliance.net.netlink.table_contents import TableContents
from appliance.net.netlink.table_counters import TableCounters
from appliance.net.packets.challenge_acks import ChallengeAcks
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.linger_status import SharedAddress
from appliance.wire.linger_report import ReportDrop
from appliance.wire.linger_strays import Ends, ReportedStrays
from appliance.wire.nftables import stray_keys

_STALLED: Final = 0.5  # seconds between two looks after which this node was held up itself
_ANSWERED: Final = 0.3  # seconds for a neighbour's kernel to answer
_COUNTED: Final = 2.0  # seconds between two reads of the kernel's counters of strays
_LIMITED: Final = 60.0  # seconds between two warnings
_NOTING: Final = 0.1  # maximum share of the time for reading what the kernel noted
_NOBODY: Final = Company(others={}, settled=False, doubtful=())


class SharedHolder:
    """The sets of the snapshot applied last, with the reports about them, None while there are none."""

    def __init__(
        self, nodes: Nodes, led: ForwardingRules, log: FilteringBoundLogger, *, publish: Publish
    ) -> None:
        self.log = log
        self._publish = publish
        self.sets: tuple[SharedSet, ...] = ()
        self.reports: SharedReports | None = None
        self.counts: dict[str, int] = {}
        self._nodes = nodes
        self._led = led
        self._company: dict[int, Company] = {}
        self._strays: dict[int, Strays] = {}
        self._seen: dict[str, float] = {}
        self._asked: set[str] = set()
        self._ready: dict[int, bool] = {}
        self._held: frozenset[str] = frozenset()
        self._requests = Requests()
        self._elements = TableContents()
        self._counters = TableCounters()
        self._notices = AddressNotices()
        self._conntrack = Conntrack()
        self._acks = ChallengeAcks()
        self._provocations = Provocations()
        self._settled: dict[int, frozenset[str]] = {}
        self._awake = self._glanced_at = float("-inf")
        self._quiet = False
        self._note_due: dict[int, float] = {}
        self._count_due = self._warn_due = float("-inf")
        self._last: dict[tuple[int, str], int] = {}
        self._read: dict[int, int] = {}
        self._listed = False

    def apply(self, sets: Iterable[SharedSet]) -> None:
        """Change to these sets."""
        self.sets = tuple(sets)
        self._quiet = False
        families = {each.family for each in self.sets}
        for known in (self._company, self._strays, self._ready, self._settled):
            for family in known.keys() - families:
                del known[family]

    def of(self, family: int) -> Iterator[SharedSet]:
        """Yield the set of a family, if there is one."""
        return (each for each in self.sets if each.family == family)

    def close(self) -> None:
        """Close the sockets."""
        self._requests.close()
        self._elements.close()
        self._counters.close()
        self._notices.close()
        self._conntrack.close()
        self._acks.close()

    # What the other nodes have

    def glance(self, now: float) -> bool:
        """Return whether something cannot wait; called ten times a second, and cheap. Raises OSError."""
        if now - self._glanced_at > _STALLED:
            self.wake(now)
        self._glanced_at = now
        if not self.sets:
            return False
        if self._notices.changed():
            self._listed = False
        return not (self._quiet and self._listed) or any(self._has_notes(each.family) for each in self.sets)

    def wake(self, now: float) -> None:
        """Take no silence until now for the death of a node: nothing could be received."""
        self._awake, self._quiet = now, False

    def look(self, now: float) -> None:
        """Look who lives, and whether the addresses are here; called repeatedly. Raises OSError."""
        if self.sets and not self._listed:
            self._list_addresses()
        self._look_for_life([node for each in self._company.values() for node in each.doubtful])
        for each in self.sets:
            self._company[each.family] = self._company_of(each, now)

    def _list_addresses(self) -> None:
        self._listed = False
        lo = socket.if_nametoindex("lo")
        known = readable(decode_address, self._requests.dump(all_addresses(lo)))
        self._held = frozenset(each.address.partition("/")[0] for each in known if each.index == lo)
        self._listed = True

    def has(self, address: str) -> bool:
        """Return whether this node has a shared address now."""
        return address in self._held

    def elements(self, family: int) -> SharedElements | None:
        """Return the elements of a family for the rules, None if it has no shared addresses."""
        found = self._company.get(family)
        if found is None:
            return None
        macs = self._nodes.forwarders(family, time.monotonic())
        return SharedElements(others=found.others, alone=found.alone, macs=macs)

    def put(self, family: int, *, there: bool) -> None:
        """Note whether the kernel has the elements of a family."""
        self._ready[family] = there and self._company.get(family, _NOBODY).settled

    def _company_of(self, shared: SharedSet, now: float) -> Company:
        reports = self.reports
        exchange = Exchange(
            peers=reports.peers(shared) if reports else shared.peers,
            macs=frozenset(reports.macs.values()) if reports else frozenset(),
            since=reports.since(shared.family) if reports else None,
            awake=self._awake,
        )
        nodes = self._nodes.sharing(shared.family, now)
        return company(nodes, shared.addresses, exchange, seen=self._seen, now=now)

    def _look_for_life(self, nodes: Collection[str]) -> None:
        """Ask the kernels of silent nodes; each has some time to answer, however late it is asked."""
        self._asked.intersection_update(nodes)
        for node in nodes:
            index = self.reports.interface(node) if self.reports else None
            age = None if index is None else neighbours.age(self._requests, node, interface=index)
            answered = float("-inf") if age is None else time.monotonic() - age
            if node not in self._asked:
                answered = max(answered, time.monotonic() - DEAD + _ANSWERED)
                self._asked.add(node)
            self._seen[node] = max(answered, self._seen.get(node, answered))

    # Strays

    def receive(self, node: str, reported: ReportedStrays) -> None:
        """Take in what a node has found out of packets that were forwarded to it."""
        self._quiet = False
        strays = self._strays.setdefault(6 if ":" in node else 4, Strays())
        now = time.monotonic()
        for ends in reported.found:
            strays.found(ends, node=node)
        for ends in reported.denied:
            strays.denied(ends, node=node, now=now)

    def exchange(self, now: float) -> None:
        """Send the others what the kernel noted, give it what they sent; raises NftablesError and OSError."""
        for each in self.sets:
            noted = self._counters.one(each.family, ruleset.TABLE, shared_address_rules.NOTED_PACKETS)
            unread = noted is not None and noted != self._read.get(each.family)
            if noted is not None and unread and now >= self._note_due.get(each.family, float("-inf")):
                begun = time.thread_time()
                self._report(each)
                self._read[each.family] = noted
                self._note_due[each.family] = now + (time.thread_time() - begun) / _NOTING
            found = self._company.get(each.family, _NOBODY)
            strays = self._strays.setdefault(each.family, Strays())
            changes = strays.changes(found.others, settled=found.settled, now=now)
            if not self._led.learn(each.family, changes):
                strays.restart()
            self._provocations.add((*changes.nobodys, *self._asked_of_the_dead(each, found)), now)
        self._provoke(self._provocations.due(now))
        quiet = all(self._is_quiet(each.family) for each in self.sets)
        self._quiet = quiet and not self._provocations.pending
        if self.sets and now >= self._count_due:
            self._count_due = now + _COUNTED
            self._count(self._counters.packets(ruleset.TABLE), now)

    def _asked_of_the_dead(self, shared: SharedSet, found: Company) -> Iterable[Ends]:
        """Return about which connections a node was asked that has been found dead now."""
        if not found.settled:
            return ()
        living = frozenset(node for nodes in found.others.values() for node in nodes)
        before = self._settled.get(shared.family, living)
        self._settled[shared.family] = living
        noted = self._noted(shared, shared_address_rules.ASKED) if before - living else {}
        return (ends for each in noted.values() for ends in each)

    def _provoke(self, connections: Iterable[Ends]) -> None:
        """Make clients send now: they would do so late, as they double the time between two attempts."""
        for client, client_port, address, port in connections:
            # Without CAP_NET_RAW, or without a route, a client sends again by itself.
            with contextlib.suppress(OSError):
                self._acks.provoke((address, port), (client, client_port))

    def _has_notes(self, family: int) -> bool:
        """Return whether the kernel has noted something since it was read last."""
        noted = self._counters.one(family, ruleset.TABLE, shared_address_rules.NOTED_PACKETS)
        return noted is not None and noted != self._read.get(family)

    def _is_quiet(self, family: int) -> bool:
        """Return whether nothing is under way that must not wait: no stray, and no node that may be dead."""
        found = self._company.get(family, _NOBODY)
        return found.settled and not found.doubtful and not found.alone and not self._strays[family].pending

    def restart(self) -> None:
        """Have the kernel learn again: its elements are gone."""
        for each in self._strays.values():
            each.restart()

    def _report(self, shared: SharedSet) -> None:
        family = FAMILIES[shared.family]
        noted = {name: self._noted(shared, name) for name in shared_address_rules.SETS}
        noted = {name: each for name, each in noted.items() if each}
        if not noted or self.reports is None:
            return
        found, denied = noted.get("found", {}), noted.get("denied", {})
        for mac, ended in noted.get("closing", {}).items():
            denied.setdefault(mac, []).extend(self._unknown(ended))
        name = f"{family.value} {ruleset.TABLE}"
        known = [(ends, mac) for mac, each in found.items() for ends in each]
        lines = [f"flush set {name} {each}" for each in noted]
        self._led.note("\n".join([*lines, shared_address_rules.told(family, known, table=ruleset.TABLE)]))
        nodes = {each.mac: each.node for each in self._nodes.sharing(shared.family, time.monotonic())}
        for mac in found.keys() | denied.keys():
            if mac in nodes:
                self.reports.send_strays(shared, nodes[mac], found.get(mac, []), denied.get(mac, []))

    def _unknown(self, closing: Iterable[Ends]) -> list[Ends]:
        """Return the connections that this node does not have."""
        flows = [
            Flow(source=client, source_port=client_port, destination=address, destination_port=port)
            for client, client_port, address, port in closing
        ]
        return [
            (each.source, each.source_port, each.destination, each.destination_port)
            for each in self._conntrack.unknown(flows)
        ]

    def _noted(self, shared: SharedSet, name: str) -> dict[bytes, list[Ends]]:
        """Return the connections in a set by the MAC of the node that forwarded their packets here."""
        noted: dict[bytes, list[Ends]] = {}
        for key in self._elements.elements(FAMILIES[shared.family], ruleset.TABLE, name):
            stray = stray_keys.decode(key, family=shared.family)
            if stray is not None:
                noted.setdefault(stray[1], []).append(stray[0])
        return noted

    def _count(self, packets: Mapping[tuple[int, str], int], now: float) -> None:
        limited = self.counts.get("limited", 0)
        for each in self.sets:
            for kind in shared_address_rules.COUNTERS:
                count = packets.get((each.family, shared_address_rules.counter(kind)))
                if count is None:  # the table is gone for the moment
                    continue
                last = self._last.get((each.family, kind), 0)
                self._last[each.family, kind] = count
                more = count - last if count >= last else count  # the table was made anew
                self.counts[kind] = self.counts.get(kind, 0) + more
        limited = self.counts.get("limited", 0) - limited
        if limited and now >= self._warn_due:
            self._warn_due = now + _LIMITED
            self.log.warning("strays-limited", packets=limited)
            self._publish(
                OperatorEvent(
                    when=time.time(),
                    kind=EventKind.STRAYS_LIMITED,
                    subject=LINGER,
                    detail=f"{limited} packets of shared IPs were dropped",
                )
            )

    # Told

    def status(self) -> Iterator[SharedAddress]:
        """Yield the state of each address."""
        now = time.monotonic()
        for each in self.sets:
            others = self._company.get(each.family, _NOBODY).others
            there = {node.node: node.addresses for node in self._nodes.sharing(each.family, now)}
            for address in each.addresses:
                nodes = (node for node in others.get(address, ()) if there.get(node, {}).get(address))
                yield SharedAddress(
                    address=address,
                    ready=self._ready.get(each.family, False),
                    nodes=tuple(map(each.named, nodes)),
                )

    def objections(self, snapshot: Snapshot | None, proposed: Snapshot) -> Iterator[AnswerProblem]:
        """Yield which peers of a proposed snapshot get no packets, without those that it has already."""
        peers = proposed.linger.peers if proposed.linger and proposed.shared_ips else ()
        present = snapshot.linger.peers if snapshot and snapshot.linger else ()
        for peer in peers:
            found = way(self._requests, peer)
            tunnelled = proposed.linger is not None and proposed.linger.vxlan is not None
            if peer not in present and (found is None or (found.routed and not tunnelled)):
                yield AnswerProblem(message=unreachable(peer, routed=found is not None), path="linger.peers")

    def troubles(self, refused: Mapping[str, ReportDrop], now: float) -> Iterator[str]:
        """Yield why connections end with a change of nodes; `refused` has unusable reports by source."""
        if self.reports is None:
            return
        for peer in self.reports.routed:
            yield unreachable(peer, routed=True)
        for each in self.sets:
            since = self.reports.since(each.family)
            if since is None:
                continue
            peers = self.reports.peers(each)
            listening = Listening(
                since=since,
                macs=tuple(self.reports.macs.values()),
                peers=tuple(map(each.named, peers)),
                refused={each.named(node): why for node, why in refused.items() if node in peers},
            )
            neighbours = [
                replace(node, node=each.named(node.node))
                for node in self._nodes.neighbours(ANYWHERE, family=each.family, now=now)
            ]
            yield from unheard(listening, neighbours, (), (), now=now)
