"""Two clusters on one segment, whose nodes have the same key, port and group for their reports."""

from contextlib import ExitStack

import pytest
from support.linger.linger_field import (
    COUNT,
    PERIOD,
    VIP,
    LingerNode,
    SteadyClients,
    config,
    moved,
    wait_until_ready,
)
from support.network.namespaces import Segment

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "nft", "ss", root=True),
    pytest.mark.slow("two pairs of appliances on a segment of their own"),
]

_VIPS = (VIP, "192.0.2.150")


@pytest.mark.promise("docs/virtual-ips.md", "clusters of one segment may have the same key for `linger`")
@pytest.mark.parametrize(
    "router_ids",
    [pytest.param((42, 43), marks=pytest.mark.full("the easier case")), (42, 42)],
    ids=["own-ids", "same-id"],
)
def test_each_cluster_moves_its_own_address(router_ids: tuple[int, int]):
    """No connection ends, and no node takes the other cluster's; the router id that both have is named."""
    with Segment() as segment, ExitStack() as stack:
        client = segment.node("client")
        clusters = [
            [
                stack.enter_context(
                    LingerNode(
                        segment.node(f"{vip}-{priority}"),
                        f"{vip}-{priority}",
                        config(priority=priority, vip=vip, router={"router_id": router_id}),
                    )
                )
                for priority in (150, 100)
            ]
            for vip, router_id in zip(_VIPS, router_ids, strict=True)
        ]
        for nodes, vip in zip(clusters, _VIPS, strict=True):
            wait_until_ready(nodes, vip)
        streams = [
            stack.enter_context(SteadyClients(client, count=COUNT, period=PERIOD, vip=vip)) for vip in _VIPS
        ]
        for (one, two), vip in zip(clusters, _VIPS, strict=True):
            moved(one, two, vip)
        for each in streams:
            each.ask()
        assert [each.end()["ended"] for each in streams] == [0, 0]
        assert [[each.state() for each in nodes] for nodes in clusters] == [["backup", "active"]] * 2
        problems = [str(each.appliance.status()["problems"]) for nodes in clusters for each in nodes]
        assert ["address-list" in each for each in problems] == [router_ids[0] == router_ids[1]] * 4
