"""Which part of the new connections each server takes."""

from dataclasses import replace

import pytest
from support.values.observations import NOW, observations
from support.values.statuses import server_status_of

from appliance.core.history.minutes import SECONDS, Shares
from appliance.core.status.assessment import assess
from appliance.core.status.status import Status

pytestmark = pytest.mark.pure

_WELL = assess(observations(), NOW)


def counted(**totals: int) -> Status:
    """Return a status whose pool has servers that took so many connections."""
    servers = tuple(server_status_of(name=name, total=total) for name, total in totals.items())
    return replace(_WELL, pools=(replace(_WELL.pools[0], servers=servers),))


def test_before_anything_was_seen():
    """There are none."""
    assert Shares().by_pool() == {}


def test_what_came_since_the_first_look():
    """Not what came before: a server that took all until now has no part in it."""
    shares = Shares()
    shares.look(counted(a=1000, b=0), 0.0)
    assert shares.by_pool() == {}
    shares.look(counted(a=1000, b=3, new=1), 5.0)
    assert shares.by_pool() == {"pool": {"a": 0.0, "b": 0.75, "new": 0.25}}


def test_what_is_long_ago_does_not_count():
    """Only the last minutes do."""
    shares = Shares()
    shares.look(counted(a=0, b=0), 0.0)
    at = 10.0
    while at <= SECONDS + 10:
        shares.look(counted(a=50, b=0), at)
        at += 10.0
    shares.look(counted(a=50, b=2), at)
    assert shares.by_pool() == {"pool": {"a": 0.0, "b": 1.0}}


def test_a_clock_that_goes_back():
    """It is another look all the same."""
    shares = Shares()
    shares.look(counted(a=0, b=0), 5000.0)
    shares.look(counted(a=1, b=1), 100.0)
    assert shares.by_pool() == {"pool": {"a": 0.5, "b": 0.5}}
