"""The queue of a pool keeps the order, and shows how many wait for each server."""

import pytest
from support.values.snapshots import server

from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_queue import PoolQueue

pytestmark = pytest.mark.pure


def member(name: str) -> PoolMember:
    """Return a server of a pool."""
    return PoolMember(pool="pool", config=server(name), address=None, limit=0, seed=1, turn=0.0)


def test_the_first_whose_wish_suits_is_taken():
    """Others keep their place in the order."""
    queue = PoolQueue()
    one, other = member("a"), member("b")
    queue.add("first", one, avoid=())
    queue.add("second", other, avoid=())
    queue.add("third", other, avoid=[one])
    assert (one.queued, other.queued) == (1, 2)
    assert queue.take_first(lambda wish: wish[0] is other) == "second"
    assert queue.take_first(lambda _: False) is None
    assert (one.queued, other.queued) == (1, 1)
    assert queue.take_all(but="third".__eq__) == ["first"]
    assert queue.take_all() == ["third"]
    assert (one.queued, other.queued) == (0, 0)


def test_who_waits_for_no_server_is_counted_at_none():
    """Before the first checks nobody knows whom a connection waits for."""
    queue = PoolQueue()
    queue.add("first", None, avoid=())
    assert list(queue.waiting) == ["first"]
    queue.remove("first")
    queue.remove("first")
    assert not queue.waiting
