"""Numbers as people read them."""

import pytest

from appliance.core.status.quantities import duration, size

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "-"),
        (-1, "0ms"),
        (0.0042, "4ms"),
        (1, "1s"),
        (61, "1m 1s"),
        (3600, "1h"),
        (3661, "1h 1m"),
        (90000, "1d 1h"),
        (86400 + 5, "1d"),
    ],
)
def test_duration(seconds: float | None, text: str):
    """Two units at most, and none that is zero."""
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0B"),
        (999, "999B"),
        (1000, "1.0kB"),
        (99_949, "99.9kB"),
        (99_950, "100kB"),
        (999_600, "1.0MB"),
        (5_000_000_000, "5.0GB"),
        (5 * 10**15, "5000TB"),
    ],
)
def test_size(count: int, text: str):
    """Three digits at most, up to the largest unit."""
    assert size(count) == text


def test_an_unknown_size():
    """The kernel does not count the bytes of every connection."""
    assert size(None) == "-"
