"""What a status says of the other nodes, by the answer of `linger`."""

import pytest
from support.values.observations import NOW, observations
from support.values.shared_ips import announcing, shared_status, with_shared
from support.values.snapshots import snapshot, virtual_router

from appliance.core.metrics.appliance import appliance_metrics
from appliance.core.status.assessment import assess
from appliance.core.status.problem_kinds import ProblemKind
from appliance.core.status.problems import holds
from appliance.wire.lines.linger_status import JudgedServer, LingerStatus, OtherNode
from appliance.wire.lines.migrate_status import MigrateStatus
from appliance.wire.lines.vrrp_status import HeardRouterStatus, RouterStatus, VrrpStatus

pytestmark = pytest.mark.pure

DRIFTED = OtherNode(name="lb-1", differs_since=1_800_000_000.0)


def told(*nodes: OtherNode) -> list[str]:
    """Return the problems where `linger` knows these nodes."""
    return list(assess(observations(linger=LingerStatus(nodes=nodes)), NOW).problems)


def judged(count: int) -> OtherNode:
    """Return a node that finds so many servers down that are up here."""
    servers = (
        JudgedServer(server=f"masters/m{each}", here="up", since=1_800_000_000.0) for each in range(count)
    )
    return OtherNode(name="lb-1", judged=tuple(servers))


def test_nodes_that_agree():
    """They are shown, and are no problem."""
    node = OtherNode(name="lb-1", release="1.0", configuration="ab")
    status = assess(observations(linger=LingerStatus(nodes=(node,))), NOW)
    assert (status.nodes, status.ok) == ((node,), True)


def test_another_configuration():
    """It is a problem, with since when."""
    assert told(DRIFTED) == ["lb-1 runs another configuration (since 2027-01-15 08:00 UTC)"]
    [problem] = assess(observations(linger=LingerStatus(nodes=(DRIFTED,))), NOW).problems
    assert (problem.kind, problem.subject) == (ProblemKind.NODE_DIFFERS, "lb-1")


def test_servers_in_another_state():
    """Each is named, with what both nodes find; of many some."""
    assert told(judged(1)) == ["masters/m0 is up here and down at lb-1 (since 2027-01-15 08:00 UTC)"]
    assert len(told(judged(3))) == 3
    assert told(judged(7))[3:] == ["4 more servers are in another state at lb-1 than here"]


def test_the_other_troubles_of_linger_stay():
    """Both are said."""
    both = LingerStatus(trouble="no reports", nodes=(DRIFTED,))
    assert len(assess(observations(linger=both), NOW).problems) == 2


def test_metrics():
    """Which nodes are heard, which have drifted apart, and how many servers they judge differently."""
    silent = OtherNode(name="lb-2", silent=True)
    found = observations(
        linger=LingerStatus(nodes=(DRIFTED, silent, OtherNode(name="lb-3", judged=judged(2).judged)))
    )
    made = {
        each.name: dict(each.samples)
        for each in appliance_metrics(assess(found, NOW), found, configuration_hash=None)
    }
    nodes = [f'{{node="lb-{each}"}}' for each in (1, 2, 3)]
    assert made["appliance_other_node_heard"] == dict(zip(nodes, (1, 0, 1), strict=True))
    assert made["appliance_other_node_configuration_differs"] == dict(zip(nodes, (1, 0, 0), strict=True))
    assert made["appliance_other_node_servers_differ"] == dict(zip(nodes, (0, 0, 2), strict=True))


def test_what_another_node_serves():
    """The virtual IPs that it advertises, by any of its addresses, and the shared IPs that it has."""
    heard = (HeardRouterStatus(peer="10.0.0.3", state="active"),)
    vrrp = VrrpStatus(routers=(RouterStatus(name="api", state="backup", heard=heard),))
    backup = snapshot(groups=[], pools=[], virtual_routers=[virtual_router("api")])
    status = assess(observations(snapshot=backup, vrrp=vrrp), NOW)
    assert holds(status, OtherNode(name="lb-1", addresses=("fd00::3", "10.0.0.3"))) == ("api",)
    assert holds(status, OtherNode(name="lb-2", addresses=("10.0.0.4",))) == ()
    shared = announcing(shared_status(others=("10.0.0.3",)), by=())
    status = assess(observations(snapshot=with_shared(), announce=shared), NOW)
    assert holds(status, OtherNode(name="lb-1", addresses=("10.0.0.3",))) == ("ingress-all",)


def test_sessions_that_cannot_move():
    """It is a problem, with why."""
    found = observations(migrate=MigrateStatus(trouble="TCP_REPAIR is refused"))
    assert list(assess(found, NOW).problems) == [
        "sessions cannot move to another node: TCP_REPAIR is refused"
    ]
