"""A frontend's live state obeys its configuration and keeps its counters."""

import pytest
from support.values.snapshots import frontend

from appliance.core.balancing.frontend_state import FrontendState
from appliance.wire.boards.worker_board import FrontendCounters

pytestmark = pytest.mark.pure


def test_limit_is_this_workers_share():
    """At its share of max_connections a frontend is full; without a limit never."""
    state = FrontendState(frontend("api", max_connections=5), workers=2, index=0)
    assert (state.name, state.limit, state.is_full()) == ("api", 3, False)
    state.current = 3
    assert state.is_full()
    state.apply(frontend("api", max_connections=0), workers=2, index=0)
    assert not state.is_full()
    assert state.current == 3


def test_access_lists_only_where_listed():
    """Without lists nobody is looked up."""
    assert FrontendState(frontend("api"), workers=1, index=0).access_lists is None
    assert FrontendState(frontend("api", allow=("10.0.0.0/8",)), workers=1, index=0).access_lists is not None


@pytest.mark.parametrize(("chance", "expected"), [(0.0, 190.0), (0.5, 200.0), (1.0, 210.0)])
def test_age_is_spread_by_jitter(chance: float, expected: float):
    """Old connections end around max_age, not all in one moment."""
    state = FrontendState(frontend("api", max_age=100.0, max_age_jitter=0.1), workers=1, index=0)
    assert state.max_age == 100.0
    assert state.expiry(100.0, chance=chance) == pytest.approx(expected)


def test_what_the_board_shows_of_a_frontend():
    """Its counters carry its name."""
    state = FrontendState(frontend("api"), workers=1, index=0)
    state.current, state.total, state.denied, state.failed, state.bytes_in, state.bytes_out = range(1, 7)
    assert state.counters() == FrontendCounters(
        name="api", current=1, total=2, denied=3, failed=4, bytes_in=5, bytes_out=6
    )
