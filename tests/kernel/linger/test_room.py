"""The kernel's table of connections: what those that have ended, and those of the node itself, take of it."""

import socket
from collections.abc import Iterator

import pytest
from pyroute2.netlink.nfnetlink.nfctsocket import NFCTSocket
from support.linger.linger_field import PORT, SERVER_PORT, VIP, VIP6, LingerNode, config
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until

from appliance.net.netlink.conntrack import Conntrack, TrackedConnection

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_ENDED = 2
"""Seconds for which the kernel may remember a connection that has ended; its own time-out is 120."""

_VRRP = 112


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    """Give a node that serves virtual IPs of both versions of IP, and a client."""
    four, six = (config(priority=150, vip=each)["virtual_ips"] for each in (VIP, VIP6))
    settings = config(priority=150, virtual_ips={"api": four["api"], "api6": six["api"]})  # type: ignore[index]  # JSON
    with Segment() as segment, LingerNode(segment.node("one"), "one", settings) as one:
        client = segment.node("client")
        for vip in (VIP, VIP6):
            wait_until(lambda vip=vip: one.kept(vip).get("active"), what=f"it serves {vip}", timeout=30.0)
        wait_until(lambda: _asked(client), what="it answers", timeout=30.0)
        yield one.node, client


@pytest.mark.promise("docs/virtual-ips.md", "the kernel forgets ended connections after 2 s")
def test_connections_that_have_ended_take_no_room(nodes: tuple[Node, Node]):
    """Those of clients, and those that the proxy and its checks made, are forgotten after two seconds.

    It is the same for clients of the node's own addresses, which `linger` does not lead. A check that began
    before the rules were there keeps the kernel's own time, which is over after a while.
    """
    node, client = nodes
    asked = {(each, PORT) for each in (VIP, VIP6, node.address, node.address6)}

    def forgotten_soon() -> bool:
        assert all(_asked(client, address) for address, _ in asked)
        times: dict[tuple[str, int], int] = {}
        for each in _ended(node):
            to = each.client.destination, each.client.destination_port
            times[to] = max(each.remaining or 0, times.get(to, 0))
        return {*asked, ("127.0.0.1", SERVER_PORT)} <= times.keys() and max(times.values()) <= _ENDED

    wait_until(forgotten_soon, what="none of both sides has longer", timeout=30.0)


def test_advertisements_and_reports_take_no_room(nodes: tuple[Node, Node]):
    """They are sent, and no entry is made for them: a full table cannot drop them."""
    wait_until(lambda: socket.IPPROTO_TCP in _protocols(nodes[0]), what="connections are tracked")
    assert not _protocols(nodes[0]) & {_VRRP, socket.IPPROTO_UDP}


def _asked(client: Node, address: str = VIP) -> bool:
    """Return whether a server answers, over a connection that has ended then."""
    with client.inside():
        try:
            with socket.create_connection((address, PORT), timeout=5.0) as one:
                return bool(one.recv(100))
        except OSError:
            return False


def _protocols(node: Node) -> set[int]:
    """Return the protocols of all that the node's kernel tracks."""
    with node.inside(), NFCTSocket() as table:
        originals = [each.get_attr("CTA_TUPLE_ORIG") for each in table.dump()]
    return {each.get_attr("CTA_TUPLE_PROTO").get_attr("CTA_PROTO_NUM") for each in originals}


def _ended(node: Node) -> tuple[TrackedConnection, ...]:
    with node.inside():
        table = Conntrack()
    try:
        return tuple(each for each in table.each(0, 0) if not (each.open or each.connecting))
    finally:
        table.close()
