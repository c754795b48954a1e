"""Two `vrrp` in one network namespace, which happens when one is tried beside the one that serves."""

import pytest
from support.namespaces import Segment
from support.vrrp_field import VIP, AddressMonitor
from support.vrrp_node import VrrpNode, router

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]


def test_a_second_one_leaves_the_addresses_of_the_first():
    """One that starts beside a living one says whose address it found, and does not remove it."""
    with Segment() as segment:
        node = segment.node("one")
        with VrrpNode(node, router()) as first, AddressMonitor(node) as monitor:
            first.wait_for("active")
            with VrrpNode(node, router("other", addresses=("192.0.2.101/24",), router_id=43)) as second:
                second.wait_for("active", "other")
                assert "leftover-of-another" in second.log()
                assert monitor.went(VIP) == 0
            assert first.state() == "active"


def test_one_alone_removes_what_a_killed_one_left():
    """Without another one alive, an address that is configured no longer is removed too."""
    with Segment() as segment:
        node = segment.node("one")
        with VrrpNode(node, router()) as first:
            first.wait_for("active")
            first.kill()
            assert node.holds(VIP)
            with VrrpNode(node, router("other", addresses=("192.0.2.101/24",), router_id=43)) as second:
                second.wait_for("active", "other")
                assert not node.holds(VIP)
                assert "leftover-removed" in second.log()
