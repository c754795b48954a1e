"""When the connections of lost servers end, which another node may go on with."""

from dataclasses import replace
from random import Random

import pytest
from support.values.boards import health
from support.values.snapshots import check, pool, server

from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import PoolState
from appliance.core.forwarding.lost_servers import LostServers
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.pools import OnDown, Pool

pytestmark = pytest.mark.pure

NAMES = ("a", "b")
RIPE = 3.0  # a second between two checks, and two seconds for each


def _pool(on_down: OnDown = OnDown.AUTO) -> PoolState:
    checked = check(interval=1.0, timeout=2.0)
    found = _state(pool(servers=[server(each, check=checked) for each in NAMES], on_down=on_down))
    _lose(found)
    return found


def _state(config: Pool) -> PoolState:
    return PoolState(config, workers=1, index=0, random=Random(1))  # noqa: S311  # unused


def _lose(state: PoolState, *names: str, unreachable: bool = True) -> list[PoolMember]:
    """Let exactly these servers be down; return whose sessions end."""
    board = [
        health(
            name,
            verdict=HealthVerdict.DOWN if name in names else HealthVerdict.UP,
            unreachable=unreachable and name in names,
        )
        for name in NAMES
    ]
    return list(state.observe({(each.pool, each.server): each for each in board}).closing)


def test_they_end_when_the_others_were_checked_too():
    """Once, and not before."""
    state, lost = _pool(), LostServers()
    lost.add(gone := _lose(state, "a"), 10.0)
    assert [each.name for each in gone] == ["a"]
    assert lost.take({"pool": state}, 10.0 + RIPE - 0.1) == []
    assert lost.take({"pool": state}, 10.0 + RIPE) == gone
    assert lost.take({"pool": state}, 10.0 + RIPE) == []


def test_without_any_server_none_ends():
    """The node may be cut off. When one of them is back, those of the other end."""
    state, lost = _pool(), LostServers()
    lost.add(_lose(state, "a"), 10.0)
    lost.add(_lose(state, "a", "b"), 11.0)
    assert lost.take({"pool": state}, 100.0) == []
    _lose(state, "a")
    assert [each.name for each in lost.take({"pool": state}, 101.0)] == ["a"]
    _lose(state)
    assert lost.take({"pool": state}, 102.0) == []


def test_one_that_has_come_back_keeps_them():
    """Also if it is not up, but can be reached again."""
    state, lost = _pool(), LostServers()
    lost.add(_lose(state, "a"), 10.0)
    _lose(state, "a", unreachable=False)
    assert lost.take({"pool": state}, 20.0) == []
    _lose(state, "a")
    assert lost.take({"pool": state}, 20.0) == []


def test_where_whoever_is_down_loses_them():
    """`on_down: close-sessions`: reachable or not."""
    state, lost = _pool(OnDown.CLOSE_SESSIONS), LostServers()
    lost.add(_lose(state, "a", unreachable=False), 10.0)
    assert [each.name for each in lost.take({"pool": state}, 20.0)] == ["a"]


def test_what_is_no_longer_configured_is_forgotten():
    """The server, or its pool; one without a check goes by the operator's word, at once."""
    state, lost = _pool(), LostServers()
    lost.add(_lose(state, "a"), 10.0)
    assert lost.take({}, 20.0) == []
    lost.add(_lose(state), 20.0)
    lost.add(_lose(state, "a"), 20.0)
    state.apply(replace(state.config, servers=state.config.servers[1:]))
    assert lost.take({"pool": state}, 30.0) == []


def test_a_server_without_checks_waits_for_nobody():
    """Its state is the operator's."""
    config = pool(servers=[server("a", check=None), server("b")], on_down=OnDown.CLOSE_SESSIONS)
    state, lost = _state(config), LostServers()
    lost.add(gone := _lose(state, "a"), 10.0)
    assert lost.take({"pool": state}, 10.0) == gone
