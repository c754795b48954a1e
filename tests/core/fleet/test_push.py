"""One configuration for all nodes, whatever refuses, is down, or is lost at whatever step."""

from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.fleet.push import Fate, Order, Outcome, Push, Step, next_step

pytestmark = pytest.mark.pure

A, R, D, L = Outcome.AGREED, Outcome.REFUSED, Outcome.DOWN, Outcome.LOST


def test_all_that_agree_keep_it():
    """Three orders in a row, and both have it."""
    push = Push(("lb-0", "lb-1"))
    assert push.decide({"lb-0": A, "lb-1": A}) is Order.APPLY
    assert push.decide({"lb-0": A, "lb-1": A}) is Order.KEEP
    assert push.decide({"lb-0": A, "lb-1": A}) is None
    assert push.fates == {"lb-0": Fate.ACCEPTED, "lb-1": Fate.ACCEPTED}
    assert push.is_accepted


def test_one_that_is_down_is_left_out():
    """The others have it, and it is named."""
    push = Push(("lb-0", "lb-1"))
    assert push.decide({"lb-0": A, "lb-1": D}) is Order.APPLY
    assert push.taking_part == ("lb-0",)
    assert push.decide({"lb-0": A}) is Order.KEEP
    push.decide({"lb-0": A})
    assert push.fates == {"lb-0": Fate.ACCEPTED, "lb-1": Fate.NOT_REACHED}


@pytest.mark.parametrize("found", [{"lb-0": A, "lb-1": R}, {"lb-0": L, "lb-1": A}, {"lb-0": D, "lb-1": D}])
def test_one_that_refuses_or_hangs_stops_it(found: dict[str, Outcome]):
    """Nobody is told to apply it; nor where nobody can be reached."""
    push = Push(found)
    assert push.decide(found) is None
    assert push.awaited is None
    assert not push.is_accepted


def test_one_that_cannot_apply_it_takes_all_back():
    """Those that do not say that they are back are not known."""
    push = Push(("lb-0", "lb-1"))
    push.decide({"lb-0": A, "lb-1": A})
    assert push.decide({"lb-0": A, "lb-1": D}) is None
    assert push.awaited is Step.BACK
    push.decide({"lb-0": A, "lb-1": L})
    assert push.fates == {"lb-0": Fate.AS_BEFORE, "lb-1": Fate.UNKNOWN}


@dataclass
class Node:
    """A node that obeys `next_step`; `cut` is how many orders reach it before its connection is lost."""

    refuses: Step | None
    down: bool
    cut: int
    done: Step = Step.CHECKED
    has: str = "before"
    ended: bool = False

    def outcome(self, awaited: Step) -> Outcome:
        """Return how the one who pushes sees it."""
        if self.down:
            return Outcome.DOWN
        if self.cut < 0 or self.done is not awaited:
            return Outcome.LOST
        return Outcome.REFUSED if self.refuses is self.done else Outcome.AGREED

    def told(self, order: Order | None) -> None:
        """Take an order, None for the end of the connection."""
        if self.down or self.ended:
            return
        self.cut -= 1
        heard = order if self.cut >= 0 else None
        following = next_step(self.done, heard, succeeded=self.refuses is not self.done)
        if following is None:
            self.ended = True
            return
        self.done = following
        self.has = {Step.APPLIED: "pushed", Step.KEPT: "pushed", Step.BACK: "before"}[following]


NODES = st.lists(
    st.builds(
        Node,
        refuses=st.sampled_from([None, None, Step.CHECKED, Step.APPLIED]),
        down=st.booleans(),
        cut=st.integers(0, 4),
    ),
    min_size=1,
    max_size=5,
)


@given(NODES)
def test_it_is_on_all_or_on_none(nodes: list[Node]):
    """Whatever happens, nobody has it unless all agreed; one that is lost is not called accepted."""
    named = {f"lb-{at}": node for at, node in enumerate(nodes)}
    push, orders = Push(named), []
    while push.awaited is not None:
        order = push.decide({name: named[name].outcome(push.awaited) for name in push.taking_part})
        orders.append(order)
        for node in nodes:
            node.told(order)
    for node in nodes:  # the connections end
        node.cut = 0
        node.told(None)
    assert set(push.fates) == set(named)
    for name, fate in push.fates.items():
        expected = {Fate.ACCEPTED: ["pushed"], Fate.UNKNOWN: ["pushed", "before"]}
        assert named[name].has in expected.get(fate, ["before"])
    if Order.KEEP not in orders:
        assert {node.has for node in nodes} == {"before"}
