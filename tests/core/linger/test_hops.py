"""Where packets of other nodes' connections go, by what the nodes report."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.linger.hops import DOUBTED, MOST_NODES, REMEMBERED, SILENT, Keeper, Nodes, hops
from appliance.core.linger.served_addresses import ServedAddress
from appliance.wire.linger_report import LingerReport, ReportedAddress

pytestmark = pytest.mark.pure

VIP = "192.0.2.100"
A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"
ETH = 2


def mac(node: str) -> bytes:
    """Return the MAC of a node."""
    return b"\2\0" + bytes(map(int, node.split(".")))


def keeper(node: str, *, active: bool = False, left_at: float = 0.0) -> Keeper:
    """Return what a node said of VIP."""
    return Keeper(node=node, mac=mac(node), address=VIP, active=active, left_at=left_at, connections=1)


MACS = tuple(map(mac, (A, B, C)))


def ours(left_at: float | None) -> dict[str, ServedAddress]:
    """Return what we have of VIP."""
    return {VIP: ServedAddress(address=VIP, left_at=left_at)}


def report(sequence: int, *, mac: int = 1, left: float = 0.0, active: bool = True) -> LingerReport:
    """Return a report of VIP."""
    said = ReportedAddress(address=VIP, active=active, left=left, connections=5)
    return LingerReport(mac=bytes(5) + bytes([mac]), sequence=sequence, addresses=(said,))


def test_to_the_one_that_serves():
    """A backup is ready to lead to the active node before it takes its place."""
    found = hops([keeper(A, active=True)], {}, nodes=MACS)
    assert (found.direct, found.led) == ({VIP: A}, {})


def test_to_the_one_that_left_last():
    """The active node leads to the latest of those before, who leads to the one before that."""
    found = hops([keeper(A, left_at=1.0), keeper(B, left_at=2.0)], ours(None), nodes=[mac(C)])
    assert (found.direct, found.led) == ({VIP: B}, {(mac(C), VIP): B})
    found = hops([keeper(A, left_at=1.0), keeper(C, active=True)], ours(2.0), nodes=[mac(C)])
    assert (found.direct, found.led) == ({VIP: C}, {(mac(C), VIP): A})


def test_never_back():
    """The first of those that left leads nothing further that another node has led to it."""
    found = hops([keeper(B, left_at=2.0), keeper(C, active=True)], ours(1.0), nodes=MACS)
    assert (found.direct, found.led) == ({VIP: C}, {})


def test_never_back_to_the_one_that_led_it():
    """Who leads a packet here has it not, though we have not heard yet that it serves the address now."""
    found = hops([keeper(A, left_at=1.0), keeper(B, left_at=2.0)], ours(None), nodes=[mac(B), mac(C)])
    assert found.led == {(mac(B), VIP): A, (mac(C), VIP): B}
    assert hops([keeper(B, left_at=2.0)], ours(None), nodes=[mac(B)]).led == {}


def test_nobody():
    """Where nobody else has anything the kernel answers as ever."""
    found = hops([], ours(None), nodes=MACS)
    assert (found.direct, found.led) == ({}, {})


@given(st.lists(st.one_of(st.none(), st.floats(0, 1e6)), min_size=1, max_size=8), st.data())
def test_no_circle(left: list[float | None], data: st.DataObject):
    """Whoever left when, and whoever gets the packet first, nodes lead it on at most once each."""
    nodes = [f"192.0.2.{number}" for number in range(len(left))]
    said = [
        keeper(node, active=at is None, left_at=0.0 if at is None else at)
        for node, at in zip(nodes, left, strict=True)
    ]
    place, sender, led = data.draw(st.sampled_from(nodes)), "", 0
    while True:
        at = left[nodes.index(place)]
        found = hops([each for each in said if each.node != place], ours(at), nodes=map(mac, nodes))
        target = found.led.get((mac(sender), VIP)) if sender else found.direct.get(VIP)
        if target is None:
            return
        assert target != sender
        place, sender, led = target, place, led + 1
        assert led <= len(nodes)


def test_a_report_is_believed_once():
    """A report that is not newer than the last one of the node is a replay, until that is forgotten."""
    nodes = Nodes()
    assert nodes.hear(A, report(5), interface=ETH, now=0.0)
    assert not nodes.hear(A, report(5), interface=ETH, now=1.0)
    assert not nodes.hear(A, report(4), interface=ETH, now=REMEMBERED - 1)
    assert nodes.hear(A, report(4), interface=ETH + 1, now=1.0)
    assert nodes.hear(A, report(4), interface=ETH, now=REMEMBERED)


def test_keepers_of_our_addresses():
    """Only addresses of ours, on their own interface, of nodes that speak."""
    nodes = Nodes()
    nodes.hear(A, report(1, left=3.0, active=False), interface=ETH, now=10.0)
    nodes.hear(B, report(1, mac=2), interface=ETH + 1, now=10.0)
    (found,) = nodes.keepers({VIP: ETH}, 11.0)
    assert found == Keeper(
        node=A, mac=bytes(5) + b"\1", address=VIP, active=False, left_at=7.0, connections=5
    )
    assert nodes.keepers({}, 11.0) == ()
    assert nodes.macs(11.0) == {bytes(5) + b"\1", bytes(5) + b"\2"}
    assert nodes.keepers({VIP: ETH}, 10.0 + SILENT) == ()
    assert nodes.macs(10.0 + SILENT) == frozenset()


def test_who_was_heard():
    """By version of IP and interface, as long as they speak; and what they have heard themselves is known."""
    nodes = Nodes()
    nodes.hear(A, replace(report(1), heard=(bytes(5) + b"\7",)), interface=ETH, now=10.0)
    nodes.hear("fe80::2", report(1, mac=2), interface=ETH, now=10.0)
    nodes.hear(B, report(1, mac=3), interface=ETH + 1, now=10.0)
    assert nodes.heard(ETH, family=4, now=11.0) == (bytes(5) + b"\1",)
    assert nodes.heard(ETH, family=6, now=11.0) == (bytes(5) + b"\2",)
    assert nodes.heard(ETH, family=4, now=10.0 + SILENT) == ()
    (found, _) = nodes.keepers({VIP: ETH}, 11.0)
    assert found.heard == {bytes(5) + b"\7"}


def test_a_node_that_is_probably_dead():
    """With its advertisements gone a node is waited for no longer, unless it reports again."""
    nodes = Nodes()
    nodes.hear(A, report(1), interface=ETH, now=0.0)
    nodes.doubt(["192.0.2.101"])
    assert nodes.keepers({VIP: ETH}, DOUBTED)
    nodes.doubt([VIP])
    assert nodes.keepers({VIP: ETH}, DOUBTED - 0.1)
    assert not nodes.keepers({VIP: ETH}, DOUBTED)
    nodes.hear(A, report(2), interface=ETH, now=2.0)
    assert nodes.keepers({VIP: ETH}, 2.0 + DOUBTED)


def test_nodes_are_bounded():
    """Of more nodes than there can be the one is forgotten that was heard longest ago."""
    nodes = Nodes()
    for number in range(MOST_NODES + 1):
        nodes.hear(f"10.0.0.{number}", report(1, mac=number), interface=ETH, now=0.0)
    assert len(nodes.macs(0.0)) == MOST_NODES
    assert nodes.hear("10.0.0.0", report(1), interface=ETH, now=0.0)
