"""The table of states of a shared IP."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.announce.announce_or_withdraw import (
    FORGOTTEN,
    LONGEST_PAUSE,
    PAUSE,
    Announced,
    Gate,
    SharedState,
    adopted,
    after,
    begun,
    due,
)
from appliance.model.snapshot.shared_ip import Unhealthy

pytestmark = pytest.mark.pure

UP = Gate(tracks=True)
DOWN = Gate(tracks=False, why="servers is down")
UNKNOWN = Gate(tracks=None, why="servers has no verdict yet")
UNREADY = Gate(tracks=True, unready="others are not forwarded")
LEAVES = Gate(tracks=True, leaves=True)
DRAIN = 5.0

STARTING, SERVING, DRAINED, WITHDRAWN = SharedState


def _next(
    before: Announced, gate: Gate, now: float, unhealthy: Unhealthy = Unhealthy.LAST_RESORT
) -> Announced:
    return after(before, gate, unhealthy=unhealthy, drain=DRAIN, now=now)


def _in(state: SharedState, *failures: float) -> Announced:
    return Announced(state=state, since=0.0, reason="before", failures=failures)


@pytest.mark.parametrize(
    ("state", "gate", "expected"),
    [
        (STARTING, UNKNOWN, STARTING),
        (STARTING, UNREADY, STARTING),
        (STARTING, UP, SERVING),
        (STARTING, DOWN, DRAINED),
        (STARTING, LEAVES, WITHDRAWN),
        (SERVING, UNKNOWN, SERVING),
        (SERVING, UNREADY, SERVING),
        (SERVING, UP, SERVING),
        (SERVING, DOWN, DRAINED),
        (SERVING, LEAVES, DRAINED),
        (DRAINED, UNKNOWN, DRAINED),
        (DRAINED, UNREADY, DRAINED),
        (DRAINED, UP, SERVING),
        (DRAINED, DOWN, DRAINED),
        (DRAINED, LEAVES, DRAINED),
        (WITHDRAWN, UNKNOWN, STARTING),
        (WITHDRAWN, UNREADY, STARTING),
        (WITHDRAWN, UP, SERVING),
        (WITHDRAWN, DOWN, DRAINED),
        (WITHDRAWN, LEAVES, WITHDRAWN),
    ],
)
def test_every_state_with_every_gate(state: SharedState, gate: Gate, expected: SharedState):
    """The table, whole, for the policy that keeps an address as the last resort."""
    assert _next(_in(state), gate, 1.0).state is expected


@pytest.mark.parametrize("state", list(SharedState))
def test_the_other_policy_withdraws_at_once(state: SharedState):
    """With `withdraw` a node whose tracks are down announces nothing."""
    assert _next(_in(state), DOWN, 1.0, Unhealthy.WITHDRAW).state is WITHDRAWN


def test_a_node_that_leaves_drains_first():
    """It is drained for as long as configured, also if it was drained for another reason before."""
    drained = _next(_in(SERVING), LEAVES, 10.0)
    assert due(drained, LEAVES, drain=DRAIN) == 15.0
    assert _next(drained, LEAVES, 14.9).state is DRAINED
    assert _next(drained, LEAVES, 15.0).state is WITHDRAWN
    failed = _next(_in(SERVING), DOWN, 10.0)
    assert _next(_next(failed, LEAVES, 100.0), LEAVES, 104.9).state is DRAINED


def test_it_returns_when_it_takes_part_again():
    """A withdrawn address is served again at once: nothing has failed."""
    withdrawn = _in(WITHDRAWN)
    assert _next(withdrawn, UP, 1.0).state is SERVING
    assert due(withdrawn, UP, drain=DRAIN) == 0.0


def test_each_failure_makes_it_wait_longer():
    """After a failure it is served again after a pause, which doubles up to a limit, and is forgotten."""
    state, now, pauses = _in(SERVING), 1000.0, []
    for _ in range(7):
        state = _next(state, DOWN, now)
        pauses.append(state.pause)
        now += state.pause
        before = _next(state, UP, now - 0.01)
        assert before.state is DRAINED
        assert "it waits" in before.reason
        assert due(state, UP, drain=DRAIN) == pytest.approx(now)
        state = _next(state, UP, now)
        assert state.state is SERVING
    assert pauses == [PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE, 16 * PAUSE, LONGEST_PAUSE, LONGEST_PAUSE]
    assert _next(state, UP, now + FORGOTTEN).failures == ()


def test_a_reason_that_changes_keeps_the_time():
    """`since` is when the state began; the reason is the present one."""
    state = _next(_in(SERVING), DOWN, 3.0)
    later = _next(state, Gate(tracks=False, why="routers is down"), 9.0)
    assert (later.since, later.reason) == (3.0, "routers is down")
    assert _next(later, Gate(tracks=False, why="routers is down"), 10.0) is not None


@pytest.mark.parametrize("state", [SERVING, DRAINED])
def test_a_restart_keeps_what_was_announced(state: SharedState):
    """Until the tracks have verdicts, an adopted address stays as it is; a new one starts."""
    assert _next(adopted(state, 1.0), UNKNOWN, 2.0).state is state
    assert begun(1.0).state is STARTING
    assert not begun(1.0).is_announced
    assert adopted(state, 1.0).is_announced


def test_nothing_is_due_without_a_change():
    """An address that serves, or whose tracks are down, waits for news only."""
    assert due(_in(SERVING), UP, drain=DRAIN) is None
    assert due(_in(DRAINED), DOWN, drain=DRAIN) is None


@given(
    st.lists(
        st.tuples(st.sampled_from([UP, DOWN, UNKNOWN, UNREADY, LEAVES]), st.floats(0.0, 20.0)), max_size=40
    ),
    st.sampled_from(list(Unhealthy)),
)
def test_it_is_never_served_against_the_gate(steps: list[tuple[Gate, float]], unhealthy: Unhealthy):
    """Only tracks that are up make it served, never sooner than the pause after a failure."""
    state, now = begun(0.0), 0.0
    for gate, wait in steps:
        now += wait
        before, state = state, _next(state, gate, now, unhealthy)
        if state.state is SERVING and before.state is not SERVING:
            assert gate is UP
            assert not state.failures or now - state.failures[-1] >= min(PAUSE, state.pause)
        if gate is DOWN or gate is LEAVES:
            assert state.state is not SERVING
        assert state.since <= now
