"""The virtual router's own MAC, as neighbours on the segment see it."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until

from appliance.net.netlink import virtual_mac
from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.link_messages import MacvlanFacts
from appliance.net.netlink.links import Links
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.virtual_addresses import Addresses
from appliance.net.packets.frames import ARP, FrameSocket
from appliance.net.packets.vrrp_sockets import VrrpSocket
from appliance.wire.ethernet import arp
from appliance.wire.vrrp.advertisement import MULTICAST_4, MULTICAST_6

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

VIRTUAL = "192.0.2.100"
MAC = bytes.fromhex("00005e00012a")


@pytest.fixture
def segment() -> Iterator[Segment]:
    """Two nodes."""
    with Segment() as made:
        made.node("first")
        made.node("second")
        yield made


@pytest.fixture
def requests(segment: Segment) -> Iterator[Requests]:
    """Requests of the first node."""
    with segment.nodes["first"].inside(), Requests() as opened:
        yield opened


def _parent(node: Node) -> int:
    with node.inside(), Links() as links:
        link = links.state(INTERFACE)
        assert link is not None
        return link.index


def _add(requests: Requests, segment: Segment) -> MacvlanFacts:
    return virtual_mac.add(requests, parent=_parent(segment.nodes["first"]), router_id=42, family=4)


@pytest.mark.slow("real timers of several routers")
def test_mac():
    """The MACs are those of RFC 9568 section 7.3."""
    assert virtual_mac.mac(42, family=4) == bytes.fromhex("00005e00012a")
    assert virtual_mac.mac(45, family=6) == bytes.fromhex("00005e00022d")


@pytest.mark.slow("real timers of several routers")
def test_add_and_remove(segment: Segment, requests: Requests):
    """It is made down and without addresses; making, finding and removing it can be repeated."""
    made = _add(requests, segment)
    assert _add(requests, segment) == made
    assert virtual_mac.present(requests) == (made,)
    virtual_mac.raise_up(requests, made)
    assert segment.nodes["first"].addresses(made.name) == set()
    virtual_mac.lower(requests, made)
    virtual_mac.remove(requests, made)
    virtual_mac.remove(requests, made)
    virtual_mac.lower(requests, made)
    assert virtual_mac.present(requests) == ()


@pytest.mark.slow("real timers of several routers")
def test_both_families_and_several(segment: Segment, requests: Requests):
    """Each virtual router has its own, on one interface."""
    parent = _parent(segment.nodes["first"])
    four = virtual_mac.add(requests, parent=parent, router_id=255, family=4)
    six = virtual_mac.add(requests, parent=parent, router_id=255, family=6)
    assert set(virtual_mac.present(requests)) == {four, six}


@pytest.mark.promise("kernel", "virtual MAC (macvlan)")
def test_neighbours_get_the_virtual_mac(segment: Segment, requests: Requests, tmp_path: Path):
    """A neighbour that asks for the address is told the virtual MAC and no other, and can send to it."""
    second = segment.nodes["second"]
    made = _add(requests, segment)
    virtual_mac.raise_up(requests, made)
    with Addresses(AddressRecord(tmp_path / "owned.json")) as addresses:
        addresses.take(made.index, [f"{VIRTUAL}/24"])
    with second.inside():
        prober = FrameSocket(INTERFACE, receive=ARP)
    probe = arp.probe(bytes.fromhex(second.mac.replace(":", "")), VIRTUAL)
    heard: list[bytes] = []
    with prober:
        # Another interface's answer to the first probe would have come before the one to the second.
        for count in (1, 2):
            prober.send(probe)
            wait_until(lambda: heard.extend(prober.receive()) or len(heard) >= count, what="an answer")  # noqa: B023
    assert {arp.decode(frame).sender_mac for frame in heard} == {MAC}


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("family", [4, 6])
def test_advertisements_come_from_it(segment: Segment, requests: Requests, tmp_path: Path, family: int):
    """An advertisement by its socket has the virtual MAC as its source, and the node's own address."""
    first, second = segment.nodes.values()
    made = virtual_mac.add(requests, parent=_parent(first), router_id=42, family=family)
    virtual_mac.raise_up(requests, made)
    source = first.address if family == 4 else first.link_local
    if family == 6:
        with Addresses(AddressRecord(tmp_path / "owned.json")) as addresses:
            addresses.take(made.index, [f"{source}/128"])
    group = MULTICAST_4 if family == 4 else MULTICAST_6
    with second.inside():
        witness = FrameSocket(INTERFACE, receive=0x0800 if family == 4 else 0x86DD)
    with witness, VrrpSocket(made.name, family=family, source=source, group=None) as sender:
        sender.send(b"an advertisement", group)
        adverts = wait_until(
            lambda: [frame for frame in witness.receive() if b"an advertisement" in frame], what="an advert"
        )
    assert adverts[0][6:12] == made.mac


@pytest.mark.slow("real timers of several routers")
def test_another_active_is_heard(segment: Segment):
    """With the virtual MAC up on both nodes, the interface of each still hears the other."""
    opened = []
    with contextlib.ExitStack() as stack:
        for node in segment.nodes.values():
            parent = _parent(node)
            with node.inside(), Requests() as requests:
                made = virtual_mac.add(requests, parent=parent, router_id=42, family=4)
                virtual_mac.raise_up(requests, made)
                sender = VrrpSocket(made.name, family=4, source=node.address, group=None)
                receiver = VrrpSocket(INTERFACE, family=4, source=node.address, group=MULTICAST_4)
            opened.append((stack.enter_context(sender), stack.enter_context(receiver)))
        opened[0][0].send(b"an advertisement", MULTICAST_4)
        (heard,) = wait_until(opened[1][1].receive, what="the other's advertisement")
    assert heard.source == segment.nodes["first"].address


@pytest.mark.slow("real timers of several routers")
def test_name_of_somebody_else(segment: Segment, requests: Requests):
    """An interface of the same name that is no virtual MAC is an error, and is neither used nor found."""
    first = segment.nodes["first"]
    first.batch(f"link add vrrp4.{_parent(first)}.42 type veth peer name other0")
    with pytest.raises(OSError, match="not a virtual MAC of ours"):
        _add(requests, segment)
    assert virtual_mac.present(requests) == ()


@pytest.mark.slow("real timers of several routers")
def test_no_parent(requests: Requests):
    """Without the interface there is none: an OSError."""
    with pytest.raises(OSError, match="No such device"):
        virtual_mac.add(requests, parent=12345, router_id=1, family=4)
