"""How an active leaves, with literal times."""

import pytest

from appliance.core.vrrp.hand_over import LINGER, AfterHandOver, HandOver, SuccessorsHeard

pytestmark = pytest.mark.pure


def leaving() -> HandOver:
    """Return a departure that began at 0 and ends at 4."""
    return HandOver(AfterHandOver.STOP, now=0.0, patience=4.0)


def test_is_said_twice_and_over_at_the_end():
    """Priority 0 is repeated at half time, and not again."""
    departure = leaving()
    assert departure.deadline == 2.0
    assert departure.repeats(2.0)
    assert (departure.deadline, departure.repeats(3.0)) == (4.0, False)


def test_is_not_said_after_the_end():
    """A late wake-up has nothing to repeat."""
    assert not leaving().repeats(4.0)


def test_lingers_after_the_first_word_of_a_successor():
    """The addresses stay a moment longer, whatever else is heard."""
    departure = leaving()
    departure.relieve("192.0.2.2", now=1.0)
    departure.relieve("192.0.2.3", now=1.01)
    assert (departure.successor, departure.deadline) == ("192.0.2.2", 1.0 + LINGER)
    assert (departure.relieved, departure.repeats(2.0)) == (True, False)


def test_waits_for_another_successor():
    """A successor that leaves relieves nobody."""
    departure = leaving()
    departure.relieve("192.0.2.2", now=1.0)
    departure.bereave()
    assert (departure.successor, departure.relieved, departure.deadline) == (None, False, 4.0)


def test_heeds_its_group():
    """A successor of this member alone is not enough; the moment begins when all have one."""
    departure = leaving()
    departure.relieve("192.0.2.2", now=1.0)
    departure.heed(SuccessorsHeard.PARTIAL, now=1.0)
    assert (departure.relieved, departure.deadline) == (False, 4.0)
    departure.heed(SuccessorsHeard.COMPLETE, now=2.0)
    departure.heed(SuccessorsHeard.COMPLETE, now=2.01)
    assert departure.deadline == 2.0 + LINGER
