"""A server's verdict, weight and deadlines, with literal times and against a simple model."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.values import snapshots

from appliance.core.checks.server_health import CheckOutcome, HealthEvent, HealthSettings, ServerHealth, phase
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState
from appliance.model.snapshot.pools import Check, CheckInit
from appliance.wire.boards.health_board import ServerHealthRecord

pytestmark = pytest.mark.pure

GOOD = CheckOutcome(result=CheckResult.L7OK, status=200, duration=0.01)
BAD = CheckOutcome(result=CheckResult.L7STS, status=500, duration=0.02, detail="Internal Server Error")
REFUSED = CheckOutcome(result=CheckResult.L4CON, detail="connection refused")
RESULTS = {"+": GOOD, "-": BAD, "x": REFUSED}
CHECK = snapshots.check("http", interval=10.0, fast_interval=2.0, down_interval=5.0, rise=2, fall=3)


def terms(
    check: Check | None = CHECK, *, weight: int = 100, slow_start: float = 0.0, at: float = 1.0
) -> HealthSettings:
    """Return terms whose place in the interval is its end, so that pauses are whole."""
    return HealthSettings(check=check, weight=weight, slow_start=slow_start, phase=at)


def feed(
    health: ServerHealth, results: str, *, now: float = 0.0, step: float = 1.0
) -> list[HealthEvent | None]:
    """Conclude a check for each result, `step` seconds apart, and return what each changed.

    `+` is good, `-` a bad answer and `x` none at all.
    """
    events = []
    for index, result in enumerate(results):
        at = now + index * step
        events.append(health.conclude(RESULTS[result], started=at, now=at))
    return events


def fallen(*, slow_start: float = 0.0, now: float = 0.0) -> ServerHealth:
    """Return a server that its first check found down."""
    health = ServerHealth(terms(slow_start=slow_start), now=now)
    feed(health, "-", now=now)
    return health


def record_of(health: ServerHealth, *, now: float, wall: float) -> ServerHealthRecord:
    """Return a board record as the roster would write it."""
    return ServerHealthRecord(
        pool="pool",
        server="server-0",
        verdict=health.verdict,
        admin=health.admin,
        weight=health.weight,
        since=wall - (now - health.since),
        checked_at=0.0 if health.checked_at is None else wall - (now - health.checked_at),
        duration=health.last.duration,
        result=health.last.result,
        status=health.last.status,
        streak=health.streak,
        failed=health.failed,
        host="127.0.0.1",
        port=8080,
        detail=health.last.detail,
        unreachable=health.unreachable,
    )


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
    health = ServerHealth(terms(replace(CHECK, init=init)), now=0.0)
    assert feed(health, result) == [event]
    assert health.verdict is verdict
    assert feed(health, "-" if result == "+" else "+", now=1.0) == [None]


def test_a_server_without_a_verdict_is_being_checked():
    """Until the first check has ended operators see `checking`, and it is due at once."""
    health = ServerHealth(terms(), now=5.0)
    assert (health.state, health.verdict, health.deadline) == (
        ServerState.CHECKING,
        HealthVerdict.UNKNOWN,
        5.0,
    )


def test_fall_and_rise_count_results_in_a_row():
    """Three failures in a row take a server down, two successes in a row bring it back."""
    health = ServerHealth(terms(), now=0.0)
    assert feed(health, "+--+---") == [HealthEvent.UP, None, None, None, None, None, HealthEvent.DOWN]
    assert feed(health, "+-+-++") == [None] * 5 + [HealthEvent.UP]


@settings(deadline=None)  # a busy machine is no failure
@given(st.text("+-", max_size=60), st.integers(1, 5), st.integers(1, 5), st.sampled_from(CheckInit))
def test_verdicts_are_those_of_a_simple_model(results: str, rise: int, fall: int, init: CheckInit):
    """For any results, a verdict is that of the last run of `rise` successes or `fall` failures."""
    health = ServerHealth(terms(replace(CHECK, rise=rise, fall=fall, init=init)), now=0.0)
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
    health = ServerHealth(terms(), now=0.0)
    feed(health, results)
    assert health.streak == len(results) - len(results.rstrip(results[-1]))


@pytest.mark.parametrize(
    ("results", "pause"),
    [("+", 10.0), ("+-", 2.0), ("+--", 2.0), ("+---", 5.0), ("-", 5.0), ("-+", 2.0), ("-++", 10.0)],
)
def test_the_pause_depends_on_whether_the_verdict_is_in_question(results: str, pause: float):
    """`interval` while up, `down_interval` while down, `fast_interval` while results speak against it."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, results, step=0.0)
    assert health.next_check == pause


def test_a_pause_runs_from_the_start_of_a_check():
    """A check that takes its time does not delay the next one, and a very long one is followed at once."""
    health = ServerHealth(terms(), now=0.0)
    health.conclude(GOOD, started=0.0, now=4.0)
    assert health.next_check == 10.0
    health.conclude(GOOD, started=10.0, now=25.0)
    assert health.next_check == 25.0


def test_first_checks_are_spread_over_the_window_and_second_ones_over_the_interval():
    """A server's phase is its place in the window at the start, and in its interval from then on."""
    health = ServerHealth(terms(at=0.25), now=100.0, window=2.0)
    assert health.next_check == 100.5
    health.conclude(GOOD, started=100.5, now=100.6)
    assert health.next_check == 103.0
    health.conclude(GOOD, started=103.0, now=103.1)
    assert health.next_check == 113.0


def test_phases_are_the_same_always_and_spread_evenly():
    """Of a thousand servers about a hundred are in every tenth of the interval, and each stays there."""
    phases = [phase("pool", f"server-{index}") for index in range(1000)]
    tenths = [sum(index / 10 < each <= (index + 1) / 10 for each in phases) for index in range(10)]
    assert sum(tenths) == 1000
    assert all(60 < count < 140 for count in tenths)
    assert phase("pool", "server-7") == phases[7]


def test_a_check_that_could_not_be_made_says_nothing():
    """Out of descriptors, the state stays and the check is made again after the fast interval."""
    health = ServerHealth(terms(), now=0.0)
    health.postpone(started=1.0, now=1.0)
    assert (health.verdict, health.streak, health.next_check) == (HealthVerdict.UNKNOWN, 0, 3.0)


def test_a_server_without_a_check_is_up_and_never_due():
    """No check, no deadline; a result that comes anyway is nobody's."""
    health = ServerHealth(terms(None), now=0.0)
    assert (health.verdict, health.deadline, health.weight) == (HealthVerdict.UP, None, 100.0)
    assert health.conclude(BAD, started=1.0, now=1.0) is None
    health.postpone(started=1.0, now=1.0)
    assert (health.verdict, health.deadline) == (HealthVerdict.UP, None)


def test_weight_ramps_after_a_failure():
    """A server that comes back starts with a twentieth and has its whole weight after slow_start."""
    health = fallen(slow_start=60.0)
    feed(health, "++", now=100.0, step=0.0)
    assert (health.verdict, health.weight) == (HealthVerdict.UP, 5.0)
    assert health.deadline == 103.0
    assert not health.tick(102.9)
    assert health.tick(103.0)
    assert health.weight == 10.0
    assert health.tick(130.0)
    assert health.weight == 55.0
    assert health.tick(160.0)
    assert health.weight == 100.0
    assert health.deadline == health.next_check
    assert not health.tick(1000.0)


def test_the_first_verdict_is_never_a_ramp():
    """At the start a healthy server has its whole weight: slowstart is for servers seen to fail."""
    health = ServerHealth(terms(slow_start=60.0), now=0.0)
    feed(health, "+")
    assert health.weight == 100.0
    presumed = ServerHealth(terms(replace(CHECK, init=CheckInit.DOWN), slow_start=60.0), now=0.0)
    assert feed(presumed, "+") == [HealthEvent.UP]
    assert presumed.weight == 100.0


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.floats(0.001, 3600.0),
    st.lists(st.floats(0.0, 400.0), max_size=40),
    st.integers(1, 256),
)
def test_the_ramp_is_monotone_and_bounded(slow_start: float, pauses: list[float], weight: int):
    """Whenever it is looked at, the weight is above 0, never shrinks, and is whole after slow_start."""
    health = ServerHealth(
        HealthSettings(check=CHECK, weight=weight, slow_start=slow_start, phase=1.0), now=0.0
    )
    feed(health, "-++", step=0.0)
    now, last = 0.0, 0.0
    for pause in pauses:
        now += pause
        health.tick(now)
        assert last <= health.weight <= weight
        assert health.weight > 0
        assert health.deadline is not None
        last = health.weight
    health.tick(slow_start * 1.001)
    assert health.weight == weight


def test_a_failure_during_the_ramp_ends_it():
    """Down again, the server shows its configured weight; up again, it begins from a twentieth."""
    health = fallen(slow_start=60.0)
    feed(health, "++", now=10.0, step=0.0)
    health.tick(40.0)
    assert feed(health, "---", now=41.0, step=0.0)[-1] is HealthEvent.DOWN
    assert health.weight == 100.0
    feed(health, "++", now=50.0, step=0.0)
    assert health.weight == 5.0


def test_a_drained_server_is_still_checked():
    """Drain changes the operator's word only."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, "+")
    assert health.operate(AdminState.DRAIN, now=3.0) is HealthEvent.DRAIN
    assert (health.state, health.since, health.next_check) == (ServerState.DRAIN, 3.0, 10.0)
    assert feed(health, "---", now=4.0)[-1] is HealthEvent.DOWN
    assert health.state is ServerState.DOWN
    assert health.operate(AdminState.DRAIN, now=9.0) is None
    assert health.operate(AdminState.READY, now=9.0) is HealthEvent.READY


def test_a_server_in_maint_is_left_alone():
    """No check is due, and one that was under way counts for nothing."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, "+")
    assert health.operate(AdminState.MAINT, now=1.0) is HealthEvent.MAINT
    assert (health.state, health.deadline) == (ServerState.MAINT, None)
    assert feed(health, "---", now=2.0) == [None] * 3
    assert (health.verdict, health.failed) == (HealthVerdict.UP, 0)


def test_leaving_maint_begins_as_at_the_start():
    """A server that was up before is checked at once, and that check decides."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, "+")
    health.operate(AdminState.MAINT, now=1.0)
    assert health.operate(AdminState.READY, now=50.0) is HealthEvent.READY
    assert (health.state, health.next_check) == (ServerState.CHECKING, 50.0)
    assert feed(health, "-", now=50.0) == [HealthEvent.DOWN]


def test_leaving_maint_after_a_failure_takes_a_rise():
    """A server that was down before is down until it has risen, and then ramps."""
    health = fallen(slow_start=60.0)
    health.operate(AdminState.MAINT, now=1.0)
    health.operate(AdminState.READY, now=50.0)
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
    health = ServerHealth(terms(replace(CHECK, init=init)), now=0.0)
    feed(health, "++")
    health.operate(AdminState.MAINT, now=3.0)
    health.operate(AdminState.READY, now=50.0)
    assert (health.last.result, health.checked_at) == (CheckResult.UNCHECKED, None)
    assert feed(health, result, now=50.0) == [event]


@pytest.mark.parametrize("init", CheckInit)
def test_weight_ramps_after_maint(init: CheckInit):
    """A server that comes back from maint gets its share over slow_start, from the first moment."""
    health = ServerHealth(terms(replace(CHECK, init=init), slow_start=60.0), now=0.0)
    feed(health, "+")
    health.operate(AdminState.MAINT, now=1.0)
    health.operate(AdminState.READY, now=600.0)
    feed(health, "+", now=600.0)
    assert (health.verdict, health.weight) == (HealthVerdict.UP, 5.0)
    health.tick(630.0)
    assert health.weight == 55.0
    health.tick(660.0)
    assert health.weight == 100.0


def test_an_unchecked_server_ramps_after_maint():
    """Without a check the ramp begins with the operator's word, and maint in the middle of it ends it."""
    health = ServerHealth(terms(None, slow_start=60.0), now=0.0)
    health.operate(AdminState.MAINT, now=1.0)
    assert health.operate(AdminState.READY, now=10.0) is HealthEvent.READY
    assert (health.verdict, health.weight, health.deadline) == (HealthVerdict.UP, 5.0, 13.0)
    health.operate(AdminState.MAINT, now=20.0)
    assert (health.weight, health.deadline) == (100.0, None)


def test_drain_is_no_reason_to_ramp():
    """A drained server has kept its sessions and comes back with its whole weight."""
    health = ServerHealth(terms(slow_start=60.0), now=0.0)
    feed(health, "+")
    health.operate(AdminState.DRAIN, now=1.0)
    health.operate(AdminState.READY, now=10.0)
    assert health.weight == 100.0


def test_new_settings_keep_the_verdict():
    """Another path or interval is no reason to take a server out: a new check begins a new streak."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, "+--")
    assert health.revise(terms(replace(CHECK, path="/livez"), weight=7, at=0.5), now=9.0, window=1.0) is None
    assert (health.verdict, health.streak, health.next_check, health.weight) == (
        HealthVerdict.UP,
        0,
        9.5,
        7.0,
    )
    assert feed(health, "---", now=10.0) == [None, None, HealthEvent.DOWN]


def test_the_same_check_goes_on_undisturbed():
    """A new weight alone changes no streak and no deadline."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, "+--")
    due = health.next_check
    assert health.revise(terms(weight=1), now=5.0) is None
    assert (health.streak, health.next_check, health.weight) == (2, due, 1.0)


def test_slow_start_taken_away_ends_the_ramp():
    """Without slow_start a server has its weight at once; with another length it goes on in new steps."""
    health = fallen(slow_start=60.0)
    feed(health, "++", now=0.0, step=0.0)
    health.revise(terms(slow_start=20.0), now=1.0)
    assert health.weight == 5.0
    health.revise(terms(), now=1.0)
    assert (health.weight, health.deadline) == (100.0, health.next_check)


@pytest.mark.parametrize(("results", "event"), [("", HealthEvent.UP), ("-", HealthEvent.UP), ("+", None)])
def test_a_check_taken_away_leaves_the_server_up(results: str, event: HealthEvent | None):
    """An unchecked server is up, whatever the checks said before."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, results)
    assert health.revise(terms(None), now=5.0) is event
    assert (health.verdict, health.deadline) == (HealthVerdict.UP, None)


def test_a_check_that_is_new_does_not_take_the_server_out():
    """A server that had no check stays up until its new check has failed often enough."""
    health = ServerHealth(terms(None), now=0.0)
    assert health.revise(terms(), now=5.0) is None
    assert (health.verdict, health.next_check) == (HealthVerdict.UP, 5.0)
    assert feed(health, "---", now=5.0) == [None, None, HealthEvent.DOWN]


@settings(deadline=None)  # a busy machine is no failure
@given(st.text("+-", max_size=20), st.sampled_from(AdminState))
def test_a_restarted_process_goes_on_where_the_last_one_was(results: str, admin: AdminState):
    """Verdict, streak, since, counters and the last result come back from the board; a check is due."""
    before = ServerHealth(terms(), now=1000.0)
    feed(before, results, now=1000.0)
    before.operate(admin, now=1100.0)
    after = ServerHealth(terms(), now=5.0, admin=admin)
    after.restore(record_of(before, now=1200.0, wall=9000.0), now=5.0, wall=9000.0)
    assert (after.verdict, after.admin, after.failed) == (before.verdict, before.admin, before.failed)
    if before.verdict is not HealthVerdict.UNKNOWN:
        assert (after.streak, after.last) == (before.streak, before.last)
        assert after.since == pytest.approx(before.since - 1195.0)
        assert after.next_check == (None if admin is AdminState.MAINT else 5.0)
    tail = "---" if before.verdict is HealthVerdict.UP else "++"
    if results and admin is AdminState.READY:
        assert feed(after, tail, now=6.0) == feed(before, tail, now=1201.0)


def test_a_ramp_goes_on_after_a_restart():
    """A server in the middle of slow_start goes on from the weight that the board shows."""
    before = fallen(slow_start=60.0)
    feed(before, "++", now=100.0, step=0.0)
    before.tick(130.0)
    after = ServerHealth(terms(slow_start=60.0), now=5.0)
    after.restore(record_of(before, now=131.0, wall=131.0), now=5.0, wall=131.0)
    assert after.weight == before.weight == 55.0
    after.tick(8.0)
    assert after.weight == 60.0


def test_the_ramp_of_an_unchecked_server_goes_on_after_a_restart():
    """What maint began without a check is on the board as well."""
    before = ServerHealth(terms(None, slow_start=60.0), now=0.0)
    before.operate(AdminState.MAINT, now=1.0)
    before.operate(AdminState.READY, now=10.0)
    after = ServerHealth(terms(None, slow_start=60.0), now=5.0)
    after.restore(record_of(before, now=12.0, wall=12.0), now=5.0, wall=12.0)
    assert (after.weight, after.deadline) == (5.0, 8.0)


@pytest.mark.parametrize(("weight", "expected"), [(0.1, 5.0), (99.9, 100.0)])
def test_a_restored_weight_is_a_step_of_the_ramp(weight: float, expected: float):
    """A weight from another configuration becomes the nearest step, at least the first."""
    before = fallen()
    feed(before, "++", now=1.0)
    after = ServerHealth(terms(slow_start=60.0), now=5.0)
    after.restore(replace(record_of(before, now=5.0, wall=5.0), weight=weight), now=5.0, wall=5.0)
    assert after.weight == expected


def test_what_was_never_checked_has_no_time_to_restore():
    """A server presumed up and killed before its first check comes back unchecked."""
    presumed = terms(replace(CHECK, init=CheckInit.UP))
    after = ServerHealth(presumed, now=5.0)
    after.restore(record_of(ServerHealth(presumed, now=1.0), now=1.0, wall=1.0), now=5.0, wall=1.0)
    assert (after.verdict, after.checked_at, after.streak) == (HealthVerdict.UP, None, 0)
    assert feed(after, "-", now=6.0) == [HealthEvent.DOWN]


def test_an_operator_state_set_in_between_has_its_own_time():
    """Where the board and the operator's file differ, the file is right, since now."""
    before = ServerHealth(terms(), now=0.0)
    feed(before, "+")
    after = ServerHealth(terms(), now=50.0, admin=AdminState.DRAIN)
    after.restore(record_of(before, now=40.0, wall=40.0), now=50.0, wall=40.0)
    assert (after.state, after.since) == (ServerState.DRAIN, 50.0)


def test_an_unchecked_server_restores_no_verdict():
    """A check taken away while the process was gone leaves the server up."""
    after = ServerHealth(terms(None), now=5.0)
    after.restore(record_of(fallen(), now=1.0, wall=1.0), now=5.0, wall=1.0)
    assert after.verdict is HealthVerdict.UP


@pytest.mark.parametrize(
    ("result", "unreachable"),
    [
        (CheckResult.L4CON, True),
        (CheckResult.L4TOUT, True),
        (CheckResult.L6RSP, True),
        (CheckResult.L6TOUT, True),
        (CheckResult.L7TOUT, True),
        (CheckResult.L7RSP, False),
        (CheckResult.L7STS, False),
    ],
)
def test_a_bad_answer_is_an_answer(result: CheckResult, unreachable: bool):  # noqa: FBT001  # what is expected
    """The kind of the failure tells a server that is gone from one that says that it is not well."""
    health = ServerHealth(terms(), now=0.0)
    health.conclude(CheckOutcome(result=result), started=0.0, now=0.0)
    assert (health.verdict, health.unreachable) == (HealthVerdict.DOWN, unreachable)


@pytest.mark.parametrize(
    ("results", "unreachable", "last"),
    [
        ("x", True, HealthEvent.DOWN),
        ("-", False, HealthEvent.DOWN),
        ("+xxx", True, HealthEvent.DOWN),
        ("+---", False, HealthEvent.DOWN),
        ("+-xx", False, HealthEvent.DOWN),
        ("+-xxx", True, HealthEvent.UNREACHABLE),
        ("+xx-", False, HealthEvent.DOWN),
        ("+xx-x", False, None),
        ("+xxx-", False, HealthEvent.ANSWERS),
        ("+xxx-x", False, None),
        ("-xx", False, None),
        ("-xxx", True, HealthEvent.UNREACHABLE),
        ("-xx-xx", False, None),
        ("-xx+xx", False, None),
        ("x+", True, None),
        ("x+x", True, None),
        ("x++", False, HealthEvent.UP),
        ("+xx", False, None),
    ],
)
def test_a_server_is_unreachable_when_it_has_failed_so_for_its_fall(
    results: str,
    unreachable: bool,  # noqa: FBT001  # what is expected
    last: HealthEvent | None,
):
    """It takes as many failures of that kind in a row as going down does; a bad answer ends it at once."""
    health = ServerHealth(terms(), now=0.0)
    assert feed(health, results)[-1] is last
    assert health.unreachable is unreachable


def test_a_server_that_may_have_fallen_silent_is_checked_faster():
    """As with any result that speaks against what is held, the next check comes after `fast_interval`."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, "-", step=0.0)
    assert health.next_check == 5.0
    feed(health, "x", step=0.0)
    assert health.next_check == 2.0
    feed(health, "xx", step=0.0)
    assert (health.unreachable, health.next_check) == (True, 5.0)


def test_an_unreachable_server_is_so_after_a_restart_too():
    """What the board says of it is gone on from, and forgotten when it comes up."""
    before = ServerHealth(terms(), now=0.0)
    feed(before, "x")
    after = ServerHealth(terms(), now=0.0)
    after.restore(record_of(before, now=1.0, wall=1.0), now=1.0, wall=1.0)
    assert after.unreachable
    assert feed(after, "++")[-1] is HealthEvent.UP
    assert feed(after, "---")[-1] is HealthEvent.DOWN
    assert not after.unreachable


@pytest.mark.parametrize("change", ["maint", "check"])
def test_silences_before_a_change_do_not_count(change: str):
    """After maintenance, and with another check, counting begins anew."""
    health = ServerHealth(terms(), now=0.0)
    feed(health, "-xx")
    if change == "maint":
        for admin in (AdminState.MAINT, AdminState.READY):
            health.operate(admin, now=3.0)
    else:
        health.revise(terms(replace(CHECK, timeout=9.0)), now=3.0)
    assert feed(health, "xx") == [None, None]
    assert not health.unreachable
    assert feed(health, "x") == [HealthEvent.UNREACHABLE]


def running(*, at: float = 0.0) -> ServerHealth:
    """Return a server whose last check, good, began then; the next one is due 10 s later."""
    health = ServerHealth(terms(), now=0.0)
    health.begin(at)
    feed(health, "+", now=at)
    return health


def test_a_doubted_server_is_checked_at_once():
    """A client that could not connect brings the check forward."""
    health = running()
    assert health.doubt(now=0.5)
    assert (health.next_check, health.deadline) == (0.5, 0.5)
    assert not health.doubt(now=0.6)


def test_doubts_add_a_check_each_fast_interval_at_the_most():
    """However many clients fail: a thousand a second cause as many checks as one."""
    health, begun = running(), []
    for tenth in range(1, 100):
        now = tenth / 10
        health.doubt(now=now)
        if health.next_check is not None and health.next_check <= now:
            health.begin(now)
            begun.append(now)
            feed(health, "+", now=now)
    assert begun == [0.1, 2.1, 4.1, 6.1, 8.1]


def test_a_check_that_was_due_anyway_comes_in_its_time():
    """A doubt never delays one."""
    health = running()
    assert health.doubt(now=0.5)
    health.begin(0.5)
    feed(health, "+", now=0.5)
    assert health.next_check == 10.5
    assert not health.doubt(now=10.6)
    assert health.next_check == 10.5


def test_a_doubt_during_a_check_wants_another_one_soon():
    """The check may have looked before the server died: the next one is a `fast_interval` later."""
    health = running()
    health.begin(10.0)
    assert not health.doubt(now=10.1)
    feed(health, "+", now=10.0)
    assert health.next_check == 12.0
    health.begin(12.0)
    feed(health, "+", now=12.0)
    assert health.next_check == 22.0


@pytest.mark.parametrize("state", ["down", "maint", "unchecked"])
def test_who_is_doubted_in_vain(state: str):
    """A server that is down has its interval, one in maintenance or without a check has none."""
    health = ServerHealth(terms(None if state == "unchecked" else CHECK), now=0.0)
    if state == "down":
        feed(health, "-")
    if state == "maint":
        health.operate(AdminState.MAINT, now=0.0)
    before = health.next_check
    assert not health.doubt(now=1.0)
    assert health.next_check == before


def test_a_doubt_alone_is_no_verdict():
    """A server whose check is good stays up, whatever clients have met; its streak is that of checks."""
    health = running()
    for now in range(100):
        health.doubt(now=float(now))
    assert (health.verdict, health.streak, health.failed) == (HealthVerdict.UP, 1, 0)
