"""Who gives way where all places are taken."""

import pytest

from appliance.net.control.connection_slots import ConnectionSlots

pytestmark = pytest.mark.sockets


def test_who_takes_most_gives_way():
    """Of the origin with most places the one that has rested longest goes; the others keep theirs."""
    places: ConnectionSlots[str] = ConnectionSlots()
    for name in ("b1", "a1", "a2", "a3", "b2"):
        places.enter(name, name[0])
    places.rest("a1")
    assert [places.give_way() for _ in range(3)] == ["a2", "b1", "a3"]
    assert len(places) == 2


def test_who_is_at_work_stays():
    """Nobody goes where all are at work; who rests again may go."""
    places: ConnectionSlots[str] = ConnectionSlots()
    places.enter("a", 0)
    places.work("a")
    assert places.give_way() is None
    places.rest("a")
    assert places.give_way() == "a"
    places.rest("a")
    assert (len(places), places.give_way()) == (0, None)
