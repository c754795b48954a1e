"""Virtual IPs that are spread over three nodes by one file; the third node runs keepalived."""

import contextlib
from collections import Counter
from collections.abc import Iterator

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_node import VrrpNode

from appliance.model.loading.loading import load
from appliance.model.snapshot.virtual_router import VirtualRouter

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "keepalived", root=True)]

_NAMES = ("lb-0", "lb-1", "lb-2")
_ADDRESSES = tuple(f"192.0.2.{each}" for each in range(101, 107))


def _file(nodes: dict[str, Node]) -> str:
    """Return the one file of all nodes: each is a unicast peer of the others."""
    named = "".join(f"  {name}: {{ address: {node.address} }}\n" for name, node in nodes.items())
    return f"nodes:\n{named}virtual_ips:\n" + "".join(
        f"  vip-{number}: {{ addresses: [{address}/24], interface: {INTERFACE}, router_id: {number},"
        " version: 3, advert: 100ms, spread: {} }\n"
        for number, address in enumerate(_ADDRESSES, start=1)
    )


def _routers(file: str, name: str) -> tuple[VirtualRouter, ...]:
    """Return what the file means at one node."""
    loaded = load(file, source="appliance.yaml", number=1, node=name)
    assert loaded.snapshot is not None, loaded.problems
    return loaded.snapshot.virtual_routers


def _instance(router: VirtualRouter) -> Instance:
    """Return what keepalived is told instead."""
    return Instance(
        name=router.name,
        router_id=router.router_id,
        priority=router.priority,
        addresses=router.addresses,
        peers=router.peers,
        source=router.source,
    )


def _wait_for_shares(nodes: dict[str, Node], shares: dict[str, int]) -> None:
    """Wait until every address is at one node, and each node has as many as it should."""

    def settled() -> bool:
        holders = [[name for name, node in nodes.items() if node.holds(each)] for each in _ADDRESSES]
        return all(len(each) == 1 for each in holders) and Counter(each[0] for each in holders) == shares

    wait_until(settled, what=f"the addresses are held so: {shares}", timeout=20.0)


@pytest.fixture
def nodes() -> Iterator[dict[str, Node]]:
    """Three nodes on a segment."""
    with Segment() as segment:
        yield {name: segment.node(name) for name in _NAMES}


@pytest.mark.promise("docs/virtual-ips.md", "the virtual IPs of a lost node go to all others")
def test_the_virtual_ips_of_a_lost_node_go_to_all_others(nodes: dict[str, Node]):
    """Each of three has two of six; without one the others have three each, and it gets its own back."""
    file = _file(nodes)
    with contextlib.ExitStack() as stack:
        for name in ("lb-0", "lb-1"):
            stack.enter_context(VrrpNode(nodes[name], *_routers(file, name)))
        stack.enter_context(Keepalived(nodes["lb-2"], *map(_instance, _routers(file, "lb-2"))))
        _wait_for_shares(nodes, dict.fromkeys(_NAMES, 2))
        for name in ("lb-0", "lb-2"):
            nodes[name].ip("link", "set", INTERFACE, "down")
            _wait_for_shares(nodes, {each: 3 for each in _NAMES if each != name})
            nodes[name].ip("link", "set", INTERFACE, "up")
            _wait_for_shares(nodes, dict.fromkeys(_NAMES, 2))
