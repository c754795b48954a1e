"""Rates, peaks and means, by one look after the other."""

import pytest
from support.values import boards
from support.values.observations import NOW, observations

from appliance.core.haproxy.activity import Activity, Counted, ProxyKind, Trend, counted
from appliance.core.status.assessment import assess

pytestmark = pytest.mark.pure

PLACE = (ProxyKind.SERVER, "masters", "m0")


def seen(*looks: Counted) -> Trend:
    """Return the trend after looks a second apart."""
    activity = Activity()
    for second, each in enumerate(looks):
        activity.look({PLACE: each}, 100.0 + second)
    return activity.trend(PLACE)


def test_what_was_never_seen_has_no_trend():
    """A place that is new has zeros, and never had a session."""
    assert Activity().trend(PLACE) == Trend()


def test_the_first_look_knows_no_rate():
    """What came before it may have come in a year."""
    trend = seen(Counted(current=3, total=1000, queued=1))
    assert (trend.rate, trend.most_current, trend.most_queued, trend.last_at) == (0, 3, 1, None)


def test_rates_and_peaks():
    """The rate is that of the last second, the peaks are those of all."""
    trend = seen(
        Counted(current=1, total=10),
        Counted(current=9, total=30, queued=4),
        Counted(current=2, total=35),
        Counted(current=2, total=35),
    )
    assert (trend.rate, trend.most_rate) == (0, 20)
    assert (trend.most_current, trend.most_queued, trend.last_at) == (9, 4, 102.0)


def test_counters_that_are_gone_are_no_rate():
    """A frontend that a proxy takes over from the kernel begins anew."""
    trend = seen(Counted(current=1, total=500), Counted(current=0, total=3), Counted(current=0, total=5))
    assert (trend.rate, trend.most_rate) == (2, 2)


def test_two_looks_at_one_moment():
    """A clock that stands still divides by nothing."""
    activity = Activity()
    for _ in range(2):
        activity.look({PLACE: Counted(current=0, total=5)}, 100.0)
    assert activity.trend(PLACE).rate == 0


def test_means_are_of_the_last_connections():
    """What took long a thousand connections ago is forgotten."""
    slow = Counted(current=0, total=600, connected=600, queue_seconds=600.0, connect_seconds=60.0)
    fast = Counted(current=0, total=1200, connected=1200, queue_seconds=600.0, connect_seconds=66.0)
    last = Counted(current=0, total=1800, connected=1800, queue_seconds=600.0, connect_seconds=72.0)

    first = seen(Counted(current=0, total=0), slow)
    assert (first.queue_mean, first.connect_mean) == (1.0, pytest.approx(0.1))
    later = seen(Counted(current=0, total=0), slow, fast, last)
    assert (later.queue_mean, later.connect_mean) == (0.0, pytest.approx(0.01))


def test_the_mean_session_is_of_those_that_have_ended():
    """What is connected still has no length yet."""
    none = Counted(current=0, total=0)
    open_still = Counted(current=4, total=4, connected=4)
    ended = Counted(current=1, total=4, connected=4, ended=3, session_seconds=6.0)

    assert seen(none, open_still).session_mean == 0.0
    assert seen(none, open_still, ended).session_mean == 2.0


def test_a_place_that_is_gone_is_forgotten():
    """When it comes back it is a new one."""
    activity = Activity()
    activity.look({PLACE: Counted(current=7, total=7)}, 100.0)
    activity.look({}, 101.0)
    assert activity.trend(PLACE) == Trend()


def test_a_pool_is_the_sum_of_its_servers():
    """All frontends, pools and servers of a status have counters."""
    worker = boards.worker(
        frontends=(boards.frontend_counters(current=1, total=5),),
        servers=(boards.server_counters(current=1, total=5),),
    )
    found = counted(assess(observations(workers=(worker, worker)), NOW))

    assert found[ProxyKind.FRONTEND, "frontend", ""] == Counted(current=2, total=10)
    assert found[ProxyKind.SERVER, "pool", "server-0"] == Counted(current=2, total=10, queued=4)
    assert found[ProxyKind.BACKEND, "pool", ""] == Counted(current=2, total=10, queued=4)
