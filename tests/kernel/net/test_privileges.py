"""What works with which capabilities, in processes that have no others."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.namespaces import INTERFACE, Node, Segment

from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.links import Links
from appliance.net.netlink.virtual_addresses import Addresses, kernel_marks
from appliance.net.privileges import process_capabilities

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "setpriv", root=True)]

_NOBODY = "65534"
_MISSING = "from appliance.net.privileges import process_capabilities; print(*process_capabilities.missing())"
_EVERYTHING = f"""
import pathlib, sys
from appliance.net.privileges import process_capabilities
from appliance.net.netlink import virtual_mac
from appliance.net.netlink.virtual_addresses import Addresses
from appliance.net.packets.frames import ARP, FrameSocket
from appliance.net.netlink.links import Links
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.address_record import AddressRecord
from appliance.net.packets.vrrp_sockets import VrrpSocket
from appliance.wire.vrrp.advertisement import MULTICAST_4, MULTICAST_6

assert process_capabilities.missing() == ()
with Links() as links, Addresses(AddressRecord(pathlib.Path(sys.argv[1]))) as addresses:
    link = links.state("{INTERFACE}")
    taken = addresses.take(link.index, ["192.0.2.100/24", "fd00::100/64"])
    assert len(taken.added) == 2, taken
    for family, group in ((4, MULTICAST_4), (6, MULTICAST_6)):
        with VrrpSocket(link.name, family=family, source=link.primary(family), group=group) as opened:
            opened.send(b"1234", group)
    with FrameSocket(link.name, receive=ARP) as frames:
        frames.send(bytes(60))
    addresses.release(link.index, ["192.0.2.100/24"])
with Requests() as requests:
    virtual_mac.add(requests, parent=link.index, router_id=7, family=4)
print("done")
"""


_CHANGES = f"""
import pathlib, socket, sys
from appliance.net.netlink.virtual_addresses import Addresses
from appliance.net.netlink.address_record import AddressRecord

index = socket.if_nametoindex("{INTERFACE}")
with Addresses(AddressRecord(pathlib.Path(sys.argv[1])), marks=True) as addresses:
    print(addresses.take(index, ["192.0.2.101/24"]).failed)
    try:
        addresses.release(index, ["192.0.2.100/24"])
    except PermissionError as error:
        print(error)
"""


@pytest.fixture
def node() -> Iterator[Node]:
    """A node of its own."""
    with Segment() as segment:
        yield segment.node("only")


def _run(node: Node, capabilities: str, program: str, *arguments: str) -> str:
    """Run a program as nobody, with these capabilities of root's and no others."""
    return node.run(
        [
            *("setpriv", f"--reuid={_NOBODY}", f"--regid={_NOBODY}", "--clear-groups"),
            *(f"--inh-caps={capabilities}", f"--ambient-caps={capabilities}"),
            *(f"--bounding-set={capabilities}", "--no-new-privs"),
            *(sys.executable, "-c", program, *arguments),
        ]
    )


@pytest.mark.parametrize(
    ("capabilities", "missing"),
    [
        ("-all", "CAP_NET_ADMIN CAP_NET_RAW"),
        ("-all,+net_raw", "CAP_NET_ADMIN"),
        ("-all,+net_admin", "CAP_NET_RAW"),
        ("-all,+net_admin,+net_raw", ""),
    ],
)
def test_missing(node: Node, capabilities: str, missing: str):
    """Exactly the needed capabilities that are not there are named."""
    assert _run(node, capabilities, _MISSING).strip() == missing


def test_two_capabilities_are_enough(node: Node, tmp_path: Path):
    """As an ordinary user with CAP_NET_ADMIN and CAP_NET_RAW everything about virtual addresses works."""
    tmp_path.chmod(0o777)
    ran = _run(node, "-all,+net_admin,+net_raw", _EVERYTHING, str(tmp_path / "owned.json"))
    assert ran.strip() == "done"
    assert node.holds("fd00::100/64")
    assert not node.holds("192.0.2.100/24")


@pytest.mark.skipif(not kernel_marks(), reason="needs Linux 5.18")
def test_refused_by_the_kernel(node: Node, tmp_path: Path):
    """Without CAP_NET_ADMIN addresses are neither taken nor released, and the kernel's reason is told."""
    with node.inside(), Links() as links, Addresses(AddressRecord(tmp_path / "owned.json")) as addresses:
        addresses.take(links.state(INTERFACE).index, ["192.0.2.100/24"])
    refused = _run(node, "-all,+net_raw", _CHANGES, str(tmp_path / "other.json")).splitlines()
    assert refused == [
        "{'192.0.2.101/24': 'Operation not permitted'}",
        "[Errno 1] 192.0.2.100/24: Operation not permitted",
    ]
    assert node.holds("192.0.2.100/24")


def test_root_has_all():
    """A process of root's misses nothing."""
    assert process_capabilities.missing() == ()
