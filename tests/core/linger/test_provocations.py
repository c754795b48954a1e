"""Clients are made to send once in the time in which they answer once."""

import pytest

from appliance.core.linger.provocations import APART, MOST, Provocations
from appliance.core.linger.strays import AT_ONCE
from appliance.wire.linger_strays import Ends

pytestmark = pytest.mark.pure


def ends(number: int) -> Ends:
    """Return a connection."""
    return ("203.0.113.5", number, "198.51.100.10", 443)


def test_a_connection_has_its_next_one_when_the_client_answers_again():
    """Another one has its first at once."""
    made = Provocations()
    made.add([ends(1)], 10.0)
    assert made.due(10.0) == [ends(1)]
    assert not made.pending
    made.add([ends(1), ends(2)], 10.1)
    assert made.due(10.1) == [ends(2)]
    assert made.pending
    assert made.due(10.0 + APART) == [ends(1)]
    made.add([ends(1)], 20.0)
    assert made.due(20.0) == [ends(1)]


def test_there_is_a_limit():
    """A turn takes some, and what is too much is left to its client, which sends by itself."""
    made = Provocations()
    made.add(map(ends, range(MOST + 1)), 10.0)
    assert len(made.due(10.0)) == AT_ONCE
    rest = [made.due(10.0) for _ in range(MOST // AT_ONCE)]
    assert sum(map(len, rest)) == MOST - AT_ONCE
    assert not made.pending
