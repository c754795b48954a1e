"""Which peers are not on the segment of a virtual IP."""

import pytest
from support.values.snapshots import virtual_router

from appliance.core.linger.segment import objection, off_segment, unreachable

pytestmark = pytest.mark.pure

HERE = ("192.0.2.1/24", "198.51.100.1/25", "fe80::1/64", "fd00::1/64")


@pytest.mark.parametrize(
    ("peers", "beyond"),
    [
        (("192.0.2.2", "198.51.100.126"), []),
        (("192.0.2.2", "198.51.100.130", "10.0.0.1"), ["198.51.100.130", "10.0.0.1"]),
        (("fe80::2", "fd00::2"), []),
        (("fd00:0:0:1::2",), ["fd00:0:0:1::2"]),
        ((), []),
    ],
)
def test_peers_behind_a_router(peers: tuple[str, ...], beyond: list[str]):
    """They are in none of the interface's networks."""
    router = virtual_router("api", interface="eth0", peers=peers)
    found = off_segment([router], {"eth0": HERE}.__getitem__)
    assert [(name.name, peer) for name, peer in found] == [("api", each) for each in beyond]


@pytest.mark.parametrize("here", [(), ("fe80::1/64",), ("fd00::1/64",)])
def test_an_interface_without_such_an_address(here: tuple[str, ...]):
    """Nothing is said of a version of IP, or of IPv6 beyond the link, that it does not have yet."""
    peer = "192.0.2.2" if "fd00::1/64" in here else "fd00::2"
    router = virtual_router("api", interface="eth0", peers=(peer,))
    assert list(off_segment([router], lambda _: here)) == []


def test_the_sentence():
    """It names the peer, the interface, the virtual IP and the reason."""
    assert objection(virtual_router("api", interface="eth0"), "10.0.0.1") == (
        "10.0.0.1 is not on the segment of eth0: connections end when api moves between here and there, as "
        "packets cannot be forwarded through a router"
    )


def test_a_peer_that_gets_no_packets():
    """What is missing is told, and what it means."""
    told = unreachable("192.0.2.2", routed=True)
    assert told.startswith("192.0.2.2 is behind a router, and there is no `linger.vxlan`: connections")
    assert unreachable("192.0.2.2", routed=False).startswith("192.0.2.2 has no route to it: connections")
