"""Many deadlines: in order, asked for only where one has moved."""

import random

import pytest

from appliance.net.loop.loop import Loop
from appliance.net.loop.schedule import Schedule

pytestmark = pytest.mark.sockets


class Member:
    """One of many that counts how often it is asked."""

    def __init__(self, deadline: float | None) -> None:
        self._deadline = deadline
        self.asked = 0
        self.woken = 0

    @property
    def deadline(self) -> float | None:
        """Return the deadline, and count that it was asked for."""
        self.asked += 1
        return self._deadline

    def move(self, deadline: float | None) -> None:
        """Have another deadline."""
        self._deadline = deadline

    def tick(self, now: float) -> None:
        """Be due never more."""
        assert self._deadline is not None
        assert self._deadline <= now
        self.woken += 1
        self._deadline = None


def test_only_those_that_have_moved_are_asked():
    """A thousand that do not move cost nothing, whatever one of them does."""
    schedule = Schedule()
    members = [Member(float(number)) for number in range(1000)]
    for each in members:
        schedule.add(each)
    assert schedule.earliest() == 0.0
    for round_ in range(100):
        members[0].move(2000.0 + round_)
        schedule.moved(members[0])
        assert schedule.earliest() == 1.0
    assert sum(each.asked for each in members[1:]) == 999


def test_what_is_due_comes_once_for_each_deadline():
    """Whatever has moved forth and back, those that are due by now are found, and no others."""
    schedule, dice = Schedule(), random.Random(7)  # noqa: S311  # the same each time
    members = [Member(None) for _ in range(50)]
    for each in members:
        schedule.add(each)
    for now in range(200):
        for each in dice.sample(members, 10):
            each.move(dice.choice([None, now + dice.randrange(-5, 20)]))
            schedule.moved(each)
        expected = {each for each in members if each.deadline is not None and each.deadline <= now}
        assert schedule.due(float(now)).keys() == expected
        assert schedule.due(float(now)).keys() == expected, "they are due until their deadline has moved"


def test_one_that_is_put_off_without_end_takes_no_room():
    """Each advertisement puts a claim off, and its sender chooses how far; others are due before."""
    schedule = Schedule()
    waits, sooner = Member(100.0), Member(50.0)
    for each in (waits, sooner):
        schedule.add(each)
    for number in range(10_000):
        waits.move(100.0 + number)
        schedule.moved(waits)
        assert schedule.earliest() == sooner.deadline
    assert len(schedule._heap) < 20
    assert list(schedule.due(60.0)) == [sooner]
    assert list(schedule.due(1e6)) == [sooner, waits]


def test_one_that_was_removed_is_due_no_more():
    """Nor is it asked, even where it tells once more that its deadline has moved."""
    schedule = Schedule()
    gone, stays = Member(1.0), Member(2.0)
    schedule.add(gone)
    schedule.add(stays)
    assert schedule.earliest() == 1.0
    schedule.remove(gone)
    schedule.moved(gone)
    assert schedule.earliest() == 2.0
    schedule.remove(stays)
    assert schedule.earliest() is None


def test_the_loop_wakes_one_of_many():
    """It is woken at the deadline that it had last told of."""
    loop, member = Loop(), Member(None)
    moved = loop.add_one_of_many(member)
    member.move(0.0)
    moved()
    loop.turn()
    assert member.woken == 1
    loop.remove(member)
    loop.close()
