"""Which reports of other nodes are believed, and who is there."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.linger.nodes import (
    DOUBTED,
    MOST_NODES,
    MOST_SESSIONS,
    SILENT,
    Keeper,
    Neighbour,
    Nodes,
)
from appliance.wire.linger_report import (
    MOST_ANSWERED,
    AnsweredNode,
    LingerReport,
    ReportDrop,
    ReportedAddress,
)

pytestmark = pytest.mark.pure

VIP = "192.0.2.100"
A, B = "192.0.2.1", "192.0.2.2"
ETH = 2
OURS = bytes(5) + b"\xff"


def nodes() -> Nodes:
    """Return a node's view, whose challenges are 1, 2, 3 and so on."""
    numbers = count(1)
    return Nodes(draw=lambda: next(numbers).to_bytes(4))


def session(number: int) -> bytes:
    """Return the name of a run."""
    return number.to_bytes(8)


def report(
    sequence: int, *, run: int = 1, answers: int = 1, mac: int = 1, left: float = 0.0, active: bool = True
) -> LingerReport:
    """Return a report of VIP that answers one of our challenges."""
    said = ReportedAddress(address=VIP, active=active, left=left, connections=5)
    answered = AnsweredNode(mac=OURS, challenge=answers.to_bytes(4), believed=True)
    return LingerReport(
        mac=bytes(5) + bytes([mac]),
        session=session(run),
        sequence=sequence,
        challenge=(run + 100).to_bytes(4),
        addresses=(said,),
        answered=(answered,),
    )


def test_a_report_is_believed_once():
    """A report that is not newer than the last one of its session is a replay, however long that was ago."""
    known = nodes()
    assert known.receive(A, report(5), interface=ETH, now=0.0) is None
    assert known.receive(A, report(5), interface=ETH, now=1.0) is ReportDrop.REPLAY
    assert known.receive(A, report(4), interface=ETH, now=1e6) is ReportDrop.REPLAY
    assert known.receive(A, report(4), interface=ETH + 1, now=1.0) is None
    assert known.receive(A, report(6, answers=99), interface=ETH, now=1e6) is None


def test_a_new_session_has_to_answer():
    """It is believed when it answers our challenge; meanwhile it is answered, and waits for that."""
    known = nodes()
    assert known.is_new(A, session(1), interface=ETH)
    assert known.receive(A, report(1, answers=99), interface=ETH, now=0.0) is ReportDrop.UNPROVED
    assert not known.is_new(A, session(1), interface=ETH)
    assert known.macs(0.0) == frozenset()
    assert known.forwarders(4, 0.0) == {bytes(5) + b"\1"}
    assert known.forwarders(6, 0.0) == known.forwarders(4, SILENT) == frozenset()
    (answer,) = known.answered(ETH, family=4, now=0.0)
    assert answer == AnsweredNode(mac=bytes(5) + b"\1", challenge=(101).to_bytes(4), believed=False)
    assert known.receive(A, report(2), interface=ETH, now=0.1) is None
    (answer,) = known.answered(ETH, family=4, now=0.1)
    assert answer.believed


def test_what_an_earlier_session_said_is_not_believed_again():
    """A restart needs no clock: the sequence begins anew; what answered us before does not any more."""
    known = nodes()
    assert known.receive(A, report(500, run=1), interface=ETH, now=0.0) is None
    assert known.receive(A, report(1, run=2, answers=2), interface=ETH, now=1.0) is None
    for recorded in (report(500, run=1), report(501, run=1)):
        assert known.receive(A, recorded, interface=ETH, now=1e6) is ReportDrop.UNPROVED
    assert known.receive(A, report(2, run=2), interface=ETH, now=1e6) is None


def test_a_node_that_was_forgotten_is_not_believed_by_old_reports():
    """Of too many nodes the one goes that was silent longest; what it said before is no answer then."""
    known = nodes()
    for number in range(MOST_NODES + 1):
        said = report(1, mac=number, answers=int.from_bytes(known.challenge))
        assert known.receive(f"10.0.0.{number}", said, interface=ETH, now=0.0) is None
    assert len(known.macs(0.0)) == MOST_NODES
    newest = int.from_bytes(known.challenge)
    for recorded in (1, newest - 1):
        said = report(1, answers=recorded)
        assert known.receive("10.0.0.0", said, interface=ETH, now=0.0) is ReportDrop.UNPROVED
    assert known.receive("10.0.0.0", report(2, answers=newest), interface=ETH, now=0.0) is None


def test_nodes_that_start_together_are_believed_together():
    """Each answers the challenge that was there when it heard us, though others were believed meanwhile."""
    known = nodes()
    for number in range(10):
        assert known.receive(f"10.0.0.{number}", report(1, mac=number), interface=ETH, now=0.0) is None


def test_challenges_are_bounded():
    """However often a node restarts, only the last ones are remembered."""
    known = nodes()
    for run in range(1, 2 * MOST_NODES):
        assert known.receive(A, report(1, run=run, answers=run), interface=ETH, now=0.0) is None
    assert known.receive(B, report(1, answers=1), interface=ETH, now=0.0) is ReportDrop.UNPROVED
    assert known.receive(B, report(2, answers=MOST_NODES), interface=ETH, now=0.0) is ReportDrop.UNPROVED
    assert known.receive(B, report(3, answers=2 * MOST_NODES), interface=ETH, now=0.0) is None


@given(
    st.lists(
        st.tuples(st.sampled_from(["send", "lose", "restart", "replay"]), st.integers(0, 50)), max_size=60
    )
)
def test_only_what_is_newer_is_believed(happenings: list[tuple[str, int]]):
    """Whatever is lost, restarted, or sent again by a stranger: nothing older is believed, nothing twice."""
    known, runs, sequence = nodes(), count(1), count(1)
    run, seen, recorded, believed = next(runs), 99, list[tuple[int, LingerReport]](), list[int]()
    for happening, number in happenings:
        if happening == "restart":
            run, seen = next(runs), 99
        elif happening == "replay" and recorded:
            made, again = recorded[number % len(recorded)]
            if known.receive(A, again, interface=ETH, now=0.0) is None:
                believed.append(made)
        elif happening != "replay":
            made = next(sequence)
            recorded.append((made, report(made, run=run, answers=seen)))
            if happening == "send" and known.receive(A, recorded[-1][1], interface=ETH, now=0.0) is None:
                believed.append(made)
            seen = int.from_bytes(known.challenge)
    assert believed == sorted(set(believed))


def answers(known: Nodes, now: float) -> list[tuple[int, bool]]:
    """Return the runs of nodes that are answered, each with whether it is believed."""
    found = known.answered(ETH, family=4, now=now)
    return [(int.from_bytes(each.challenge) - 100, each.believed) for each in found]


def test_a_recorded_report_takes_no_place():
    """The session that lives is answered as before; the one of the record beside it, and not for long."""
    known = nodes()
    assert known.receive(A, report(1, run=2), interface=ETH, now=0.0) is None
    for step in range(40):
        now = step * 0.2
        assert known.receive(A, report(9, run=1), interface=ETH, now=now) is ReportDrop.UNPROVED
        assert known.receive(A, report(2 + step, run=2), interface=ETH, now=now) is None
        assert not known.is_new(A, session(1), interface=ETH)
        assert not known.is_new(A, session(2), interface=ETH)
        assert answers(known, now) == [(2, True), *([(1, False)] if now < SILENT else [])]
        assert known.forwarders(4, now) == {bytes(5) + b"\1"}


def test_a_restart_while_reports_are_replayed():
    """A report of the new session is answered, whatever was recorded of earlier ones, and in what order."""
    known = nodes()
    assert known.receive(A, report(5, run=1), interface=ETH, now=0.0) is None
    assert known.receive(A, report(1, run=2, answers=99), interface=ETH, now=0.1) is ReportDrop.UNPROVED
    assert answers(known, 0.1) == [(1, True), (2, False)]
    for recorded in (report(5, run=1), report(4, run=1), report(1, run=2, answers=99)):
        assert known.receive(A, recorded, interface=ETH, now=0.2) is not None
        assert answers(known, 0.2) == [(1, True), (2, False)]
    assert known.receive(A, report(2, run=2, answers=2), interface=ETH, now=0.3) is None
    assert answers(known, 0.3) == [(2, True), (1, False)]


def test_sessions_are_bounded():
    """Of too many that are not accepted the oldest one goes; the accepted one stays."""
    known = nodes()
    for run in range(1, MOST_SESSIONS + 2):
        known.receive(A, report(1, run=run, answers=99), interface=ETH, now=0.0)
    assert answers(known, 0.0) == [(run, False) for run in range(MOST_SESSIONS + 1, 1, -1)]
    known.receive(A, report(2, run=2), interface=ETH, now=0.0)
    for run in range(20, 30):
        known.receive(A, report(1, run=run, answers=99), interface=ETH, now=0.0)
    assert answers(known, 0.0) == [(2, True), (29, False), (28, False), (27, False)]
    assert known.is_new(A, session(1), interface=ETH)


def test_no_node_is_displaced_by_replays():
    """A report that is full answers each node once, before further sessions of any."""
    known = nodes()
    for number in range(MOST_ANSWERED):
        at = f"10.0.0.{number}"
        for run in (1, 2):
            known.receive(at, report(1, run=run, mac=number, answers=99), interface=ETH, now=0.0)
        if number:
            known.receive(at, report(1, run=3, mac=number), interface=ETH, now=0.0)
    found = known.answered(ETH, family=4, now=0.0)
    assert [(each.mac[-1], each.believed) for each in found[:MOST_ANSWERED]] == [
        (number, number > 0) for number in range(MOST_ANSWERED)
    ]
    assert not any(each.believed for each in found[MOST_ANSWERED:])
    newest = MOST_ANSWERED - 1
    assert [(each.mac[-1], each.challenge[-1] - 100) for each in found[MOST_ANSWERED:][:3]] == [
        (newest, 2),
        (newest, 1),
        (newest - 1, 2),
    ]


class _Party:
    """One of two nodes that exchange reports; `runs` counts its sessions."""

    def __init__(self, address: str, mac: int) -> None:
        self.address, self.mac, self.runs = address, bytes(5) + bytes([mac]), 0
        self.restart()

    def restart(self) -> None:
        """Begin a new session that knows nothing."""
        self.runs += 1
        self.sequence = 0
        drawn = count(1)
        self.nodes = Nodes(draw=lambda: bytes([self.mac[-1], self.runs]) + next(drawn).to_bytes(2))

    def said(self) -> LingerReport:
        """Return the next report."""
        self.sequence += 1
        return LingerReport(
            mac=self.mac,
            session=session(self.runs),
            sequence=self.sequence,
            challenge=self.nodes.challenge,
            addresses=(),
            answered=self.nodes.answered(ETH, family=4, now=0.0)[:MOST_ANSWERED],
        )

    def is_heard(self) -> bool:
        """Return whether the other one accepts the reports of this session, as far as this one knows."""
        return any(self.mac in each.heard for each in self.nodes.neighbours(ETH, family=4, now=0.0))


def _exchange(
    one: _Party, two: _Party, records: Iterator[int], recorded: list[tuple[str, LingerReport]]
) -> None:
    """Send a report in each direction, with two recorded ones of any time sent again after each."""
    for sender, receiver in ((one, two), (two, one)):
        said = sender.said()
        recorded.append((sender.address, said))
        receiver.nodes.receive(sender.address, said, interface=ETH, now=0.0)
        for _ in range(2):
            source, again = recorded[next(records) % len(recorded)]
            victim = one if source == two.address else two
            victim.nodes.receive(source, again, interface=ETH, now=0.0)


@given(
    st.lists(st.sampled_from(["exchange", "restart one", "restart two", "reload one"]), max_size=15),
    st.randoms(use_true_random=False),
)
def test_replays_delay_nothing(happenings: list[str], random: Random):
    """After a restart two exchanges suffice, as without replays; and each knows all the time what holds."""
    one, two = _Party(A, 1), _Party(B, 2)
    recorded: list[tuple[str, LingerReport]] = []
    records = iter(lambda: random.randrange(1000), None)
    for happening in [*happenings, "exchange"]:
        if happening == "restart one":
            one.restart()
        elif happening == "restart two":
            two.restart()
        elif happening == "reload one":
            one.runs, one.sequence = one.runs + 1, 0
            one.nodes.begin_session()
        else:
            _exchange(one, two, records, recorded)
            _exchange(one, two, records, recorded)
            assert (one.is_heard(), two.is_heard()) == (True, True)
            continue
        restarted = two if happening == "restart two" else one
        assert not restarted.is_heard()


def test_an_answer_to_a_former_session():
    """It is believed, and so not about this session; nor is what others answered before a reload."""
    known = nodes()
    former = AnsweredNode(mac=OURS, challenge=(77).to_bytes(4), believed=True)
    present = AnsweredNode(mac=OURS, challenge=(1).to_bytes(4), believed=False)
    said = replace(report(1), answered=(former, present))
    assert known.receive(A, said, interface=ETH, now=0.0) is None
    assert [each.heard for each in known.neighbours(ETH, family=4, now=0.0)] == [frozenset()]
    said = replace(report(2), answered=(replace(present, believed=True), replace(former, believed=False)))
    assert known.receive(A, said, interface=ETH, now=0.0) is None
    assert [each.heard for each in known.neighbours(ETH, family=4, now=0.0)] == [{OURS}]
    known.begin_session()
    assert [each.heard for each in known.neighbours(ETH, family=4, now=0.0)] == [frozenset()]
    assert known.receive(A, report(3, answers=3), interface=ETH, now=0.0) is None
    assert [each.heard for each in known.neighbours(ETH, family=4, now=0.0)] == [{OURS}]


def test_a_forgotten_node_changes_nothing_for_the_others():
    """What they answer is to a challenge of ours as before."""
    known = nodes()
    for number in range(MOST_NODES + 1):
        said = report(1, mac=number, answers=int.from_bytes(known.challenge))
        assert known.receive(f"10.0.0.{number}", said, interface=ETH, now=0.0) is None
    newest = known.neighbours(ETH, family=4, now=0.0)[-2:]
    assert [(each.node, each.heard) for each in newest] == [
        (f"10.0.0.{number}", {OURS}) for number in (MOST_NODES - 1, MOST_NODES)
    ]


def test_keepers_of_our_addresses():
    """Only addresses of ours, on their own interface, of nodes that speak."""
    known = nodes()
    known.receive(A, report(1, left=3.0, active=False), interface=ETH, now=10.0)
    known.receive(B, report(1, mac=2), interface=ETH + 1, now=10.0)
    (found,) = known.keepers({VIP: ETH}, 11.0)
    assert found == Keeper(
        node=A,
        mac=bytes(5) + b"\1",
        address=VIP,
        active=False,
        left_at=7.0,
        connections=5,
        heard=frozenset({OURS}),
    )
    assert known.keepers({}, 11.0) == ()
    assert known.macs(11.0) == {bytes(5) + b"\1", bytes(5) + b"\2"}
    assert known.keepers({VIP: ETH}, 10.0 + SILENT) == ()
    assert known.macs(10.0 + SILENT) == frozenset()


def test_who_is_answered():
    """By version of IP and interface, as long as they speak, first those that wait to be believed."""
    known = nodes()
    known.receive(A, report(1), interface=ETH, now=10.0)
    known.receive("192.0.2.9", report(1, mac=9, answers=99), interface=ETH, now=10.0)
    known.receive("fe80::2", report(1, mac=2), interface=ETH, now=10.0)
    known.receive(B, report(1, mac=3), interface=ETH + 1, now=10.0)
    found = [(each.mac[-1], each.believed) for each in known.answered(ETH, family=4, now=11.0)]
    assert found == [(9, False), (1, True)]
    assert [each.mac[-1] for each in known.answered(ETH, family=6, now=11.0)] == [2]
    assert known.answered(ETH, family=4, now=10.0 + SILENT) == ()


def test_who_does_not_believe_us_has_not_heard_us():
    """A node that answers us, and waits for our answer, does not know yet what we have."""
    known = nodes()
    unsure = report(1)
    answered = tuple(replace(each, believed=False) for each in unsure.answered)
    known.receive(A, replace(unsure, answered=answered), interface=ETH, now=0.0)
    (found,) = known.keepers({VIP: ETH}, 0.0)
    assert found.heard == frozenset()


def test_neighbours():
    """They are believed, since their session was; by version of IP and interface."""
    known = nodes()
    known.receive(A, report(1), interface=ETH, now=10.0)
    known.receive(A, report(2), interface=ETH, now=11.0)
    known.receive("192.0.2.9", report(1, answers=99), interface=ETH, now=10.0)
    known.receive(B, report(1), interface=ETH + 1, now=10.0)
    assert known.neighbours(ETH, family=4, now=11.0) == (
        Neighbour(node=A, since=10.0, heard=frozenset({OURS})),
    )
    assert known.neighbours(ETH, family=6, now=11.0) == ()


def test_a_node_that_is_probably_dead():
    """With its advertisements gone a node is waited for no longer, unless it reports again."""
    known = nodes()
    known.receive(A, report(1), interface=ETH, now=0.0)
    known.doubt(["192.0.2.101"])
    assert known.keepers({VIP: ETH}, DOUBTED)
    known.doubt([VIP])
    assert known.keepers({VIP: ETH}, DOUBTED - 0.1)
    assert not known.keepers({VIP: ETH}, DOUBTED)
    known.receive(A, report(2), interface=ETH, now=2.0)
    assert known.keepers({VIP: ETH}, 2.0 + DOUBTED)


def test_what_a_node_tells_besides_its_reports():
    """It is accepted in the session whose report was, and once; its number counts for the reports, too."""
    known = nodes()
    assert known.follow(A, session(1), 6, interface=ETH) is ReportDrop.UNPROVED
    known.receive(A, report(5), interface=ETH, now=0.0)
    assert known.follow(A, session(2), 6, interface=ETH) is ReportDrop.UNPROVED
    assert known.follow(A, session(1), 5, interface=ETH) is ReportDrop.REPLAY
    assert known.follow(A, session(1), 6, interface=ETH) is None
    assert known.follow(A, session(1), 6, interface=ETH) is ReportDrop.REPLAY
    assert known.receive(A, report(6), interface=ETH, now=1.0) is ReportDrop.REPLAY


def test_nodes_that_share_addresses():
    """They are known with their addresses, by family, until they are silent."""
    known = nodes()
    known.receive(A, report(5), interface=ETH, now=1.0)
    known.receive("fd00::2", report(5, answers=2, mac=2), interface=ETH, now=2.0)
    (found,) = known.sharing(4, 3.0)
    assert (found.node, found.mac, found.since, found.at) == (A, bytes(5) + b"\x01", 1.0, 1.0)
    assert (found.addresses, found.heard) == ({VIP: True}, {OURS})
    assert [each.node for each in known.sharing(6, 3.0)] == ["fd00::2"]
    assert known.sharing(4, 1.0 + SILENT) == ()
