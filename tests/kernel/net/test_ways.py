"""Where the kernel sends packets, whether a neighbour's kernel still answers, and what its sets have."""

import contextlib
import socket
from collections.abc import Iterator
from dataclasses import replace

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until

from appliance.net.netlink import neighbours
from appliance.net.netlink.conntrack import Conntrack, Flow
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.route_lookup import Way, way
from appliance.net.netlink.table_contents import TableContents
from appliance.wire.nftables.nftables_commands import Family

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nft", root=True)]


@pytest.fixture
def pair() -> Iterator[tuple[Node, Node]]:
    """Give two nodes, of which the first has sent a packet to the other."""
    with Segment() as segment:
        yield segment.node("one"), segment.node("two")


def test_the_way_to_an_address(pair: tuple[Node, Node]):
    """By an interface, directly or through a router, of both families; None where there is none."""
    one, two = pair
    one.batch(f"route add 198.51.100.0/24 via {two.address}")
    with one.inside(), Requests() as requests:
        index = socket.if_nametoindex(INTERFACE)
        for address in (two.address, two.address6):
            assert way(requests, address) == Way(interface=index, routed=False)
        assert way(requests, "198.51.100.7") == Way(interface=index, routed=True)
        assert way(requests, one.address) == Way(interface=socket.if_nametoindex("lo"), routed=False)
        assert way(requests, "203.0.113.1") is None
        assert way(requests, "2001:db8::1") is None


@pytest.mark.parametrize("family", [4, 6])
def test_signs_of_life(pair: tuple[Node, Node], family: int):
    """A neighbour that lives has answered since it was last asked; one that is cut off grows silent."""
    one, two = pair
    address, kind = (two.address, socket.AF_INET) if family == 4 else (two.address6, socket.AF_INET6)
    with one.inside(), Requests() as requests:
        index = socket.if_nametoindex(INTERFACE)

        def age() -> float | None:
            return neighbours.age(requests, address, interface=index)

        assert age() is None  # no neighbour yet
        with socket.socket(kind, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", (address, 9))
        wait_until(lambda: age() is not None, what="it is a neighbour")
        ages = [wait_until(age, what="a first age", pause=0.05) or 0.0]
        wait_until(
            lambda: ages.append(age() or 0.0) or ages[-1] < ages[-2], what="it answers again", pause=0.05
        )
        two.isolate()
        wait_until(lambda: (age() or 0.0) > 1.5, what="it is silent", pause=0.05)
        one.ip("neighbour", "replace", address, "lladdr", two.mac, "dev", INTERFACE, "nud", "permanent")
        assert age() is None
        assert "PERMANENT" in one.ip("neighbour", "show", address)


def test_elements_of_a_set(pair: tuple[Node, Node]):
    """They are the bytes of their keys; a set that does not exist has none."""
    one, _ = pair
    one.run(["nft", "add table ip t { set s { type ipv4_addr . inet_service; }; }"])
    numbers = range(1000)
    listed = ", ".join(f"192.0.2.1 . {each}" for each in numbers)
    one.run(["nft", f"add element ip t s {{ {listed} }}"])
    with one.inside():
        elements = TableContents()
        found = list(elements.elements(Family.IPV4, "t", "s"))
        assert sorted(found) == [bytes((192, 0, 2, 1)) + each.to_bytes(2) + bytes(2) for each in numbers]
        assert list(elements.elements(Family.IPV4, "t", "none")) == []
        assert list(elements.elements(Family.IPV6, "t", "s")) == []
        elements.close()


@pytest.mark.parametrize("family", [4, 6])
def test_connections_that_the_kernel_does_not_have(pair: tuple[Node, Node], family: int):
    """They are told from one that it has, by the client's direction."""
    one, two = pair
    one.run(
        ["nft", "add table inet t { chain c { type filter hook prerouting priority 0; ct state new; }; }"]
    )
    host, theirs = (one.address, two.address) if family == 4 else (one.address6, two.address6)
    with one.inside():
        listener = socket.create_server(
            (host, 7001), family=socket.AF_INET6 if family == 6 else socket.AF_INET
        )
        conntrack = Conntrack()
    with two.inside(), contextlib.closing(socket.create_connection((host, 7001), timeout=10)) as client:
        known = Flow(
            source=theirs, source_port=client.getsockname()[1], destination=host, destination_port=7001
        )
        unknown = [replace(known, source_port=each) for each in range(1, 200)]
        assert conntrack.unknown([*unknown[:100], known, *unknown[100:]]) == unknown
        assert conntrack.unknown([]) == []
    conntrack.close()
    listener.close()
