"""One track's verdicts from its results."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.tracking.rise_and_fall import RiseAndFall

pytestmark = pytest.mark.pure


def feed(rise: RiseAndFall, results: str) -> str:
    """Take a result for each `+` and `-`, and return the verdict after each in the same way."""
    return "".join("+" if rise.result(result == "+") else "-" for result in results)


@pytest.mark.parametrize("result", ["+", "-"])
def test_first_result_alone_decides(result: str):
    """The first check gives a verdict, however many later ones need."""
    rise = RiseAndFall(rise=3, fall=3)
    assert feed(rise, result) == result


def test_falls_after_fall_failures_in_a_row():
    """A success in between begins the count anew."""
    assert feed(RiseAndFall(rise=1, fall=3), "+--+---") == "++++++-"


def test_rises_after_rise_successes_in_a_row():
    """A failure in between begins the count anew."""
    assert feed(RiseAndFall(rise=2, fall=1), "-+-++") == "----+"


@given(st.integers(1, 5), st.integers(1, 5), st.text("+-", min_size=1, max_size=40))
def test_verdict_is_what_the_last_results_say(rise: int, fall: int, results: str):
    """A verdict is contradicted by fewer results in a row than it takes to change it."""
    verdict = RiseAndFall(rise=rise, fall=fall)
    feed(verdict, results)
    against = "-" if verdict.up else "+"
    trailing = len(results) - len(results.rstrip(against))
    assert trailing < (fall if verdict.up else rise)
