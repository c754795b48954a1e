"""`model.config.values.units`: durations and percentages, with their units."""

import re
from collections.abc import Callable
from contextlib import suppress
from socket import (
    IPPROTO_TCP,
    TCP_KEEPCNT,
    TCP_KEEPIDLE,
    TCP_KEEPINTVL,
    TCP_USER_TIMEOUT,
    socket,
)

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.model.config.values.field_types import MOST_PROBES
from appliance.model.config.values.units import (
    duration,
    duration_or_off,
    keepalive_time,
    lifetime_or_off,
    percentage,
    user_timeout_or_off,
)
from appliance.model.messages.quoting import shown

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


@pytest.mark.sockets
@pytest.mark.parametrize("text", ["1s", "1000ms", "32767s", "9h"])
def test_the_kernel_takes_every_keepalive_time(text: str):
    """What is right in the file is what a socket can be told, and is not rounded up to a second."""
    seconds = round(keepalive_time(text))
    with socket() as plain:
        for option in (TCP_KEEPIDLE, TCP_KEEPINTVL):
            plain.setsockopt(IPPROTO_TCP, option, seconds)
            assert plain.getsockopt(IPPROTO_TCP, option) == seconds


@pytest.mark.sockets
@pytest.mark.parametrize("text", ["1ms", "30s", "24d", "2147483647ms"])
def test_the_kernel_takes_every_user_timeout(text: str):
    """What is right in the file is what a socket can be told."""
    milliseconds = round(user_timeout_or_off(text) * 1000)
    with socket() as plain:
        plain.setsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT, milliseconds)
        assert plain.getsockopt(IPPROTO_TCP, TCP_USER_TIMEOUT) == milliseconds


@pytest.mark.sockets
def test_the_kernel_takes_as_many_probes():
    """The most probes that the file may ask for are what a socket can be told."""
    with socket() as plain:
        plain.setsockopt(IPPROTO_TCP, TCP_KEEPCNT, MOST_PROBES)
        with pytest.raises(OSError, match="Invalid argument"):
            plain.setsockopt(IPPROTO_TCP, TCP_KEEPCNT, MOST_PROBES + 1)


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (keepalive_time, "999ms", "`999ms` is too short: at least `1s`"),
        (keepalive_time, "0s", "`0s` is too short: at least `1s`"),
        (keepalive_time, "32768s", "`32768s` is too long: at most `32767s`, the kernel's limit"),
        (user_timeout_or_off, "0.5ms", "`0.5ms` is too short: at least `1ms`"),
        (
            user_timeout_or_off,
            "2147483648ms",
            "`2147483648ms` is too long: at most `2147483647ms` (24 days), the kernel's limit",
        ),
        (lifetime_or_off, "999ms", "`999ms` is too short: at least `1s`"),
        (lifetime_or_off, "366d", "`366d` is too long: at most `365d`"),
    ],
)
def test_times_out_of_bounds(read: Callable[[object], float], text: str, message: str):
    """A time that could not be kept is refused with its bound."""
    with pytest.raises(ValueError, match=re.escape(message)):
        read(text)


@pytest.mark.parametrize("read", [user_timeout_or_off, lifetime_or_off])
@pytest.mark.parametrize(("text", "seconds"), [("off", 0.0), ("0s", 0.0), ("1s", 1.0)])
def test_bounded_times_that_may_be_off(read: Callable[[object], float], text: str, seconds: float):
    """Off is no time at all."""
    assert read(text) == seconds


@pytest.mark.parametrize(("text", "fraction"), [("0%", 0.0), ("30%", 0.3), ("12.5%", 0.125), ("100%", 1.0)])
def test_percentages(text: str, fraction: float):
    """A percentage is a fraction of one."""
    assert percentage(text) == fraction


@pytest.mark.parametrize(
    "read",
    [duration, duration_or_off, lifetime_or_off, keepalive_time, user_timeout_or_off, percentage],
)
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
        ("a\n\x9bb\ud800", "`a\\n\\x9bb\\ud800`"),
        ("x" * 99, f"`{'x' * 60}...`"),
    ],
)
def test_values_are_quoted_as_yaml_spells_them(value: object, text: str):
    """A message shows a value as the operator wrote it, or what it is."""
    assert shown(value) == text
