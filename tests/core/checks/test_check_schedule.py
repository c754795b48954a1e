"""When checks are due: after which pause, at which place in the interval, and for clients that failed."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.health.server_health import CHECK, GOOD, feed, settings_of

from appliance.core.checks.check_schedule import phase, places
from appliance.core.checks.server_health import ServerHealth
from appliance.model.server_states import AdminState, HealthVerdict

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("results", "pause"),
    [("+", 10.0), ("+-", 2.0), ("+--", 2.0), ("+---", 5.0), ("-", 5.0), ("-+", 2.0), ("-++", 10.0)],
)
def test_the_pause_depends_on_whether_the_verdict_is_in_question(results: str, pause: float):
    """`interval` while up, `down_interval` while down, `fast_interval` while results speak against it."""
    health = ServerHealth(settings_of(), now=0.0)
    feed(health, results, step=0.0)
    assert health.next_check == pause


def test_a_pause_runs_from_the_start_of_a_check():
    """A check that takes its time does not delay the next one, and a very long one is followed at once."""
    health = ServerHealth(settings_of(), now=0.0)
    health.check_ended(GOOD, started=0.0, now=4.0)
    assert health.next_check == 10.0
    health.check_ended(GOOD, started=10.0, now=25.0)
    assert health.next_check == 25.0


def test_first_checks_are_spread_over_the_window_and_second_ones_over_the_interval():
    """A server's phase is its place in the window at the start, and in its interval from then on."""
    health = ServerHealth(settings_of(at=0.25), now=100.0, window=2.0)
    assert health.next_check == 100.5
    health.check_ended(GOOD, started=100.5, now=100.6)
    assert health.next_check == 102.5
    health.check_ended(GOOD, started=102.5, now=102.6)
    assert health.next_check == 112.5


@given(
    place=st.floats(0, 1, exclude_max=True),
    late=st.lists(st.floats(-0.004, 0.03), min_size=2, max_size=30),
    start=st.floats(0, 1e7),
)
def test_a_check_that_begins_late_or_early_moves_no_later_one(place: float, late: list[float], start: float):
    """A timer fires a moment early, a busy machine is late: the place in the interval stays."""
    health = ServerHealth(settings_of(at=place), now=start)
    health.check_ended(GOOD, started=start, now=start)
    first = health.next_check
    assert first is not None
    assert 0.499 <= first - start <= 10.501
    for number, off in enumerate(late, start=1):
        due = health.next_check
        assert due is not None
        health.check_ended(GOOD, started=due + off, now=due + off)
        assert health.next_check == pytest.approx(first + 10.0 * number, abs=1e-6)


def test_phases_are_the_same_always_and_spread_evenly():
    """Of a thousand servers some eight share a place, a tenth are in every tenth, and each stays there."""
    assert [places(count) for count in (0, 1, 8, 9, 16, 17, 1000)] == [1, 1, 1, 2, 2, 4, 128]
    assert phase("pool", "server-7") == 0.0
    phases = [phase("pool", f"server-{index}", places=places(1000)) for index in range(1000)]
    tenths = [sum(index / 10 <= each < (index + 1) / 10 for each in phases) for index in range(10)]
    assert sum(tenths) == 1000
    assert all(60 < count < 140 for count in tenths)
    assert phase("pool", "server-7", places=places(1000)) == phases[7]
    assert len(set(phases)) == 128


def test_a_check_that_could_not_be_made_says_nothing():
    """Out of descriptors, the state stays and the check is made again after the fast interval."""
    health = ServerHealth(settings_of(), now=0.0)
    health.check_not_made(started=1.0, now=1.0)
    assert (health.verdict, health.streak, health.next_check) == (HealthVerdict.UNKNOWN, 0, 3.0)


def running(*, at: float = 0.0) -> ServerHealth:
    """Return a server whose last check, good, began then; the next one is due 10 s later."""
    health = ServerHealth(settings_of(), now=0.0)
    health.check_started(at)
    feed(health, "+", now=at)
    return health


def test_a_server_that_clients_cannot_connect_to_is_checked_at_once():
    """A client that could not connect brings the check forward."""
    health = running()
    assert health.connect_failed(now=0.5)
    assert (health.next_check, health.deadline) == (0.5, 0.5)
    assert not health.connect_failed(now=0.6)


def test_failed_connects_add_a_check_each_fast_interval_at_the_most():
    """However many clients fail: a thousand a second cause as many checks as one."""
    health, begun = running(), []
    for tenth in range(1, 100):
        now = tenth / 10
        health.connect_failed(now=now)
        if health.next_check is not None and health.next_check <= now:
            health.check_started(now)
            begun.append(now)
            feed(health, "+", now=now)
    assert begun == [0.1, 2.1, 4.1, 6.1, 8.1]


def test_a_check_that_was_due_anyway_comes_in_its_time():
    """A failed connect never delays one."""
    health = running()
    assert health.connect_failed(now=0.5)
    health.check_started(0.5)
    feed(health, "+", now=0.5)
    assert health.next_check == 10.0
    assert not health.connect_failed(now=10.1)
    assert health.next_check == 10.0


def test_a_failed_connect_during_a_check_wants_another_one_soon():
    """The check may have looked before the server died: the next one is a `fast_interval` later."""
    health = running()
    health.check_started(10.0)
    assert not health.connect_failed(now=10.1)
    feed(health, "+", now=10.0)
    assert health.next_check == 12.0
    health.check_started(12.0)
    feed(health, "+", now=12.0)
    assert health.next_check == 20.0


@pytest.mark.parametrize("state", ["down", "maint", "unchecked"])
def test_who_is_not_checked_for_failed_connects(state: str):
    """A server that is down has its interval, one in maintenance or without a check has none."""
    health = ServerHealth(settings_of(None if state == "unchecked" else CHECK), now=0.0)
    if state == "down":
        feed(health, "-")
    if state == "maint":
        health.set_admin(AdminState.MAINT, now=0.0)
    before = health.next_check
    assert not health.connect_failed(now=1.0)
    assert health.next_check == before


def test_failed_connects_alone_are_no_verdict():
    """A server whose check is good stays up, whatever clients have met; its streak is that of checks."""
    health = running()
    for now in range(100):
        health.connect_failed(now=float(now))
    assert (health.verdict, health.streak, health.failed) == (HealthVerdict.UP, 1, 0)
