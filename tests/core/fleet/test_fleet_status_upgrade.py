"""The order of an upgrade, what keeps it from beginning, and what stops it."""

import pytest

from appliance.core.fleet.fleet_status import NodeReport, new_problems, objection, turns
from appliance.wire.lines.node_answers import NodeStatus, NodeVirtualIp

pytestmark = pytest.mark.pure

SILENT = NodeReport(name="lb-2", trouble="no answer within 60 s")


def node(name: str, *problems: str, version: str = "1", holds: bool = False) -> NodeReport:
    """Return what a node says."""
    addresses = (NodeVirtualIp(name="api", active=holds),)
    status = NodeStatus(ok=not problems, problems=problems, version=version, virtual_ips=addresses)
    return NodeReport(name=name, status=status)


def test_backups_come_first():
    """Otherwise the order is that of the file."""
    reports = (node("lb-0", holds=True), node("lb-1"), node("lb-2"))
    assert turns(reports, "2") == ("lb-1", "lb-2", "lb-0")


def test_who_has_the_release_is_left_out():
    """A release that is not known is had by nobody; a node that is silent has no turn."""
    reports = (node("lb-0"), node("lb-1", version="2"), SILENT)
    assert turns(reports, "2") == ("lb-0",)
    assert turns(reports, None) == ("lb-0", "lb-1")


def test_a_silent_node_is_an_objection():
    """With its reason."""
    assert objection((node("lb-0"), SILENT), back=False) == "lb-2: no answer within 60 s"
    assert objection((node("lb-0"), node("lb-1")), back=True) is None


def test_different_releases_do_not_go_back_together():
    """Forward they may: that is how an upgrade goes on that has stopped."""
    reports = (node("lb-0"), node("lb-1", version="2"))
    assert objection(reports, back=True) == "the nodes run different releases: lb-0 1, lb-1 2"
    assert objection(reports, back=False) is None


def test_only_what_is_new_stops_it():
    """What was wrong before is not, with whatever number it says; nor is the other release of a node."""
    before = (node("lb-0", "pool a has had no server up for 3 s", holds=True), node("lb-1"))
    later = (node("lb-0", "pool a has had no server up for 14 s", holds=True), node("lb-1", version="2"))
    assert new_problems(before, later) == ()
    worse = (*later[:1], node("lb-1", "proxy-api is fatal"))
    assert new_problems(before, worse) == ("lb-1: proxy-api is fatal",)
    assert new_problems(before, (node("lb-0"), node("lb-1"))) == ("no node has the virtual IP api",)
