"""Times and numbers as HAProxy reads them, and times in our own format (configuration.txt, 2.5)."""

import re
from collections.abc import Callable
from typing import Final

from appliance.model.messages.quoting import shown

FOREVER: Final = "365d"
"""Replaces no timeout: the longest time of our configuration."""

_TIME: Final = re.compile(r"([0-9]{1,12})(us|ms|s|m|h|d)?", re.ASCII)
_EXCESS: Final = re.compile(r"([0-9]{1,12}(?:us|ms|s|m|h|d))(\S*)", re.ASCII)
_NUMBER: Final = re.compile(r"[0-9]{1,10}", re.ASCII)
_MILLISECONDS: Final = {
    "us": 0.001,
    "ms": 1.0,
    "s": 1000.0,
    "m": 60_000.0,
    "h": 3_600_000.0,
    "d": 86_400_000.0,
}
_UNITS: Final = (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))
_LONGEST: Final = 2_147_483_647
"""HAProxy's longest time in milliseconds, 24.8 days."""


def milliseconds(text: str) -> int:
    """Return a time in milliseconds, rounded up; a plain number is in milliseconds. Raises ValueError."""
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(
            f"{shown(text)} is not a HAProxy time, such as `5000`, `300ms`, `5s`, `2m`, `1h` or `1d`"
        )
    found = -int(-float(match[1]) * _MILLISECONDS[match[2] or "ms"] // 1)
    if found > _LONGEST:
        raise ValueError(f"{shown(text)} is longer than HAProxy's longest time, 24 days")
    return found


def time_alone(text: str) -> tuple[str, str]:
    """Return a time and the text after its unit, which HAProxy 2.6 warns about and ignores: `5s;`."""
    match = _EXCESS.fullmatch(text)
    return (match[1], match[2]) if match else (text, "")


def duration(found: int) -> str:
    """Return milliseconds in their largest whole unit; HAProxy's 0 for endless is our longest."""
    if found == 0:
        return FOREVER
    unit, size = next((unit, size) for unit, size in _UNITS if found % size == 0)
    return f"{found // size}{unit}"


def within(least: int, most: int) -> Callable[[str], int]:
    """Return the reader of a whole number; it raises ValueError if the number is out of bounds."""

    def read(text: str) -> int:
        if _NUMBER.fullmatch(text) and least <= int(text) <= most:
            return int(text)
        raise ValueError(f"{shown(text)} is not a number from {least} to {most}")

    return read
