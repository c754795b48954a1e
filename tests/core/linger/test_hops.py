"""Where packets of other nodes' connections go, by what the nodes report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from appliance.core.linger.hops import hops
from appliance.core.linger.nodes import Keeper
from appliance.core.linger.served_addresses import ServedAddress

pytestmark = pytest.mark.pure

VIP = "192.0.2.100"
A, B, C = "192.0.2.1", "192.0.2.2", "192.0.2.3"


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
