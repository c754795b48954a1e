"""From looks to minutes."""

from dataclasses import replace

import pytest
from support.values.observations import NOW, observations
from support.values.statuses import server_status_of

from appliance.core.history.minutes import Minutes
from appliance.core.status.assessment import assess
from appliance.core.status.status import Status
from appliance.wire.history_ring import SLOTS, FrontendMinute, Minute, PoolMinute

pytestmark = pytest.mark.pure

_WELL = assess(observations(), NOW)


def seen(*, total: int = 0, current: int = 0, failed: int = 0, queued: int = 0, up: int = 1) -> Status:
    """Return a status with a frontend and a pool that have counted this."""
    frontend = replace(
        _WELL.frontends[0],
        total=total,
        current=current,
        failed=failed,
        denied=failed,
        bytes_in=total * 10,
        bytes_out=total * 90,
    )
    pool = replace(
        _WELL.pools[0], total=total, current=current, queued=queued, up=up, servers=(server_status_of(),)
    )
    return replace(_WELL, frontends=(frontend,), pools=(pool,))


def test_a_minute():
    """Counters by how much they grew, gauges by their extremes; nothing before it has ended."""
    minutes = Minutes()
    assert minutes.look(seen(total=100, failed=1), 60.0) is None
    assert minutes.look(seen(total=130, current=9, queued=4, up=0), 90.0) is None
    assert minutes.look(seen(total=140, current=2, failed=1), 119.9) is None
    ended = minutes.look(seen(total=160, current=1, failed=3), 120.0)
    figures = FrontendMinute(connections=60, sessions=9, failed=4, bytes=6000)
    assert ended == Minute(
        number=1,
        total=figures,
        frontends={"frontend": figures},
        pools={"pool": PoolMinute(connections=60, sessions=9, queued=4, up=0)},
    )
    assert minutes.known == (ended,)


def test_a_frontend_that_comes_and_one_that_goes():
    """What is new has come from zero, what is gone is not told."""
    minutes = Minutes()
    minutes.look(seen(total=100), 60.0)
    renamed = seen(total=7)
    renamed = replace(
        renamed,
        frontends=(replace(renamed.frontends[0], name="new"),),
        pools=(replace(renamed.pools[0], name="fresh"),),
    )
    ended = minutes.look(renamed, 120.0)
    assert ended is not None
    assert set(ended.frontends) == {"new"}
    assert ended.frontends["new"].connections == 7
    assert ended.pools == {"fresh": PoolMinute(connections=7, sessions=0, queued=0, up=1)}


def test_a_counter_that_begins_anew():
    """It has grown to what it is: never by less than nothing."""
    minutes = Minutes()
    minutes.look(seen(total=100), 60.0)
    ended = minutes.look(seen(total=3), 120.0)
    assert ended is not None
    assert ended.total.connections == 3


def test_without_frontends():
    """There is a minute of zeros."""
    minutes = Minutes()
    nothing = replace(_WELL, frontends=(), pools=())
    minutes.look(nothing, 0.0)
    assert minutes.look(nothing, 60.0) == Minute(number=0, total=FrontendMinute(0, 0, 0, 0))


def test_only_the_last_hours_are_known():
    """What is older, and what a clock that ran ahead has written, is forgotten."""
    nothing = FrontendMinute(0, 0, 0, 0)
    given = [Minute(number=number, total=nothing) for number in (0, 1, 9 + SLOTS)]
    minutes = Minutes(tuple(given))
    minutes.look(seen(), 60.0 * SLOTS)
    minutes.look(seen(), 60.0 * SLOTS + 60)
    assert [each.number for each in minutes.known] == [1, SLOTS]
