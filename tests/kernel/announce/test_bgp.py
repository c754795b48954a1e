"""Shared addresses with real routers: announced while a node serves, drained when it does not."""

import contextlib
from collections.abc import Iterator

import pytest
from support.announce.routers import BirdRouter, FrrRouter, Router
from support.announce.shared_node import ADDRESS, ADDRESS6, NODES_ASN, SharedNode, config
from support.network.namespaces import Segment
from support.processes.waiting import wait_until

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "bird", root=True)]


@pytest.fixture(params=[BirdRouter, pytest.param(FrrRouter, marks=pytest.mark.slow("another router"))])
def site(request: pytest.FixtureRequest) -> Iterator[tuple[Router, SharedNode, SharedNode]]:
    """A router and two nodes on a segment."""
    with contextlib.ExitStack() as stack:
        segment = stack.enter_context(Segment())
        machine, *places = (segment.node(name) for name in ("router", "lb-0", "lb-1"))
        peers = [address for each in places for address in (each.address, each.address6)]
        router = stack.enter_context(request.param(machine, peers, asn=NODES_ASN))
        nodes = [
            stack.enter_context(SharedNode(each, each.name, config([machine.address, machine.address6])))
            for each in places
        ]
        yield router, *nodes


def test_both_nodes_serve_and_one_leaves(site: tuple[Router, SharedNode, SharedNode]):
    """The router has both as next hops in both families; a dead server, `leave` and a stop take one away."""
    router, one, other = site
    for address in (ADDRESS, ADDRESS6):
        router.wait_for(address, one.node, other.node)
    assert one.state() == "serving"
    one.server.kill()
    router.wait_for(ADDRESS, other.node)
    assert one.state() == "drained"
    other.appliance.command("leave")
    wait_until(lambda: other.state() == "withdrawn", what="it is withdrawn", timeout=20.0)
    # The drained node is the last resort: better than nothing.
    router.wait_for(ADDRESS, one.node)
    assert other.appliance.reload(other.appliance.config)["ok"]
    router.wait_for(ADDRESS, other.node)
