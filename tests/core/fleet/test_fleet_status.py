"""What the statuses of all nodes say together."""

import pytest

from appliance.core.fleet.fleet_status import NodeReport, problems, shown
from appliance.wire.lines.node_answers import NodeStatus, NodeVirtualIp

pytestmark = pytest.mark.pure


def node(name: str, *, holds: str = "", lacks: str = "", **changes: object) -> NodeReport:
    """Return the report of a node that is well, and has some virtual IPs and not others."""
    active = tuple(NodeVirtualIp(name=each, active=True) for each in holds.split())
    other = tuple(NodeVirtualIp(name=each, active=False) for each in lacks.split())
    status = NodeStatus(
        **{"ok": True, "version": "1", "digest": "a" * 64, **changes}, virtual_ips=active + other
    )  # type: ignore[arg-type]  # what a test is about
    return NodeReport(name=name, status=status)


def test_nodes_that_are_alike_and_well():
    """Nothing is wrong, and each virtual IP is on one of them."""
    reports = (node("lb-0", holds="api", lacks="ingress"), node("lb-1", holds="ingress", lacks="api"))
    assert problems(reports) == ()
    assert [each.holds for each in reports] == [("api",), ("ingress",)]


def test_what_a_node_says_is_named_with_it():
    """So is that it says nothing, or is not well without a word."""
    reports = (
        node("lb-0", ok=False, problems=("pool masters has no server up",)),
        NodeReport(name="lb-1", trouble="no answer within 60 s"),
        node("lb-2", ok=False),
    )
    assert problems(reports) == (
        "lb-0: pool masters has no server up",
        "lb-1: no answer within 60 s",
        "lb-2: reports a problem, but no reason",
    )
    assert reports[1].holds == ()


def test_another_configuration_or_release_is_a_problem():
    """Both are named with the nodes that run them; one that does not say it is not compared."""
    reports = (
        node("lb-0"),
        node("lb-1", digest="b" * 64, version="2"),
        node("lb-2", digest=None, version=None),
    )
    assert problems(reports) == (
        "the nodes run different configurations: lb-0 aaaaaaaaaaaa, lb-1 bbbbbbbbbbbb",
        "the nodes run different releases: lb-0 1, lb-1 2",
    )


def test_a_virtual_ip_that_nobody_has():
    """It is a problem if all nodes have answered: one that has not may have it."""
    reports = (node("lb-0", lacks="api"), node("lb-1", lacks="api"))
    assert problems(reports) == ("no node has the virtual IP api",)
    silent = NodeReport(name="lb-1", trouble="down")
    assert problems((reports[0], silent)) == ("lb-1: down",)


def test_a_virtual_ip_of_which_nothing_is_known():
    """While no program `vrrp` answers, that is the problem."""
    status = NodeStatus(ok=True, virtual_ips=(NodeVirtualIp(name="api"),))
    assert problems((NodeReport(name="lb-0", status=status),)) == ()


def test_a_digest_is_short():
    """People compare twelve digits; one that is not known is a hyphen."""
    assert (shown("0123456789abcdef"), shown(None)) == ("0123456789ab", "-")
