"""Quantities as operators write them: durations and percentages are text with a unit, never bare numbers.

Every function takes whatever the file holds, returns the value, and raises ValueError with a message that
says what would be right.
"""

import re
from typing import Final

DURATION_PATTERN: Final = r"^[0-9]+(\.[0-9]+)?(ms|s|m|h|d)$"
DURATION_OR_OFF_PATTERN: Final = r"^(off|[0-9]+(\.[0-9]+)?(ms|s|m|h|d))$"
PERCENTAGE_PATTERN: Final = r"^[0-9]{1,3}(\.[0-9]+)?%$"

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_QUANTITY: Final = re.compile(r"([0-9]{1,12}(?:\.[0-9]{1,12})?)([A-Za-z%]*)", re.ASCII)
_SHORTEST: Final = 0.001  # the kernel's socket options count milliseconds
_LONGEST: Final = 365 * 86400.0
_SHOWN: Final = 60


def shown(value: object) -> str:
    """Return a value of the file as a message quotes it: short, and by its YAML spelling."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"`{str(value).lower()}`"
        case dict():
            return "a mapping"
        case list():
            return "a list"
    text = str(value)
    return f"`{text if len(text) <= _SHOWN else text[:_SHOWN] + '...'}`"


def duration(value: object) -> float:
    """Return a duration in seconds: `300ms`, `5s`, `2m`, `24h`, `1d`."""
    seconds = _seconds(value)
    if seconds < _SHORTEST:
        raise ValueError(f"{shown(value)} is too short: at least `1ms`")
    return seconds


def duration_or_off(value: object) -> float:
    """Return a duration in seconds, 0.0 for `off`."""
    if value == "off":
        return 0.0
    return 0.0 if _seconds(value) == 0 else duration(value)


def percentage(value: object) -> float:
    """Return a percentage as a fraction: `30%` is 0.3."""
    number, _ = _quantity(value, right="a percentage such as `30%`", units=("%",))
    if number > 100:
        raise ValueError(f"{shown(value)} is more than all: `0%` to `100%`")
    return number / 100


def _seconds(value: object) -> float:
    number, unit = _quantity(
        value, right="a duration such as `300ms`, `5s`, `2m` or `24h`", units=tuple(_UNITS)
    )
    seconds = number * _UNITS[unit]
    if seconds > _LONGEST:
        raise ValueError(f"{shown(value)} is too long: at most `365d`")
    return seconds


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
