"""Figures of the last hours as a line."""

import pytest

from appliance.core.history.series import COLUMNS, HEIGHT, Series, line, series
from appliance.wire.history_ring import SLOTS, FrontendMinute, Minute

pytestmark = pytest.mark.pure


def minutes(figures: dict[int, int]) -> list[Minute]:
    """Return minutes by their numbers, with so many connections."""
    return [Minute(number=number, total=FrontendMinute(count, 0, 0, 0)) for number, count in figures.items()]


def shown(figures: dict[int, int], *, ends: int) -> Series:
    """Return the connections of minutes."""
    return series(minutes(figures), lambda each: each.total.connections, ends=ends)


def test_a_point_is_the_greatest_of_its_minutes():
    """A peak of one minute does not vanish."""
    found = shown({998: 1, 999: 50, 1000: 2}, ends=1000)
    assert found.points[-2:] == (None, 50)
    assert (found.most, found.last) == (50, 2)


def test_minutes_that_are_not_in_the_last_hours():
    """Too old ones and those of a clock that ran ahead are no part of the line."""
    found = shown({1000 - SLOTS: 9, 1000 - SLOTS + 1: 7, 1001: 8}, ends=1000)
    assert found.points == (7, *([None] * (COLUMNS - 1)))
    assert (found.most, found.last) == (7, 7)


def test_minutes_without_the_figure():
    """They are a gap."""
    found = series(minutes({1000: 5}), lambda _: None, ends=1000)
    assert found == Series(points=(None,) * COLUMNS, most=0, last=None)
    assert line(found) == ""


def test_a_line():
    """It goes up to the greatest value; a gap interrupts it, and a point alone is seen."""
    points = [None] * COLUMNS
    points[0:3] = 0, 10, 5
    points[5] = 10
    points[-1] = 0
    drawn = line(Series(points=tuple(points), most=10, last=0))
    assert drawn == f"M0 {HEIGHT - 1}L1 1L2 12M5 1h1M{COLUMNS - 1} {HEIGHT - 1}h1"


def test_a_line_of_zeros():
    """It is at the bottom."""
    points = (*([None] * (COLUMNS - 2)), 0, 0)
    assert line(Series(points=points, most=0, last=0)) == f"M118 {HEIGHT - 1}L119 {HEIGHT - 1}"
