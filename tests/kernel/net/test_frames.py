"""Frames of one node as another one sees them."""

import select
from collections.abc import Iterator

import pytest
from support.network.namespaces import INTERFACE, Segment

from appliance.net.packets.frames import ARP, FrameSocket
from appliance.wire.ethernet import arp, neighbour_discovery

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

VIRTUAL = "192.0.2.100"


@pytest.fixture
def segment() -> Iterator[Segment]:
    """Two nodes."""
    with Segment() as made:
        made.node("first")
        made.node("second")
        yield made


def _next_frames(receiver: FrameSocket) -> list[bytes]:
    readable, _, _ = select.select([receiver], [], [], 10)
    assert readable, "nothing arrived"
    return receiver.receive()


def _mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


@pytest.mark.promise("kernel", "gratuitous ARP and unsolicited NA")
def test_gratuitous_arp_teaches_a_neighbour(segment: Segment):
    """A frame arrives as it was made, and the neighbour's table follows it."""
    first, second = segment.nodes.values()
    second.ip(
        "neighbour", "replace", VIRTUAL, "lladdr", "02:00:00:00:00:99", "dev", INTERFACE, "nud", "stale"
    )
    with second.inside():
        receiver = FrameSocket(INTERFACE, receive=ARP)
    with first.inside():
        sender = FrameSocket(INTERFACE)
    frame = arp.gratuitous(_mac(first.mac), VIRTUAL, form=arp.GratuitousForm.REQUEST)
    with sender, receiver:
        sender.send(frame)
        assert frame in _next_frames(receiver)
    assert first.mac in second.ip("neighbour", "show", VIRTUAL)


def test_answer_to_a_probe(segment: Segment):
    """A probe for an address that a node has is answered, and its sender receives the answer."""
    first, second = segment.nodes.values()
    with first.inside():
        prober = FrameSocket(INTERFACE, receive=ARP)
    with prober:
        prober.send(arp.probe(_mac(first.mac), second.address))
        answers = [arp.decode(frame) for frame in _next_frames(prober)]
    assert [(each.sender, each.sender_mac) for each in answers] == [(second.address, _mac(second.mac))]


def test_own_frames_and_others_are_not_received(segment: Segment):
    """A socket without a protocol receives nothing, one with it nothing that its own node sent."""
    first, second = segment.nodes.values()
    with first.inside():
        deaf, own = FrameSocket(INTERFACE), FrameSocket(INTERFACE, receive=ARP)
    with second.inside():
        witness = FrameSocket(INTERFACE, receive=ARP)
    with deaf, own, witness:
        deaf.send(arp.gratuitous(_mac(first.mac), VIRTUAL, form=arp.GratuitousForm.REPLY))
        assert _next_frames(witness)
        assert deaf.receive() == []
        assert own.receive() == []


@pytest.mark.promise("kernel", "gratuitous ARP and unsolicited NA")
@pytest.mark.promise("kernel", "packet sockets")
def test_claims_of_others(segment: Segment):
    """Only frames in which another node claims one of the addresses are received, in both families."""
    first, second = segment.nodes.values()
    cases = [
        (arp.gratuitous, {"form": arp.GratuitousForm.REPLY}, "192.0.2.77", [VIRTUAL, "192.0.2.101"]),
        (neighbour_discovery.unsolicited, {}, "fd00::77", ["fd00::100", "fd00::101"]),
    ]
    for make, arguments, other, watched in cases:
        with first.inside():
            watch = FrameSocket.claims(INTERFACE, watched)
        with second.inside():
            sender = FrameSocket(INTERFACE)
        frames = [make(_mac(second.mac), address, **arguments) for address in (other, *watched)]
        with watch, sender:
            sender.send(b"\xff" * 60)
            for frame in frames:
                sender.send(frame)
            heard: list[bytes] = []
            while len(heard) < 2:
                heard += _next_frames(watch)
        assert heard == frames[1:]


def test_interface_down(segment: Segment):
    """With the interface down nothing is received and sending is an OSError; both work again after it."""
    first, _ = segment.nodes.values()
    with first.inside():
        opened = FrameSocket(INTERFACE, receive=ARP)
    frame = arp.gratuitous(_mac(first.mac), VIRTUAL, form=arp.GratuitousForm.REQUEST)
    with opened:
        first.batch(f"link set {INTERFACE} down")
        assert opened.receive() == []
        with pytest.raises(OSError, match="down"):
            opened.send(frame)
        first.batch(f"link set {INTERFACE} up")
        opened.send(frame)


def test_no_interface(segment: Segment):
    """An interface that does not exist is an OSError."""
    first, _ = segment.nodes.values()
    with first.inside(), pytest.raises(OSError, match="No such device"):
        FrameSocket("absent0")
