"""Receives the reports of other nodes: decides which to accept, and which nodes are alive.

A report is accepted if it is newer than all accepted before, and not a replay. Within one session (a run of a
node) its sequence number shows that. A new session must answer a challenge of ours, which proves that its
report was made later. Each accepted session makes us draw a new challenge, and the next session of that node
must answer a newer one: nothing recorded before does. Other nodes, which may have answered the former one
already, need not start over. This requires no clock, and nothing that must survive a restart.

Reports of sessions that are not accepted are answered, too: their node can then accept ours. They may be
recorded ones of an earlier session, so they are answered beside the accepted session, never in its place. A
node that is answered more than once finds the answer to its present session by the challenge.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from appliance.wire.linger_report import AnsweredNode, LingerReport, ReportDrop

SILENT: Final = 6.0
"""Seconds without a report after which a node counts as gone: its connections are then reset."""

DOUBTED: Final = 1.0
"""The same for a node that lost its virtual IP to another because its advertisements stopped."""

MOST_NODES: Final = 64
"""Nodes, and challenges, that are kept; all of these nodes have the key."""

MOST_SESSIONS: Final = 4
"""Sessions of a node that are answered: the accepted one, and those of the others that were new last.

A node that waits reports at least three times a second: five recorded reports a second, of whatever earlier
sessions, do not displace it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """What another node reported of one address: it serves it, or left it at `left_at`, with `connections`.

    `mac` is the source of its packets, `heard` are our MACs from which it accepts reports of our session.
    """

    node: str
    mac: bytes
    address: str
    active: bool
    left_at: float
    connections: int
    heard: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbour:
    """Another node, accepted `since`; `heard` are our MACs from which it accepts reports of our session."""

    node: str
    since: float
    heard: frozenset[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingNode:
    """Another node, accepted `since`, last heard `at`, with its MAC.

    `addresses` are the shared ones in its configuration, each with whether it has it now. `heard` are our
    MACs from which it accepts reports of our session.
    """

    node: str
    mac: bytes
    since: float
    at: float
    addresses: Mapping[str, bool]
    heard: frozenset[bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Heard:
    """The last accepted report of a node on an interface; after `silent` seconds the node is gone.

    `drawn` is how many challenges there had been when its session was accepted, `since` when that was.
    """

    report: LingerReport
    at: float
    drawn: int
    since: float
    silent: float = SILENT


@dataclass(frozen=True, slots=True, kw_only=True)
class _Greeting:
    """The newest report of a session that has the key, accepted or not: its challenge is to be answered."""

    mac: bytes
    sequence: int
    challenge: bytes
    at: float


_Place = tuple[str, int]  # a node's address, and the index of our interface
_Greetings = dict[bytes, _Greeting]  # by session, the one heard last at the end
_Value = TypeVar("_Value")


class Nodes:
    """The other nodes by address and interface. `draw` returns an unpredictable challenge."""

    def __init__(self, draw: Callable[[], bytes]) -> None:
        self._draw = draw
        self._drawn = self._begun = self._forgotten = 0
        self._challenges: dict[bytes, int] = {}
        self.begin_session()
        self._heard: dict[_Place, _Heard] = {}
        self._greetings: dict[_Place, _Greetings] = {}

    def begin_session(self) -> None:
        """Begin a session of this node: what the others answer to former challenges is not about it."""
        self._challenge_anew()
        self._begun = self._drawn

    @property
    def challenge(self) -> bytes:
        """The newest challenge, for all nodes."""
        return next(reversed(self._challenges))

    def receive(self, node: str, report: LingerReport, *, interface: int, now: float) -> ReportDrop | None:
        """Process a report that has the right key; return why it is not accepted, None if it is."""
        place = node, interface
        last = self._heard.get(place)
        same = last if last is not None and last.report.session == report.session else None
        if same is not None and report.sequence <= same.report.sequence:
            return ReportDrop.REPLAY
        self._greet(place, report, now)
        if same is None and not self._answers(report, after=0 if last is None else last.drawn):
            return ReportDrop.UNPROVED
        heard = _Heard(report=report, at=now, drawn=self._drawn, since=now)
        if same is not None:
            heard = replace(heard, drawn=same.drawn, since=same.since)
        if put_last(self._heard, place, heard):
            self._forgotten = self._drawn  # which of them that node has answered is no longer known
        if same is None:
            self._challenge_anew()
        return None

    def follow(self, node: str, session: bytes, sequence: int, *, interface: int) -> ReportDrop | None:
        """Process the head of another datagram of a node; return why it is not accepted, None if it is."""
        place = node, interface
        last = self._heard.get(place)
        if last is None or last.report.session != session:
            return ReportDrop.UNPROVED
        if sequence <= last.report.sequence:
            return ReportDrop.REPLAY
        self._heard[place] = replace(last, report=replace(last.report, sequence=sequence))
        return None

    def _greet(self, place: _Place, report: LingerReport, now: float) -> None:
        """Have a report answered, unless a newer one of its session is known: it is a recorded one then."""
        greetings = self._greetings.get(place, {})
        known = greetings.get(report.session)
        if known is not None and report.sequence <= known.sequence:
            return
        greetings.pop(report.session, None)
        greetings[report.session] = _Greeting(
            mac=report.mac, sequence=report.sequence, challenge=report.challenge, at=now
        )
        put_last(self._greetings, place, greetings)
        if len(greetings) > MOST_SESSIONS:
            accepted = self._heard[place].report.session if place in self._heard else None
            del greetings[next(each for each in greetings if each != accepted)]

    def _answers(self, report: LingerReport, *, after: int) -> bool:
        """Return whether a report answers a challenge newer than the first `after` ones."""
        newest = max(after, self._forgotten)
        return any(self._challenges.get(each.challenge, 0) > newest for each in report.answered)

    def _heard_by(self, other: _Heard) -> frozenset[bytes]:
        """Return our MACs from which another node accepts reports of our session.

        Until it accepts them it still believes those of our former session, with that one's challenge.
        """
        return frozenset(
            each.mac
            for each in other.report.answered
            if each.believed and self._challenges.get(each.challenge, 0) >= self._begun
        )

    def _challenge_anew(self) -> None:
        self._drawn += 1
        self._challenges[self._draw()] = self._drawn
        if len(self._challenges) > MOST_NODES:
            del self._challenges[next(iter(self._challenges))]

    def is_new(self, node: str, session: bytes, *, interface: int) -> bool:
        """Return whether that session of a node is new: it waits for an answer."""
        return session not in self._greetings.get((node, interface), {})

    def doubt(self, addresses: Iterable[str]) -> None:
        """Mark the nodes that have reported these addresses as probably dead, until their next report."""
        lost = frozenset(addresses)
        for place, heard in self._heard.items():
            if any(each.address in lost for each in heard.report.addresses):
                self._heard[place] = replace(heard, silent=DOUBTED)

    def macs(self, now: float) -> frozenset[bytes]:
        """Return the MACs of the nodes that are alive."""
        return frozenset(each.report.mac for _, _, each in self._living(now))

    def neighbours(self, interface: int, *, family: int, now: float) -> tuple[Neighbour, ...]:
        """Return the accepted nodes on one interface, of one version of IP."""
        return tuple(
            Neighbour(node=node, since=each.since, heard=self._heard_by(each))
            for node, where, each in self._living(now)
            if where == interface and (":" in node) == (family == 6)
        )

    def answered(self, interface: int, *, family: int, now: float) -> tuple[AnsweredNode, ...]:
        """Return the nodes on one interface, of one version of IP; those not accepted yet come first.

        Further sessions of the same nodes come last: in a full report they displace no node.
        """
        accepted = {(node, where): each.report.session for node, where, each in self._living(now)}
        nodes: list[AnsweredNode] = []
        further: list[AnsweredNode] = []
        for (node, where), greetings in self._greetings.items():
            if where != interface or (":" in node) != (family == 6):
                continue
            found = [
                AnsweredNode(
                    mac=each.mac,
                    challenge=each.challenge,
                    believed=accepted.get((node, where)) == session,
                )
                for session, each in reversed(greetings.items())
                if now - each.at < SILENT
            ]
            found.sort(key=lambda each: not each.believed)
            nodes += found[:1]
            further = found[1:] + further
        return (*sorted(nodes, key=lambda each: each.believed), *further)

    def keepers(self, interfaces: Mapping[str, int], now: float) -> tuple[Keeper, ...]:
        """Return what other nodes have of these addresses, each on the interface of that index."""
        return tuple(
            Keeper(
                node=node,
                mac=heard.report.mac,
                address=each.address,
                active=each.active,
                left_at=heard.at - each.left,
                connections=each.connections,
                heard=self._heard_by(heard),
            )
            for node, interface, heard in self._living(now)
            for each in heard.report.addresses
            if interfaces.get(each.address) == interface
        )

    def sharing(self, family: int, now: float) -> tuple[SharingNode, ...]:
        """Return the nodes that report shared addresses of one version of IP."""
        return tuple(
            SharingNode(
                node=node,
                mac=each.report.mac,
                since=each.since,
                at=each.at,
                addresses={one.address: one.active for one in each.report.addresses},
                heard=self._heard_by(each),
            )
            for node, _, each in self._living(now)
            if (":" in node) == (family == 6)
        )

    def forwarders(self, family: int, now: float) -> frozenset[bytes]:
        """Return the MACs of the nodes that may forward packets here, of one version of IP.

        They include nodes not accepted yet, which after a restart of this program forward as before.
        """
        greeted = (
            each.mac
            for (node, _), greetings in self._greetings.items()
            for each in greetings.values()
            if now - each.at < SILENT and (":" in node) == (family == 6)
        )
        return frozenset((*greeted, *(each.mac for each in self.sharing(family, now))))

    def _living(self, now: float) -> list[tuple[str, int, _Heard]]:
        return [(*place, each) for place, each in self._heard.items() if now - each.at < each.silent]


def put_last(nodes: dict[_Place, _Value], place: _Place, value: _Value) -> bool:
    """Put a value at the end; return whether the oldest one was evicted for it."""
    nodes.pop(place, None)
    nodes[place] = value
    if len(nodes) > MOST_NODES:
        del nodes[next(iter(nodes))]
        return True
    return False
