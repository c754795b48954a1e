"""Quantities as operators write them: durations and percentages are text with a unit, never bare numbers.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right.
"""

import re
from typing import Final

from appliance.model.messages.quoting import shown

DURATION_PATTERN: Final = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h|d)$"
DURATION_OR_OFF_PATTERN: Final = r"^(off|[0-9]+(\.[0-9]+)?(ms|s|m|h|d))$"
INTEGER_PATTERN: Final = r"[-+]?[0-9]{1,20}"
PERCENTAGE_PATTERN: Final = r"^[0-9]{1,3}(\.[0-9]+)?%$"

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_QUANTITY: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)([A-Za-z%]*)", re.ASCII)


def duration(value: object) -> float:
    """Return a duration in seconds: `300ms`, `5s`, `2m`, `24h`, `1d`; the kernel counts milliseconds."""
    return duration_between(value, least="1ms", most="365d")


def duration_or_off(value: object) -> float:
    """Return a duration in seconds, 0.0 for `off`."""
    return 0.0 if is_off(value) else duration(value)


def lifetime_or_off(value: object) -> float:
    """Return the longest life of a connection in seconds, 0.0 for `off`; at least 1 s."""
    return 0.0 if is_off(value) else duration_between(value, least="1s", most="365d")


def keepalive_time(value: object) -> float:
    """Return a time of TCP keepalive in seconds: tcp(7) counts seconds, to MAX_TCP_KEEPIDLE (net/tcp.h)."""
    return duration_between(value, least="1s", most="32767s", whose=", the kernel's limit")


def user_timeout_or_off(value: object) -> float:
    """Return a TCP_USER_TIMEOUT in seconds, 0.0 for `off`; tcp(7) counts milliseconds, in an int."""
    if is_off(value):
        return 0.0
    return duration_between(value, least="1ms", most="2147483647ms", whose=" (24 days), the kernel's limit")


def watchdog(value: object) -> float:
    """Return the time without a heartbeat in seconds: at least 3 s, because a program may only be busy."""
    return duration_between(value, least="3s", most="10m")


def percentage(value: object) -> float:
    """Return a percentage as a fraction: `30%` is 0.3."""
    number, _ = _quantity(value, right="a percentage such as `30%`", units=("%",))
    if number > 100:
        raise ValueError(f"{shown(value)} is more than all: `0%` to `100%`")
    return number / 100


def is_off(value: object) -> bool:
    """Return whether a duration is `off`, or 0."""
    return value == "off" or _seconds(value) == 0


def duration_between(value: object, *, least: str, most: str, whose: str = "") -> float:
    """Return a duration in seconds, from `least` to `most`; `whose` says what sets the limit."""
    seconds = _seconds(value)
    if seconds < _seconds(least):
        raise ValueError(f"{shown(value)} is too short: at least `{least}`")
    if seconds > _seconds(most):
        raise ValueError(f"{shown(value)} is too long: at most `{most}`{whose}")
    return seconds


def _seconds(value: object) -> float:
    number, unit = _quantity(
        value, right="a duration such as `300ms`, `5s`, `2m` or `24h`", units=tuple(_UNITS)
    )
    return number * _UNITS[unit]


def _quantity(value: object, *, right: str, units: tuple[str, ...]) -> tuple[float, str]:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"must be {right}, not {shown(value)}")  # noqa: TRY004  # pydantic wants ValueError
    match = _QUANTITY.fullmatch(str(value))
    if match is None:
        raise ValueError(f"must be {right}, not {shown(value)}")
    number, unit = match.groups()
    if unit not in units:
        fault = f"the unit `{unit}` is unknown" if unit else f"{shown(value)} has no unit"
        raise ValueError(f"{fault}: {_choices(number, units)}")
    return float(number), unit


def _choices(number: str, units: tuple[str, ...]) -> str:
    *some, last = (f"`{number}{unit}`" for unit in units)
    return f"{', '.join(some)} or {last}" if some else f"{last}"
