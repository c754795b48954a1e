"""The servers of which other nodes are told."""

import pytest
from support.values.boards import health
from support.values.snapshots import check, pool, server

from appliance.core.linger.judged_servers import judged_servers, told_servers, watched_servers
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.wire.linger_node import MOST_SERVERS, server_key

pytestmark = pytest.mark.pure


def judged(*records: ServerHealthRecord) -> dict[str, bool]:
    """Return by name whether servers of the pool `p` are told as up."""
    servers = [server(each.server, check=check(interval=2.0, timeout=1.0)) for each in records]
    found = judged_servers(watched_servers([pool("p", servers=servers)]), records)
    return {each.name: each.up for each in found.values()}


def test_those_with_a_verdict():
    """Those that are drained are checked too; one in maintenance and one not checked yet are left out."""
    assert judged(
        health("up", pool="p"),
        health("drained", pool="p", admin=AdminState.DRAIN),
        health("down", pool="p", verdict=HealthVerdict.DOWN),
        health("maint", pool="p", admin=AdminState.MAINT),
        health("new", pool="p", verdict=HealthVerdict.UNKNOWN),
    ) == {"p/down": False, "p/drained": True, "p/up": True}


def test_servers_without_a_check_and_of_another_configuration():
    """The one is up at every node, the other is no longer in a pool."""
    watched = watched_servers([pool("p", servers=[server("free"), server("a", check=check())])])
    assert watched.keys() == {("p", "a")}
    found = judged_servers(watched, [health("free", pool="p"), health("gone", pool="p")])
    assert found == {}


def test_a_difference_has_to_last_longer_than_checks_may_take():
    """The slower the check and the more of them it needs, and the more servers there are, the longer."""
    slow = check(interval=2.0, fast_interval=1.0, down_interval=5.0, timeout=1.0, rise=2, fall=3)
    watched = watched_servers([pool("p", servers=[server("a", check=slow)])])
    assert watched["p", "a"].key == server_key("p", "a")
    assert watched["p", "a"].delay == pytest.approx(3 * (5.0 + 1.0) + 10.0, abs=0.01)
    many = [server(f"s{each}", check=slow) for each in range(1000)]
    assert watched_servers([pool("p", servers=many)])["p", "s0"].delay == pytest.approx(18.0 + 12.0)


def test_of_very_many_servers_those_that_are_down_are_told():
    """A datagram has an end."""
    names = [f"s{each:03}" for each in range(MOST_SERVERS + 10)]
    down = {"s100", names[-1]}
    records = [
        health(name, pool="p", verdict=HealthVerdict.DOWN if name in down else HealthVerdict.UP)
        for name in names
    ]
    watched = watched_servers([pool("p", servers=[server(name, check=check()) for name in names])])
    told = told_servers(judged_servers(watched, records))
    assert len(told) == MOST_SERVERS
    assert [key for key, up in told.items() if not up] == [server_key("p", name) for name in sorted(down)]
