"""A list is believed when it has rested for a second, or after ten."""

import pytest

from appliance.core.discovery.members import PATIENCE, REST, Settling

pytestmark = pytest.mark.pure


def test_what_flaps_is_one_change():
    """Only what is there when it rests counts; what comes back to the old is no change."""
    settling = Settling("a")
    settling.observe("b", now=0.0)
    settling.observe("c", now=0.5)
    assert settling.deadline == 0.5 + REST
    assert not settling.settle(now=1.2)
    assert settling.settle(now=1.5)
    assert (settling.settled, settling.deadline) == ("c", None)
    assert not settling.settle(now=9.0)
    settling.observe("d", now=10.0)
    settling.observe("c", now=10.5)
    assert settling.deadline is None


def test_the_same_again_does_not_begin_anew():
    """A relist that shows nothing new leaves the deadline where it is."""
    settling = Settling("a")
    settling.observe("b", now=0.0)
    settling.observe("b", now=0.9)
    assert settling.deadline == REST


def test_what_never_rests_is_believed_after_a_while():
    """One that flaps for ever must not hide that another one has gone."""
    settling = Settling("a")
    for number in range(40):
        settling.observe(f"{number}", now=number * 0.5)
        if settling.settle(now=number * 0.5):
            break
    assert number * 0.5 == PATIENCE
