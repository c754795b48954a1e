"""Rates are never negative, and over time they are what was counted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.values import boards
from support.values.observations import NOW, observations
from support.values.snapshots import frontend, group, pool, server, snapshot

from appliance.core.status.assessment import assess
from appliance.core.top.rates import PATIENCE, Rates, counters, looked, summed

pytestmark = pytest.mark.pure

COUNTER = ("server", "pool", "a", "total")


def run(*looks: tuple[float, float]) -> list[Rates]:
    """Return the rates after each look, given by moment and count."""
    rates: list[Rates] = []
    for at, count in looks:
        rates.append(looked(rates[-1] if rates else None, {COUNTER: count}, at))
    return rates


def test_a_rate_is_what_came_over_the_time_between():
    """The first look knows none, nor does a second one at the same moment."""
    first, second, third = run((10.0, 100), (12.0, 150), (12.0, 150))
    assert (first.of(*COUNTER), second.of(*COUNTER), third.of(*COUNTER)) == (None, 25.0, None)
    assert (first.seconds, second.seconds) == (0.0, 2.0)
    assert second.of("other") is None


def test_a_count_that_was_not_read_whole_is_no_burst_later():
    """What is missing for one look is not counted again at the next."""
    *_, low, back = run((0.0, 100), (1.0, 110), (2.0, 20), (3.0, 115))
    assert (low.of(*COUNTER), back.of(*COUNTER)) == (0.0, 5.0)


def test_a_counter_that_was_begun_anew_counts_from_there():
    """After some looks it is believed."""
    looks = [(float(at), 10.0 * at) for at in range(1, PATIENCE + 2)]
    *low, believed, after = run((0.0, 1000), *looks)
    assert [each.of(*COUNTER) for each in low[1:]] == [0.0] * (PATIENCE - 1)
    assert (believed.of(*COUNTER), after.of(*COUNTER)) == (None, 10.0)


def test_what_is_gone_is_forgotten():
    """A server that comes back begins anew."""
    rates = looked(looked(None, {COUNTER: 5}, 1.0), {}, 2.0)
    assert rates.seen == {}
    assert looked(rates, {COUNTER: 9}, 3.0).of(*COUNTER) is None


steps = st.lists(st.tuples(st.floats(0.01, 100), st.integers(0, 10**9)), min_size=1, max_size=20)


@given(steps)
def test_growing_counters_lose_nothing(taken: list[tuple[float, int]]):
    """Rates times seconds is all that came."""
    at, count, came = 0.0, 7, 0.0
    rates = looked(None, {COUNTER: count}, at)
    for seconds, more in taken:
        at, count = at + seconds, count + more
        rates = looked(rates, {COUNTER: count}, at)
        rate = rates.of(*COUNTER)
        assert rate is not None
        came += rate * rates.seconds
    assert came == pytest.approx(count - 7)


@given(st.lists(st.tuples(st.floats(0, 100), st.integers(0, 10**6)), max_size=20))
def test_rates_are_never_negative(taken: list[tuple[float, int]]):
    """However counts and clocks behave."""
    at, rates = 0.0, None
    for seconds, count in taken:
        at += seconds
        rates = looked(rates, {COUNTER: count}, at)
        rate = rates.of(*COUNTER)
        assert rate is None or rate >= 0.0


def test_every_counter_of_a_status_is_looked_at():
    """Frontends, servers with their checks, and the ends of connections."""
    worker = boards.worker(
        frontends=(boards.frontend_counters(total=5),), servers=(boards.server_counters(total=4),)
    )
    made = snapshot(
        groups=[group(frontends=[frontend()])], pools=[pool(servers=[server(), server("unknown")])]
    )
    health = boards.health_board(boards.health(failed=3))
    found = counters(assess(observations(snapshot=made, workers=(worker,), health=health), NOW))
    assert found["frontend", "proxy-api", "frontend", "total"] == 5
    assert found["server", "pool", "server-0", "bytes_out"] == 160
    assert found["server", "pool", "server-0", "checks_failed"] == 3
    assert found["server", "pool", "unknown", "checks_failed"] == 0


def test_sums():
    """Of those that are known."""
    assert (summed([1.0, None, 2.0]), summed([None]), summed([])) == (3.0, None, None)
