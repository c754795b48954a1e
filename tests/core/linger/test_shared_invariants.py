"""Invariants of nodes that share an address, whatever the router chooses, and whatever is lost.

The decisions are those of the rules (`shared_model`, which a test compares with the kernel's); elements,
reports and what nodes tell each other are the program's own.

I1 a packet of a client is sent on at most once, one of a node never; I2 nor one whose connection is here;
I3 nor a SYN; I4 what nobody has is reset within a second; I5 which node the router chooses does not matter;
I6 a connection whose node lives is never reset; I7 without the program it is as without it.
"""

from collections.abc import Callable
from itertools import count
from typing import Final

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from support.linger.shared_model import Fate, Kind, Tables
from support.run import tiers

from appliance.core.linger.nodes import Nodes
from appliance.core.linger.shared_address_nodes import Company, Exchange, company
from appliance.core.linger.shared_address_rules import SharedElements
from appliance.core.linger.strays import Strays
from appliance.wire.linger_report import AnsweredNode, LingerReport, ReportedAddress
from appliance.wire.linger_strays import Ends

pytestmark = pytest.mark.pure

ADDRESS: Final = "198.51.100.10"
ROUTER: Final = bytes(5) + b"\xfe"
_TURN: Final = 0.1
_MOST_LOST: Final = 15
"""Turns without any report: less than the seconds that a peer has to be heard."""


class Machine:
    """One node: its kernel's tables, and the program, which can be killed without them."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.mac = name, bytes(5) + bytes([number])
        self.tables = Tables()
        self.lives = True
        self.runs = 0
        self.peers: tuple[str, ...] = ()
        self.start(0.0, fresh=True)

    def start(self, now: float, *, fresh: bool) -> None:
        """Start the program anew: it knows nothing; where it is `fresh` the kernel has no elements either."""
        self.fresh = fresh
        if fresh:
            self.tables = Tables(connections=self.tables.connections)
        self.runs += 1
        numbers = count(1)
        self.nodes = Nodes(draw=lambda: bytes([self.runs % 256, *next(numbers).to_bytes(3)]))
        self.strays = Strays()
        self.sequence = 0
        self.since = now
        self.started = now
        self.company = Company(others={ADDRESS: ()}, settled=False, doubtful=())

    def report(self, now: float) -> LingerReport:
        """Return its report."""
        self.sequence += 1
        answered: tuple[AnsweredNode, ...] = self.nodes.answered(0, family=4, now=now)
        return LingerReport(
            mac=self.mac,
            session=self.runs.to_bytes(8),
            sequence=self.sequence,
            challenge=self.nodes.challenge,
            addresses=(ReportedAddress(address=ADDRESS, active=True, left=0.0, connections=0),),
            answered=answered,
            shared=True,
        )

    def look(self, seen: dict[str, float], now: float) -> None:
        """Do a turn of the program: what it makes of the others becomes elements."""
        exchange = Exchange(peers=self.peers, macs={self.mac}, since=self.since, awake=self.started)
        known = self.nodes.sharing(4, now)
        self.company = company(known, (ADDRESS,), exchange, seen=seen, now=now)
        if now - self.started >= 2.0 or self.fresh:  # elements of an earlier run are left alone
            macs = self.nodes.forwarders(4, now)
            elements = SharedElements(others=self.company.others, alone=self.company.alone, macs=macs)
            self.tables.refresh(elements, now)
        changes = self.strays.changes(self.company.others, settled=self.company.settled, now=now)
        try:
            self.tables.learn(changes, now)
        except (KeyError, AssertionError):  # elements of an earlier run: nft refuses, and all are replaced
            assert not self.fresh
            self.strays.restart()


class Cluster:
    """Nodes on a segment, and clients whose packets a router gives to any of them."""

    def __init__(self, size: int) -> None:
        self.now = 100.0
        self.machines = {f"192.0.2.{at}": Machine(f"192.0.2.{at}", at) for at in range(1, size + 1)}
        for name, each in self.machines.items():
            each.peers = tuple(other for other in self.machines if other != name)
            each.start(self.now, fresh=True)
        self.owners: dict[Ends, Machine] = {}
        self.reset: set[Ends] = set()
        self.lost = 0

    @property
    def living(self) -> list[Machine]:
        """Return the nodes that live."""
        return [each for each in self.machines.values() if each.lives]

    def turns(self, number: int, *, losing: Callable[[], bool] = lambda: False) -> None:
        """Let time pass, with the reports that are not lost."""
        for _ in range(number):
            self.now += _TURN
            self.lost = self.lost + 1 if self.lost < _MOST_LOST and losing() else 0
            self._report()
            self._tell()
            for each in self.living:
                seen = {other.name: self.now for other in self.living}
                each.look(seen, self.now)

    def _report(self) -> None:
        for sender in self.living:
            report = sender.report(self.now)
            for each in self.living:
                if each is not sender and not self.lost:
                    each.nodes.receive(sender.name, report, interface=0, now=self.now)

    def _tell(self) -> None:
        """Exchange what was found out of strays; it is lost where reports are."""
        by_mac = {each.mac: each for each in self.living}
        for sender in self.living:
            found, denied = sender.tables.tell(self.now)
            for mac, each in ((mac, by_mac[mac]) for mac in by_mac if mac != sender.mac and not self.lost):
                told = [[ends for ends, asked in noted if asked == mac] for noted in (found, denied)]
                if not any(told):
                    continue
                sender.sequence += 1
                session = sender.runs.to_bytes(8)
                if each.nodes.follow(sender.name, session, sender.sequence, interface=0) is not None:
                    continue
                for ends in told[0]:
                    each.strays.found(ends, node=sender.name)
                for ends in told[1]:
                    each.strays.denied(ends, node=sender.name, now=self.now)

    def connect(self, ends: Ends, at: Machine) -> None:
        """Have a client connect by this node."""
        decision = at.tables.decide(Kind.SYN, ends, ROUTER, self.now)
        assert decision.fate is Fate.TAKEN  # I3
        at.tables.connections.add(ends)
        self.owners[ends] = at

    def move(self, ends: Ends, to: Machine) -> None:
        """Move a connection to another node, as `migrate` does: packets on the way are dropped meanwhile."""
        owner = self.owners[ends]
        if owner.lives and owner is not to:
            owner.tables.give(ends, self.now)
            to.tables.connections.add(ends)
            self.owners[ends] = to

    def send(self, ends: Ends, at: Machine, kind: Kind = Kind.ACK) -> bool:
        """Have a client send a packet by this node; return whether its connection's node gets it."""
        decision = at.tables.decide(kind, ends, ROUTER, self.now)
        owner = self.owners[ends]
        if decision.fate is Fate.TAKEN:
            if owner is not at:
                assert not owner.lives, f"reset by {at.name}, though {owner.name} lives"  # I6
                self.reset.add(ends)
            return owner is at
        assert owner is not at  # I2
        reached = False
        for name in decision.nodes:
            there = self.machines[name]
            if not there.lives:
                continue
            second = there.tables.decide(kind, ends, at.mac, self.now)
            assert second.fate is not Fate.SENT  # I1
            if second.fate is Fate.TAKEN:
                assert owner is there, "reset by a node that got it from another one"
                reached = True
        return reached


def ends(number: int) -> Ends:
    """Return a connection."""
    return ("203.0.113.5", 1024 + number, ADDRESS, 443)


_SEND: Final = st.tuples(st.sampled_from(list(Kind)), st.integers(0, 3), st.integers(0, 3))
_STEPS: Final = st.lists(
    st.one_of(
        _SEND,
        _SEND,
        st.tuples(st.just("turns"), st.integers(1, 40), st.booleans()),
        st.tuples(st.just("move"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("restart"), st.integers(0, 3), st.booleans()),
        st.tuples(st.just("crash"), st.integers(0, 3), st.just(0)),
    ),
    max_size=40,
)


@settings(deadline=None, max_examples=tiers.examples(1000))
@given(size=st.integers(2, 4), steps=_STEPS)
@example(size=3, steps=[("restart", 1, False), ("turns", 21, True), (Kind.ANSWER, 2, 0)])
def test_no_interleaving_resets_a_connection_whose_node_lives(
    size: int, steps: list[tuple[str, int, int | bool]]
):
    """Packets, moves, restarts of the program, crashes, lost reports: I1, I2, I3, I5, I6 hold always."""
    cluster = Cluster(size)
    cluster.turns(5)
    for number, each in enumerate(cluster.living):
        cluster.connect(ends(number), each)
    for what, first, second in steps:
        living = cluster.living
        if what == "turns":
            cluster.turns(first, losing=lambda lost=bool(second): lost)
        elif what == "restart":
            machine = living[first % len(living)]
            machine.start(cluster.now, fresh=bool(second))
            machine.look({}, cluster.now)  # which makes the rules, if they are gone
        elif what == "crash":
            living[first % len(living)].lives = len(living) == 1
        elif what == "move":
            known = list(cluster.owners)
            cluster.move(known[first % len(known)], living[second % len(living)])
        elif what == Kind.SYN:
            cluster.connect(ends(len(cluster.owners)), living[second % len(living)])
        else:
            known = list(cluster.owners)
            cluster.send(known[first % len(known)], living[second % len(living)], Kind(what))


@settings(deadline=None, max_examples=tiers.examples(200))
@given(
    size=st.integers(2, 16),
    owner=st.integers(0, 15),
    way=st.lists(st.integers(0, 15), min_size=1, max_size=6),
)
def test_any_node_leads_a_packet_to_its_connection(size: int, owner: int, way: list[int]):
    """Whichever node the router chooses, the first packet there reaches it, and later ones go to it alone."""
    cluster = Cluster(size)
    cluster.turns(5)
    machines = cluster.living
    cluster.connect(ends(1), machines[owner % size])
    for each in way:
        at = machines[each % size]
        assert cluster.send(ends(1), at)
        cluster.turns(2)
        assert cluster.send(ends(1), at)
        if at is not machines[owner % size]:
            assert at.tables.owner[ends(1)][0] == machines[owner % size].name


@pytest.mark.parametrize("size", [2, 3, 16])
@pytest.mark.parametrize("led", [False, True])
@pytest.mark.parametrize("kind", [Kind.ACK, Kind.FIN])
def test_connections_of_a_dead_node_are_reset_in_time(size: int, led: bool, kind: Kind):  # noqa: FBT001  # a case
    """One second after its last report, and one more: a client that sends five times a second is reset."""
    cluster = Cluster(size)
    cluster.turns(40)
    dead, at, *_ = cluster.living
    cluster.connect(ends(1), dead)
    if led:
        cluster.send(ends(1), at)
        cluster.turns(2)
    dead.lives = False
    for _ in range(8):
        cluster.turns(2)
        cluster.send(ends(1), at, kind)
    assert ends(1) in cluster.reset


def test_a_client_that_waits_longer_and_longer_is_reset():
    """It doubles the time between its packets: a second one is answered though it comes late."""
    cluster = Cluster(3)
    cluster.turns(40)
    dead, at, _ = cluster.living
    cluster.connect(ends(1), dead)
    dead.lives = False
    for turns in (32, 64, 128):
        cluster.turns(turns)
        cluster.send(ends(1), at)
    assert ends(1) in cluster.reset


def test_what_was_nobodys_may_be_that_of_a_node_that_is_back():
    """All nodes are asked again, before the packet that would have been reset."""
    cluster = Cluster(3)
    cluster.turns(40)
    dead, at, _ = cluster.living
    cluster.connect(ends(1), dead)
    dead.lives = False
    cluster.turns(15)
    assert not cluster.send(ends(1), at)
    cluster.turns(2)
    assert ends(1) in at.tables.nobody
    dead.lives = True
    cluster.turns(5)
    assert cluster.send(ends(1), at)


def test_without_the_program_the_kernel_decides():
    """Elements have an end: then each packet is taken by the node that gets it."""
    cluster = Cluster(2)
    cluster.turns(5)
    one, two = cluster.living
    cluster.connect(ends(1), one)
    cluster.now += 24.0
    one.lives = False
    cluster.send(ends(1), two)
    assert ends(1) in cluster.reset
