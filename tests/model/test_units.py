"""`model.units`: durations and percentages, with their units."""

from collections.abc import Callable
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.units import duration, duration_or_off, percentage, shown

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("300ms", 0.3), ("5s", 5.0), ("2m", 120.0), ("24h", 86400.0), ("365d", 31536000.0), ("1.5s", 1.5)],
)
def test_durations(text: str, seconds: float):
    """A duration is seconds, whatever its unit."""
    assert duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(("text", "seconds"), [("off", 0.0), ("0s", 0.0), ("0ms", 0.0), ("5s", 5.0)])
def test_durations_that_may_be_off(text: str, seconds: float):
    """Off is no time at all."""
    assert duration_or_off(text) == seconds


@pytest.mark.parametrize(("text", "fraction"), [("0%", 0.0), ("30%", 0.3), ("12.5%", 0.125), ("100%", 1.0)])
def test_percentages(text: str, fraction: float):
    """A percentage is a fraction of one."""
    assert percentage(text) == fraction


@pytest.mark.parametrize("read", [duration, duration_or_off, percentage])
@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text()))
def test_garbage_never_escapes(read: Callable[[object], float], value: object):
    """Whatever a file holds gives a number or ValueError."""
    with suppress(ValueError):
        assert 0 <= read(value) <= 31536000


@pytest.mark.parametrize(
    "value", ["5 s", "5S", "s", "", "-5s", "1e3s", "\uff15s", "5s\n", "1h30m", "9" * 13 + "s"]
)
def test_what_is_no_duration(value: str):
    """Other spellings are refused, not guessed."""
    with pytest.raises(ValueError, match=r"must be a duration|unit"):
        duration(value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "nothing"),
        (True, "`true`"),
        ([], "a list"),
        ({}, "a mapping"),
        (5, "`5`"),
        ("x" * 99, f"`{'x' * 60}...`"),
    ],
)
def test_values_are_quoted_as_yaml_spells_them(value: object, text: str):
    """A message shows a value as the operator wrote it, or what it is."""
    assert shown(value) == text
