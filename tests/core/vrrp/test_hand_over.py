"""The timers of a hand-over, with literal times."""

import pytest

from appliance.core.vrrp.hand_over import LINGER, HandOver, SuccessorsHeard

pytestmark = pytest.mark.pure


def begun() -> HandOver:
    """Return a hand-over that began at 0 and ends at 4."""
    return HandOver(now=0.0, timeout=4.0)


def test_priority_zero_is_repeated_once():
    """Priority 0 is repeated at half time, and not again."""
    hand_over = begun()
    assert hand_over.deadline == 2.0
    assert hand_over.repeats(2.0)
    assert (hand_over.deadline, hand_over.repeats(3.0)) == (4.0, False)


def test_priority_zero_is_not_repeated_after_the_end():
    """A late wake-up has nothing to repeat."""
    assert not begun().repeats(4.0)


def test_releases_a_moment_after_the_successor_was_heard():
    """The addresses stay a moment longer, whatever else is heard."""
    hand_over = begun()
    hand_over.successor_heard("192.0.2.2", now=1.0)
    hand_over.successor_heard("192.0.2.3", now=1.01)
    assert (hand_over.successor, hand_over.deadline) == ("192.0.2.2", 1.0 + LINGER)
    assert (hand_over.may_release, hand_over.repeats(2.0)) == (True, False)


def test_waits_for_another_successor():
    """After a successor that leaves as well, the hand-over waits for another one."""
    hand_over = begun()
    hand_over.successor_heard("192.0.2.2", now=1.0)
    hand_over.successor_left()
    assert (hand_over.successor, hand_over.may_release, hand_over.deadline) == (None, False, 4.0)


def test_releases_with_its_group():
    """A successor of this member alone is not enough; the addresses go a moment after all have one."""
    hand_over = begun()
    hand_over.successor_heard("192.0.2.2", now=1.0)
    hand_over.follow_group(SuccessorsHeard.PARTIAL, now=1.0)
    assert (hand_over.may_release, hand_over.deadline) == (False, 4.0)
    hand_over.follow_group(SuccessorsHeard.COMPLETE, now=2.0)
    hand_over.follow_group(SuccessorsHeard.COMPLETE, now=2.01)
    assert hand_over.deadline == 2.0 + LINGER
