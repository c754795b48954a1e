"""Pools and servers in a status, of the health board and the boards of workers."""

import pytest
from support.values import boards
from support.values.observations import NOW, observations
from support.values.snapshots import frontend, group, pool, server, snapshot

from appliance.core.status.assessment import assess
from appliance.model.check_results import CheckResult
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import AdminState, HealthVerdict, ServerState

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("verdict", "admin", "state"),
    [
        (HealthVerdict.UP, AdminState.READY, ServerState.UP),
        (HealthVerdict.DOWN, AdminState.READY, ServerState.DOWN),
        (HealthVerdict.UP, AdminState.DRAIN, ServerState.DRAIN),
        (HealthVerdict.UP, AdminState.MAINT, ServerState.MAINT),
        (HealthVerdict.UNKNOWN, AdminState.READY, ServerState.CHECKING),
    ],
)
def test_only_a_server_that_is_up_keeps_a_pool_well(
    verdict: HealthVerdict, admin: AdminState, state: ServerState
):
    """A pool in use whose only server is anything but up is a problem."""
    found = observations(health=boards.health_board(boards.health(verdict=verdict, admin=admin)))
    status = assess(found, NOW)
    assert status.pools[0].servers[0].state is state
    assert status.problems == (() if state is ServerState.UP else ("pool pool has no server up",))


def test_a_pool_that_nobody_uses_may_be_down():
    """Only pools that a frontend names, as its pool or as what it needs, count."""
    needing = frontend("monitor", respond="/monitor", pool=None, needs="needed")
    found = observations(
        snapshot=snapshot(
            groups=[group(frontends=[needing])],
            pools=[pool("needed"), pool("unused"), pool("empty", servers=[])],
        )
    )
    status = assess(found, NOW)
    assert {each.name: each.in_use for each in status.pools} == {
        "needed": True,
        "unused": False,
        "empty": False,
    }
    assert status.problems == ("pool needed has no server up",)


def test_a_server_shows_its_last_check():
    """Result, status, duration, age and weights are those of the prober's board."""
    member = server("server-0", weight=10, host="::1", port=6443, backup=True)
    known = boards.health(weight=2.5, host="", result=CheckResult.L4CON, status=0, detail="refused")
    found = observations(snapshot=snapshot(pools=[pool(servers=[member])]), health=boards.health_board(known))
    shown = assess(found, NOW).pools[0].servers[0]
    assert (shown.address, shown.resolved, shown.backup) == ("[::1]:6443", None, True)
    assert (shown.weight, shown.effective_weight, shown.since) == (10, 2.5, 100.0)
    assert shown.check is not None
    assert (shown.check.result, shown.check.status, shown.check.detail) == (
        CheckResult.L4CON,
        None,
        "refused",
    )


def test_a_server_that_was_never_checked_has_no_check():
    """Before the first check, and without a board, there is nothing to show."""
    unchecked = boards.health(verdict=HealthVerdict.UNKNOWN, result=CheckResult.UNCHECKED)
    for board in (boards.health_board(unchecked), None):
        shown = assess(observations(health=board), NOW).pools[0].servers[0]
        assert shown.check is None
        assert shown.state is ServerState.CHECKING


def test_counters_are_summed_over_workers_and_generations():
    """A server's connections are those of every worker that lives."""
    workers = tuple(
        boards.worker(
            generation=generation,
            index=index,
            frontends=(boards.frontend_counters(current=1, total=10), boards.frontend_counters("other")),
            servers=(boards.server_counters(current=1, total=5),),
            reasons={EndReason.COMPLETED: 4, EndReason.DENIED: 0},
        )
        for generation, index in ((1, 0), (1, 1), (2, 0))
    )
    ingress = boards.worker(program="proxy-ingress", frontends=(boards.frontend_counters(total=99),))
    status = assess(observations(workers=(*workers, ingress)), NOW)
    [front] = status.frontends
    assert (front.current, front.total, front.denied, front.failed) == (3, 30, 3, 6)
    assert (front.bytes_in, front.bytes_out) == (300, 1200)
    [pool_status] = status.pools
    [member] = pool_status.servers
    assert (member.current, member.total, member.failed, member.queued) == (3, 15, 3, 6)
    assert (pool_status.current, pool_status.total, pool_status.queued) == (3, 15, 6)
    assert status.ended == {"completed": 12}
