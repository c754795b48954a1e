"""The kernel's table of connections: what those that have ended, and those of the node itself, take of it."""

import socket
from collections.abc import Iterator

import pytest
from pyroute2.netlink.nfnetlink.nfctsocket import NFCTSocket
from support.linger.linger_field import PORT, SERVER_PORT, VIP, LingerNode, config
from support.network.namespaces import Node, Segment
from support.processes.waiting import wait_until

from appliance.net.netlink.conntrack import Conntrack, TrackedConnection

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]

_ENDED = 2
"""Seconds for which the kernel may remember a connection that has ended; its own time-out is 120."""

_VRRP = 112


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[Node, Node]]:
    """Give a node that serves the virtual IP, and a client."""
    with Segment() as segment, LingerNode(segment.node("one"), "one", config(priority=150)) as one:
        client = segment.node("client")
        wait_until(lambda: one.kept().get("active"), what="it serves", timeout=30.0)
        wait_until(lambda: _asked(client), what="it answers", timeout=30.0)
        yield one.node, client


@pytest.mark.promise("docs/virtual-ips.md", "the kernel forgets ended connections after 2 s")
def test_connections_that_have_ended_take_no_room(nodes: tuple[Node, Node]):
    """Those of clients, and those that the proxy and its checks made, are forgotten after two seconds.

    A check that began before the rules were there keeps the kernel's own time, which is over after a while.
    """
    node, client = nodes

    def forgotten_soon() -> bool:
        assert _asked(client)
        times: dict[int, int] = {}
        for each in _ended(node):
            port = each.client.destination_port
            times[port] = max(each.remaining or 0, times.get(port, 0))
        return {PORT, SERVER_PORT} <= times.keys() and max(times.values()) <= _ENDED

    wait_until(forgotten_soon, what="none of both sides has longer", timeout=30.0)


def test_advertisements_and_reports_take_no_room(nodes: tuple[Node, Node]):
    """They are sent, and no entry is made for them: a full table cannot drop them."""
    wait_until(lambda: socket.IPPROTO_TCP in _protocols(nodes[0]), what="connections are tracked")
    assert not _protocols(nodes[0]) & {_VRRP, socket.IPPROTO_UDP}


def _asked(client: Node) -> bool:
    """Return whether a server answers, over a connection that has ended then."""
    with client.inside(), socket.socket() as one:
        one.settimeout(5.0)
        try:
            one.connect((VIP, PORT))
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
