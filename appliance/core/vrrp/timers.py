"""The times of RFC 9568 section 6.1 and RFC 3768 section 6.1, in seconds."""

from typing import Final, Literal

SHORTEST_ADVERT: Final = 0.01
"""The least interval that version 3 can say; an advertisement that says 0 means no less."""


def skew(version: Literal[2, 3], *, priority: int, interval: float) -> float:
    """Return Skew_Time: (256 - priority) / 256 of the active's interval, in version 2 of a second."""
    unit = interval if version == 3 else 1.0
    return (256 - priority) * unit / 256


def down_interval(version: Literal[2, 3], *, priority: int, interval: float, adverts: int) -> float:
    """Return Active_Down_Interval; `adverts` is 3 in the RFCs, keepalived's `down_timer_adverts` here."""
    return adverts * interval + skew(version, priority=priority, interval=interval)
