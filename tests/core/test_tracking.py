"""One track's verdicts and the times of its checks, with literal times."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.tracks import track

from appliance.core.tracking import Pace, Rise, Tracking

pytestmark = pytest.mark.pure


def feed(rise: Rise, results: str) -> list[bool | None]:
    """Take a result for each `+` and `-`, a second apart, and return what each changed."""
    return [rise.result(result == "+", float(at)) for at, result in enumerate(results)]


@pytest.mark.parametrize(("result", "verdict"), [("+", True), ("-", False)])
def test_first_result_alone_decides(*, result: str, verdict: bool):
    """The first check gives a verdict, however many later ones need."""
    rise = Rise(rise=3, fall=3)
    assert feed(rise, result) == [verdict]
    assert rise.up is verdict


def test_falls_after_fall_failures_in_a_row():
    """A success in between begins the count anew."""
    assert feed(Rise(rise=1, fall=3), "+--+---") == [True, None, None, None, None, None, False]


def test_rises_after_rise_successes_in_a_row():
    """A failure in between begins the count anew."""
    rise = Rise(rise=2, fall=1)
    assert feed(rise, "-+-++") == [False, None, None, None, True]
    assert rise.since == 4.0


@given(st.integers(1, 5), st.integers(1, 5), st.text("+-", min_size=1, max_size=40))
def test_verdict_is_what_the_last_results_say(rise: int, fall: int, results: str):
    """A verdict is contradicted by fewer results in a row than it takes to change it."""
    verdict = Rise(rise=rise, fall=fall)
    feed(verdict, results)
    against = "-" if verdict.up else "+"
    trailing = len(results) - len(results.rstrip(against))
    assert trailing < (fall if verdict.up else rise)


def test_checks_start_an_interval_apart():
    """The interval counts from start to start, whatever the check takes."""
    pace = Pace(interval=1.0, timeout=0.5, now=10.0)
    assert pace.due(10.0)
    pace.begin(10.0)
    assert pace.deadline == 10.5
    pace.end(10.3)
    assert (pace.deadline, pace.due(10.9), pace.due(11.0)) == (11.0, False, True)


def test_checks_never_overlap():
    """A check that takes longer than the interval delays the next one until it has ended."""
    pace = Pace(interval=1.0, timeout=5.0, now=0.0)
    pace.begin(0.0)
    assert not pace.due(3.0)
    pace.end(3.0)
    assert pace.due(3.0)


def test_check_is_overdue_after_its_timeout():
    """One that has run for its timeout has failed; the end of none is nobody's."""
    pace = Pace(interval=1.0, timeout=0.5, now=0.0)
    assert not pace.overdue(9.0)
    pace.end(9.0)
    assert pace.deadline == 0.0
    pace.begin(9.0)
    assert (pace.overdue(9.4), pace.overdue(9.5)) == (False, True)


def test_value_is_news_without_a_new_verdict():
    """A file whose number changes has to be reported though it is up as before."""
    tracking = Tracking(track(fall=2), now=0.0)
    assert tracking.conclude(up=True, value=3, now=0.0)
    assert not tracking.conclude(up=True, value=3, now=1.0)
    assert tracking.conclude(up=True, value=4, detail="4", now=2.0)
    assert not tracking.conclude(up=False, value=4, now=3.0)
    assert tracking.conclude(up=False, value=4, now=4.0)
    assert (tracking.rise.up, tracking.value) == (False, 4)
