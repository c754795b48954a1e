"""Raw sockets between two nodes: who receives what, from whom, with which TTL."""

import select
import socket
from collections.abc import Iterator

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until

from appliance.net.packets.vrrp_sockets import Datagram, VrrpSocket
from appliance.wire.vrrp.advertisement import MULTICAST_4, MULTICAST_6

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

GROUPS = {4: MULTICAST_4, 6: MULTICAST_6}
ADVERT = bytes.fromhex("312a640100640000c0000264")


@pytest.fixture
def segment() -> Iterator[Segment]:
    """Two nodes."""
    with Segment() as made:
        made.node("first")
        made.node("second")
        yield made


def _source(node: Node, family: int) -> str:
    return node.address if family == 4 else node.link_local


def _open_socket(node: Node, family: int, *, group: str | None, router_id: int | None = None) -> VrrpSocket:
    with node.inside():
        return VrrpSocket(
            INTERFACE, family=family, source=_source(node, family), group=group, router_id=router_id
        )


def _next_datagram(receiver: VrrpSocket) -> Datagram:
    readable, _, _ = select.select([receiver], [], [], 10)
    assert readable, "nothing arrived"
    arrived = receiver.receive()
    assert len(arrived) == 1
    return arrived[0]


def _sent_until_it_arrives(sender: VrrpSocket, receiver: VrrpSocket) -> Datagram:
    """Send until something arrives, and return that: a bridge takes a moment to use a port that is back."""

    def arrived() -> list[Datagram]:
        sender.send(ADVERT, MULTICAST_4)
        readable, _, _ = select.select([receiver], [], [], 0.2)
        return receiver.receive() if readable else []

    return wait_until(arrived, what="an advertisement arrives")[0]


@pytest.mark.promise("kernel", "raw sockets")
@pytest.mark.parametrize("family", [4, 6])
def test_multicast(segment: Segment, family: int):
    """A member hears the group with source, TTL and payload; the sender does not hear itself."""
    first, second = segment.nodes.values()
    group = GROUPS[family]
    with (
        _open_socket(first, family, group=group) as sender,
        _open_socket(second, family, group=group) as member,
    ):
        sender.send(ADVERT, group)
        heard = _next_datagram(member)
        assert heard == Datagram(source=_source(first, family), destination=group, ttl=255, payload=ADVERT)
        member.send(ADVERT, group)
        assert _next_datagram(sender).source == _source(second, family)


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("family", [4, 6])
def test_unicast(segment: Segment, family: int):
    """Without a group a socket hears what is sent to its node, and no group."""
    first, second = segment.nodes.values()
    group, peer = GROUPS[family], _source(second, family)
    with (
        _open_socket(first, family, group=None) as sender,
        _open_socket(second, family, group=group) as member,
        _open_socket(second, family, group=None) as alone,
    ):
        sender.send(b"\x31\x01to the group", group)
        _next_datagram(member)
        sender.send(ADVERT, peer)
        heard = _next_datagram(alone)
        assert heard == Datagram(source=_source(first, family), destination=peer, ttl=255, payload=ADVERT)


@pytest.mark.promise("kernel", "socket filters (BPF)")
@pytest.mark.parametrize("family", [4, 6])
def test_router_id(segment: Segment, family: int):
    """The kernel keeps other virtual routers' advertisements away."""
    first, second = segment.nodes.values()
    group = GROUPS[family]
    with (
        _open_socket(first, family, group=group) as sender,
        _open_socket(second, family, group=group, router_id=42) as member,
    ):
        sender.send(b"\x31\x2b\x64\x01", group)
        sender.send(b"\x31\x2a\x64\x01", group)
        assert _next_datagram(member).payload == b"\x31\x2a\x64\x01"


class _Flooded(VrrpSocket):
    """A socket in a flood: something has always arrived."""

    def receive(self) -> list[Datagram]:
        return [Datagram(source="192.0.2.9", destination=MULTICAST_4, ttl=255, payload=ADVERT)]


@pytest.mark.slow("real timers of several routers")
def test_a_flood_does_not_keep_it_from_opening(segment: Segment):
    """What arrived before it was bound is thrown away, without waiting for the end of what arrives."""
    first, _ = segment.nodes.values()
    with first.inside():
        _Flooded(INTERFACE, family=4, source=first.address, group=MULTICAST_4).close()


@pytest.mark.slow("real timers of several routers")
def test_other_interface(segment: Segment):
    """What arrives on another interface of the node is not heard."""
    first, second = segment.nodes.values()
    with _open_socket(second, 4, group=MULTICAST_4) as member:
        with second.inside():
            loopback = VrrpSocket("lo", family=4, source="127.0.0.1", group=None)
        with loopback:
            loopback.send(ADVERT, "127.0.0.1")
            assert _next_datagram(loopback).destination == "127.0.0.1"
        with _open_socket(first, 4, group=None) as sender:
            sender.send(b"\x31\x01over the segment", second.address)
        assert _next_datagram(member).source == first.address


@pytest.mark.slow("real timers of several routers")
def test_priority(segment: Segment):
    """Advertisements are sent as network control, before other traffic of the host."""
    first, _ = segment.nodes.values()
    with _open_socket(first, 4, group=MULTICAST_4) as opened:
        assert opened._socket.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY) == 7
        assert opened._socket.getsockopt(socket.IPPROTO_IP, socket.IP_TOS) == 0xC0


@pytest.mark.slow("real timers of several routers")
def test_link_goes_and_comes(segment: Segment):
    """Sending with the interface down is an OSError; with the interface up again the same socket works."""
    first, second = segment.nodes.values()
    with (
        _open_socket(first, 4, group=MULTICAST_4) as sender,
        _open_socket(second, 4, group=MULTICAST_4) as member,
    ):
        first.batch(f"link set {INTERFACE} down")
        with pytest.raises(OSError, match=r"unreachable|down"):
            sender.send(ADVERT, MULTICAST_4)
        first.batch(f"link set {INTERFACE} up")
        assert _sent_until_it_arrives(sender, member).payload == ADVERT
        second.batch(f"link set {INTERFACE} down", f"link set {INTERFACE} up")
        assert _sent_until_it_arrives(sender, member).payload == ADVERT


@pytest.mark.slow("real timers of several routers")
def test_no_interface(segment: Segment):
    """An interface that does not exist is an OSError and leaks no socket."""
    first, _ = segment.nodes.values()
    with first.inside(), pytest.raises(OSError, match=r"No such device|no interface"):
        VrrpSocket("absent0", family=4, source=first.address, group=None)
