"""One figure over the last hours, as a line: a point for each few minutes, gaps if nothing was recorded."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from appliance.wire.history_ring import SLOTS, Minute

COLUMNS: Final = 120
"""Points of a line: one for every three minutes."""

HEIGHT: Final = 24

_WIDTH: Final = SLOTS // COLUMNS

Figure = Callable[[Minute], int | None]
"""Takes a figure from a minute, None if the minute has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points from the oldest to the newest, None for a gap; `most` and `last` are of minutes."""

    points: tuple[int | None, ...]
    most: int
    last: int | None


def series(minutes: Iterable[Minute], figure: Figure, *, ends: int) -> Series:
    """Return the last hours up to the minute `ends`; a point is the greatest figure of its minutes."""
    points: list[int | None] = [None] * COLUMNS
    most, last = 0, None
    for minute in minutes:
        value, column = figure(minute), COLUMNS - 1 - (ends - minute.number) // _WIDTH
        if value is None or minute.number > ends or column < 0:
            continue
        points[column] = max(value, points[column] or 0)
        most, last = max(most, value), value
    return Series(points=tuple(points), most=most, last=last)


def line(shown: Series) -> str:
    """Return the line as the commands of an SVG path, in a field of COLUMNS by HEIGHT."""
    return "".join(_commands(shown))


def _commands(shown: Series) -> Iterator[str]:
    """Yield a move at the start of each unbroken part, and a line to each further point of it."""
    scale = (HEIGHT - 2) / (shown.most or 1)
    heights = [None if each is None else f"{HEIGHT - 1 - each * scale:g}" for each in shown.points]
    for column, (before, height) in enumerate(pairwise([None, *heights])):
        if height is not None:
            yield f"{'M' if before is None else 'L'}{column} {height}"
            # A single point is a line to where the next one would be, so that it is visible.
            if before is None and (column + 1 == COLUMNS or heights[column + 1] is None):
                yield "h1"
