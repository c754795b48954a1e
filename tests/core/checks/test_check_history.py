"""What monitoring wants to know of checks."""

from dataclasses import replace

import pytest
from support.values import boards

from appliance.core.checks.check_history import CheckHistory, PoolHistories
from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict, ServerState
from appliance.wire.boards.health_board import CHECK_BOUNDS, PoolHealthRecord

pytestmark = pytest.mark.pure

GOOD = CheckOutcome(result=CheckResult.L7OK)
BAD = CheckOutcome(result=CheckResult.L7STS)
UP, DOWN, UNKNOWN = HealthVerdict.UP, HealthVerdict.DOWN, HealthVerdict.UNKNOWN


def test_a_fall_and_a_rise():
    """Going down is counted, and how long it lasted when it is over; the first verdict takes no time."""
    history = CheckHistory()
    history.verdict_changed(before=UNKNOWN, after=UP, seconds=3.0)
    history.verdict_changed(before=UP, after=DOWN, seconds=5.0)
    assert (history.downs, history.down_seconds) == (1, 0.0)
    history.verdict_changed(before=DOWN, after=UP, seconds=7.0)
    assert (history.downs, history.down_seconds) == (1, 7.0)


@pytest.mark.parametrize(
    ("result", "verdict", "counted"),
    [("good", UP, 0), ("bad", UP, 1), ("bad", UNKNOWN, 1), ("bad", DOWN, 0), ("good", DOWN, 0)],
)
def test_failures_count_while_it_is_up(result: str, verdict: HealthVerdict, counted: int):
    """HAProxy's chkfail: a server that is down fails again and again, and that is nothing new."""
    history = CheckHistory()
    history.check_ended(GOOD if result == "good" else BAD, verdict=verdict)
    assert history.failed_up == counted


@pytest.mark.parametrize(
    ("seconds", "position"), [(0.0, 0), (0.001, 0), (0.0011, 1), (10.0, 12), (11.0, len(CHECK_BOUNDS))]
)
def test_checks_are_counted_by_what_they_took(seconds: float, position: int):
    """A bound belongs to its class."""
    history = CheckHistory()
    history.check_ended(replace(GOOD, duration=seconds), verdict=UP)
    assert (history.check_times.index(1), sum(history.check_times)) == (position, 1)
    assert history.check_seconds == seconds


def test_it_goes_on_after_a_restart():
    """What the board says is where the next process begins."""
    times = (1,) * (len(CHECK_BOUNDS) + 1)
    counted = {"downs": 2, "failed_up": 3, "down_seconds": 4.0, "check_seconds": 5.0, "reused": 6}
    history = CheckHistory.of(boards.health(**counted, check_times=times))
    history.check_ended(BAD, verdict=UP)
    history.check_ended(replace(GOOD, reused=True, duration=9.0), verdict=UP)
    assert (history.downs, history.failed_up, history.down_seconds, history.reused) == (2, 4, 4.0, 7)
    assert (history.check_seconds, history.check_times[:2]) == (14.0, [2, 1])


def _looks(*states: tuple[ServerState, ...], records: tuple[PoolHealthRecord, ...] = ()) -> PoolHealthRecord:
    """Return what is known of a pool after looks at its servers, one each ten seconds from 10 on."""
    histories = PoolHistories(records, now=0.0, wall=1000.0)
    for number, members in enumerate(states, start=1):
        weighed = [(state, 0.0 if state is ServerState.DOWN else 1.0) for state in members]
        histories.look({"pool": weighed}, now=10.0 * number)
    (found,) = histories.records(now=100.0, wall=1100.0)
    return found


_UP, _DOWN, _CHECKING = ServerState.UP, ServerState.DOWN, ServerState.CHECKING


@pytest.mark.parametrize(
    ("states", "downs", "seconds", "since"),
    [
        ([(_UP, _DOWN)], 0, 0.0, 0.0),
        ([(_UP, _DOWN), (_DOWN, _DOWN)], 1, 0.0, 1020.0),
        ([(_DOWN, _DOWN), (_DOWN, _DOWN), (_DOWN, _UP)], 1, 20.0, 0.0),
        ([(_UP,), (ServerState.DRAIN,), (_UP,), (ServerState.MAINT,)], 2, 10.0, 1040.0),
        ([(_CHECKING, _DOWN)], 0, 0.0, 0.0),
        ([(_DOWN, _DOWN), (_CHECKING, _DOWN), (_UP, _DOWN)], 1, 20.0, 0.0),
        ([()], 1, 0.0, 1010.0),
    ],
)
def test_a_pool_is_down_while_no_server_takes_connections(
    states: list[tuple[ServerState, ...]], downs: int, seconds: float, since: float
):
    """One that is not judged yet decides nothing; drain and maint count as in HAProxy."""
    found = _looks(*states)
    assert (found.downs, found.down_seconds, found.down_since) == (downs, seconds, since)


def test_a_server_without_weight_takes_no_connections():
    """HAProxy counts such a backend as down, too."""
    histories = PoolHistories((), now=0.0, wall=0.0)
    histories.look({"pool": [(ServerState.UP, 0.0)]}, now=1.0)
    assert [each.downs for each in histories.records(now=1.0, wall=1.0)] == [1]


def test_pools_go_on_after_a_restart():
    """What was down stays down since then; pools that are gone are forgotten."""
    before = (
        PoolHealthRecord(pool="pool", downs=3, down_seconds=5.0, down_since=990.0),
        PoolHealthRecord(pool="gone", downs=9),
    )
    assert _looks((_DOWN,), records=before) == before[0]
    assert _looks((_UP,), records=before) == PoolHealthRecord(pool="pool", downs=3, down_seconds=25.0)
