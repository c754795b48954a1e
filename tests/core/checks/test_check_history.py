"""What monitoring wants to know of checks."""

from dataclasses import replace

import pytest
from support.values import boards

from appliance.core.checks.check_history import CheckHistory
from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.server_states import HealthVerdict
from appliance.wire.boards.health_board import CHECK_BOUNDS

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
