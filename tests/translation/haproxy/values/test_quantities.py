"""Times and numbers of HAProxy."""

import pytest

from appliance.model.config.values.units import duration as ours
from appliance.translation.haproxy.values.quantities import duration, milliseconds, time_alone, within

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("text", "expected", "written"),
    [
        ("5000", 5000, "5s"),
        ("300ms", 300, "300ms"),
        ("1500us", 2, "2ms"),
        ("1us", 1, "1ms"),
        ("90s", 90_000, "90s"),
        ("2m", 120_000, "2m"),
        ("24h", 86_400_000, "1d"),
        ("24d", 2_073_600_000, "24d"),
        ("1m ", 60_000, "1m"),
        ("0", 0, "365d"),
    ],
)
def test_times(text: str, expected: int, written: str):
    """A plain number is milliseconds; ours has the largest unit without a fraction; none is the longest."""
    assert milliseconds(text) == expected
    assert duration(expected) == written
    assert ours(written) > 0


@pytest.mark.parametrize("text", ["", "s", "-1", "1.5s", "5 s", "5w", "1m30s", "25d", "٣s"])
def test_what_is_no_time(text: str):
    """It is refused, as are times that HAProxy cannot count."""
    with pytest.raises(ValueError, match=r"HAProxy"):
        milliseconds(text)


@pytest.mark.parametrize(
    ("text", "time", "excess"),
    [("1s[", "1s", "["), ("5ms;", "5ms", ";"), ("1m30s", "1m", "30s"), ("5ms", "5ms", ""), ("5x", "5x", "")],
)
def test_what_stands_behind_a_unit(text: str, time: str, excess: str):
    """HAProxy 2.6 reads the time before it, as long as there is a unit."""
    assert time_alone(text) == (time, excess)


def test_numbers():
    """They have bounds."""
    read = within(1, 100)
    assert (read("1"), read("100")) == (1, 100)
    for text in ("0", "101", "-1", "x", "", "1.0", "9" * 40):
        with pytest.raises(ValueError, match="1 to 100"):
            read(text)
