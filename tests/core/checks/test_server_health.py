"""A server's verdict, weight and deadlines, with literal times and against a simple model."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.health.server_health import BAD, CHECK, fallen, feed, record_of, settings_of

from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState
from appliance.model.snapshot.pools import CheckInit

pytestmark = pytest.mark.pure

PRESUMED = {
    CheckInit.CHECK: HealthVerdict.UNKNOWN,
    CheckInit.UP: HealthVerdict.UP,
    CheckInit.DOWN: HealthVerdict.DOWN,
}


@pytest.mark.parametrize(
    ("init", "result", "verdict", "event"),
    [
        (CheckInit.CHECK, "+", HealthVerdict.UP, HealthEvent.UP),
        (CheckInit.CHECK, "-", HealthVerdict.DOWN, HealthEvent.DOWN),
        (CheckInit.UP, "+", HealthVerdict.UP, None),
        (CheckInit.UP, "-", HealthVerdict.DOWN, HealthEvent.DOWN),
        (CheckInit.DOWN, "+", HealthVerdict.UP, HealthEvent.UP),
        (CheckInit.DOWN, "-", HealthVerdict.DOWN, None),
    ],
)
def test_the_first_check_decides(
    init: CheckInit, result: str, verdict: HealthVerdict, event: HealthEvent | None
):
    """The first result is the verdict, whatever was presumed; from then on it takes rise and fall."""
    health = ServerHealth(settings_of(replace(CHECK, init=init)), now=0.0)
    assert feed(health, result) == [event]
    assert health.verdict is verdict
    assert feed(health, "-" if result == "+" else "+", now=1.0) == [None]


def test_a_server_without_a_verdict_is_being_checked():
    """Until the first check has ended operators see `checking`, and it is due at once."""
    health = ServerHealth(settings_of(), now=5.0)
    assert (health.state, health.verdict, health.deadline) == (
        ServerState.CHECKING,
        HealthVerdict.UNKNOWN,
        5.0,
    )


def test_fall_and_rise_count_results_in_a_row():
    """Three failures in a row take a server down, two successes in a row bring it back."""
    health = ServerHealth(settings_of(), now=0.0)
    assert feed(health, "+--+---") == [HealthEvent.UP, None, None, None, None, None, HealthEvent.DOWN]
    assert feed(health, "+-+-++") == [None] * 5 + [HealthEvent.UP]


@settings(deadline=None)  # a busy machine is no failure
@given(st.text("+-", max_size=60), st.integers(1, 5), st.integers(1, 5), st.sampled_from(CheckInit))
def test_verdicts_are_those_of_a_simple_model(results: str, rise: int, fall: int, init: CheckInit):
    """For any results, a verdict is that of the last run of `rise` successes or `fall` failures."""
    health = ServerHealth(settings_of(replace(CHECK, rise=rise, fall=fall, init=init)), now=0.0)
    expected = {
        CheckInit.CHECK: HealthVerdict.UNKNOWN,
        CheckInit.UP: HealthVerdict.UP,
        CheckInit.DOWN: HealthVerdict.DOWN,
    }[init]
    for index in range(len(results)):
        past = results[: index + 1]
        if index == 0:
            expected = HealthVerdict.UP if past == "+" else HealthVerdict.DOWN
        elif past.endswith("+" * rise):
            expected = HealthVerdict.UP
        elif past.endswith("-" * fall):
            expected = HealthVerdict.DOWN
        before = health.verdict
        events = feed(health, results[index], now=float(index))
        assert health.verdict is expected
        assert (events != [None]) == (health.verdict is not before)
    assert health.failed == results.count("-")


@settings(deadline=None)  # a busy machine is no failure
@given(st.text("+-", min_size=1, max_size=60))
def test_the_streak_counts_results_like_the_last(results: str):
    """The streak is the length of the run that the last result ends."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, results)
    assert health.streak == len(results) - len(results.rstrip(results[-1]))


def test_a_server_without_a_check_is_up_and_never_due():
    """No check, no deadline; a result that comes anyway is nobody's."""
    health = ServerHealth(settings_of(None), now=0.0)
    assert (health.verdict, health.deadline, health.weight) == (HealthVerdict.UP, None, 100.0)
    assert health.check_ended(BAD, started=1.0, now=1.0) is None
    health.check_not_made(started=1.0, now=1.0)
    assert (health.verdict, health.deadline) == (HealthVerdict.UP, None)


def test_a_drained_server_is_still_checked():
    """Drain changes the state that the operator wants, and no check."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, "+")
    assert health.set_admin(AdminState.DRAIN, now=3.0) is HealthEvent.DRAIN
    assert (health.state, health.since, health.next_check) == (ServerState.DRAIN, 3.0, 10.0)
    assert feed(health, "---", now=4.0)[-1] is HealthEvent.DOWN
    assert health.state is ServerState.DOWN
    assert health.set_admin(AdminState.DRAIN, now=9.0) is None
    assert health.set_admin(AdminState.READY, now=9.0) is HealthEvent.READY


def test_a_server_in_maint_is_left_alone():
    """No check is due, and one that was under way counts for nothing."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, "+")
    assert health.set_admin(AdminState.MAINT, now=1.0) is HealthEvent.MAINT
    assert (health.state, health.deadline) == (ServerState.MAINT, None)
    assert feed(health, "---", now=2.0) == [None] * 3
    assert (health.verdict, health.failed) == (HealthVerdict.UP, 0)


def test_leaving_maint_begins_as_at_the_start():
    """A server that was up before is checked at once, and that check decides."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, "+")
    health.set_admin(AdminState.MAINT, now=1.0)
    assert health.set_admin(AdminState.READY, now=50.0) is HealthEvent.READY
    assert (health.state, health.next_check) == (ServerState.CHECKING, 50.0)
    assert feed(health, "-", now=50.0) == [HealthEvent.DOWN]


def test_leaving_maint_after_a_failure_takes_a_rise():
    """A server that was down before is down until it has risen, and then ramps."""
    health = fallen(slow_start=60.0)
    health.set_admin(AdminState.MAINT, now=1.0)
    health.set_admin(AdminState.READY, now=50.0)
    assert health.state is ServerState.DOWN
    assert feed(health, "++", now=50.0) == [None, HealthEvent.UP]
    assert health.weight == 5.0


@pytest.mark.parametrize(
    ("init", "result", "event"),
    [
        (CheckInit.CHECK, "+", HealthEvent.UP),
        (CheckInit.UP, "-", HealthEvent.DOWN),
        (CheckInit.UP, "+", None),
        (CheckInit.DOWN, "+", HealthEvent.UP),
        (CheckInit.DOWN, "-", None),
    ],
)
def test_the_first_check_after_maint_decides(init: CheckInit, result: str, event: HealthEvent | None):
    """A server that was up before maint begins as presumed, and one check decides again."""
    health = ServerHealth(settings_of(replace(CHECK, init=init)), now=0.0)
    feed(health, "++")
    health.set_admin(AdminState.MAINT, now=3.0)
    health.set_admin(AdminState.READY, now=50.0)
    assert (health.last.result, health.checked_at) == (CheckResult.UNCHECKED, None)
    assert feed(health, result, now=50.0) == [event]


def test_new_settings_keep_the_verdict():
    """Another path or interval is no reason to take a server out: a new check begins a new streak."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, "+--")
    changed = settings_of(replace(CHECK, path="/livez"), weight=7, at=0.5)
    assert health.change_settings(changed, now=9.0, window=1.0) is None
    assert (health.verdict, health.streak, health.next_check, health.weight) == (
        HealthVerdict.UP,
        0,
        9.5,
        7.0,
    )
    assert feed(health, "---", now=10.0) == [None, None, HealthEvent.DOWN]


def test_the_same_check_goes_on_undisturbed():
    """A new weight alone changes no streak and no deadline."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, "+--")
    due = health.next_check
    assert health.change_settings(settings_of(weight=1), now=5.0) is None
    assert (health.streak, health.next_check, health.weight) == (2, due, 1.0)


@pytest.mark.parametrize(("results", "event"), [("", HealthEvent.UP), ("-", HealthEvent.UP), ("+", None)])
def test_a_check_taken_away_leaves_the_server_up(results: str, event: HealthEvent | None):
    """An unchecked server is up, whatever the checks said before."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, results)
    assert health.change_settings(settings_of(None), now=5.0) is event
    assert (health.verdict, health.deadline) == (HealthVerdict.UP, None)


def test_a_check_that_is_new_does_not_take_the_server_out():
    """A server that had no check stays up until its new check has failed often enough."""
    health = ServerHealth(settings_of(None), now=0.0)
    assert health.change_settings(settings_of(), now=5.0) is None
    assert (health.verdict, health.next_check) == (HealthVerdict.UP, 5.0)
    assert feed(health, "---", now=5.0) == [None, None, HealthEvent.DOWN]


@settings(deadline=None)  # a busy machine is no failure
@given(st.text("+-", max_size=20), st.sampled_from(AdminState))
def test_a_restarted_process_goes_on_where_the_last_one_was(results: str, admin: AdminState):
    """Verdict, streak, since, counters and the last result come back from the board; a check is due."""
    before = ServerHealth(settings_of(), now=1000.0)
    feed(before, results, now=1000.0)
    before.set_admin(admin, now=1100.0)
    after = ServerHealth(settings_of(), now=5.0, admin=admin)
    after.restore(record_of(before, now=1200.0, wall=9000.0), now=5.0, wall=9000.0)
    assert (after.verdict, after.admin, after.failed) == (before.verdict, before.admin, before.failed)
    if before.verdict is not HealthVerdict.UNKNOWN:
        assert (after.streak, after.last) == (before.streak, before.last)
        assert after.since == pytest.approx(before.since - 1195.0)
        assert after.next_check == (None if admin is AdminState.MAINT else 5.0)
    tail = "---" if before.verdict is HealthVerdict.UP else "++"
    if results and admin is AdminState.READY:
        assert feed(after, tail, now=6.0) == feed(before, tail, now=1201.0)


def test_what_was_never_checked_has_no_time_to_restore():
    """A server presumed up and killed before its first check comes back unchecked."""
    presumed = settings_of(replace(CHECK, init=CheckInit.UP))
    after = ServerHealth(presumed, now=5.0)
    after.restore(record_of(ServerHealth(presumed, now=1.0), now=1.0, wall=1.0), now=5.0, wall=1.0)
    assert (after.verdict, after.checked_at, after.streak) == (HealthVerdict.UP, None, 0)
    assert feed(after, "-", now=6.0) == [HealthEvent.DOWN]


def test_an_operator_state_set_in_between_has_its_own_time():
    """Where the board and the operator's file differ, the file is right, since now."""
    before = ServerHealth(settings_of(), now=0.0)
    feed(before, "+")
    after = ServerHealth(settings_of(), now=50.0, admin=AdminState.DRAIN)
    after.restore(record_of(before, now=40.0, wall=40.0), now=50.0, wall=40.0)
    assert (after.state, after.since) == (ServerState.DRAIN, 50.0)


def test_an_unchecked_server_restores_no_verdict():
    """A check taken away while the process was gone leaves the server up."""
    after = ServerHealth(settings_of(None), now=5.0)
    after.restore(record_of(fallen(), now=1.0, wall=1.0), now=5.0, wall=1.0)
    assert after.verdict is HealthVerdict.UP
