"""What is told about a node's interfaces while they change."""

import errno
import select
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.namespaces import INTERFACE, Node, Segment
from support.processes.waiting import wait_until

from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.links import LinkChange, LinkEvent, Links
from appliance.net.netlink.netlink import Message, Requests
from appliance.net.netlink.virtual_addresses import Addresses

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

FOUR = "192.0.2.100/24"
SIX = "fd00::100/64"


@pytest.fixture
def node() -> Iterator[Node]:
    """A node of its own."""
    with Segment() as segment:
        yield segment.node("only")


@pytest.fixture
def links(node: Node) -> Iterator[Links]:
    """What is tested, in the node."""
    with node.inside(), Links() as opened:
        yield opened


def _event(change: LinkChange, address: str = "", name: str = INTERFACE) -> LinkEvent:
    return LinkEvent(change=change, name=name, address=address)


def _until(links: Links, wanted: LinkEvent) -> list[LinkEvent]:
    """Return what was told until the wanted event, which was among it."""
    told: list[LinkEvent] = []

    def seen() -> bool:
        if select.select([links], [], [], 1)[0]:
            told.extend(links.read())
        return wanted in told

    wait_until(seen, what=f"{wanted} in {told}")
    return told


def test_state(links: Links, node: Node):
    """The state is whole at once; what does not exist is None."""
    link = links.state(INTERFACE)
    assert link is not None
    assert link.up
    assert link.mac.hex(":") == node.mac
    assert set(link.addresses) == set(link.own) == node.addresses()
    assert link.primary(4) == node.address
    assert link.primary(6) == node.link_local
    assert link.primary(4, excluding=[f"{node.address}/24"]) is None
    assert links.state("absent0") is None
    assert links.read() == []


@pytest.mark.promise("kernel", "interfaces (netlink)")
def test_carrier(links: Links, node: Node):
    """Pulling and putting back the cable is told as down and up, with the addresses left in peace."""
    node.unplug()
    assert _until(links, _event(LinkChange.DOWN)) == [_event(LinkChange.DOWN)]
    assert not links.state(INTERFACE).up
    node.plug()
    assert _event(LinkChange.UP) in _until(links, _event(LinkChange.UP))
    assert links.state(INTERFACE).up
    assert links.state(INTERFACE).primary(4) == node.address


def test_set_down_by_the_operator(links: Links, node: Node):
    """Set down by an operator it loses its IPv6 addresses; set up, it has the link-local one again."""
    node.batch(f"link set {INTERFACE} down")
    told = _until(links, _event(LinkChange.DOWN))
    assert _event(LinkChange.ADDRESS_REMOVED, f"{node.address6}/64") in told
    node.batch(f"link set {INTERFACE} up")
    link_local = wait_until(
        lambda: [each for each in node.addresses() if each.startswith("fe80")], what="fe80"
    )
    _until(links, _event(LinkChange.ADDRESS_ADDED, link_local[0]))
    assert links.state(INTERFACE).up


def test_deleted_and_made_again(links: Links, node: Node):
    """An interface of the same name is another one, even when both happened since the last look."""
    old = links.state(INTERFACE)
    node.batch(f"link delete {INTERFACE}")
    assert _until(links, _event(LinkChange.DISAPPEARED)) == [_event(LinkChange.DISAPPEARED)]
    assert links.state(INTERFACE) is None
    node.batch(f"link add {INTERFACE} type veth peer name other0")
    _until(links, _event(LinkChange.APPEARED))
    assert links.state(INTERFACE).index != old.index
    node.batch(f"link delete {INTERFACE}", f"link add {INTERFACE} type veth peer name other0")
    told = [event for event in _until(links, _event(LinkChange.APPEARED)) if event.name == INTERFACE]
    assert told == [_event(LinkChange.DISAPPEARED), _event(LinkChange.APPEARED)]


def test_renamed(links: Links, node: Node):
    """A renamed interface disappears under the one name and appears under the other."""
    node.batch(f"link set {INTERFACE} down", f"link set {INTERFACE} name lan0", "link set lan0 up")
    told = _until(links, _event(LinkChange.APPEARED, name="lan0"))
    assert _event(LinkChange.DISAPPEARED) in told
    assert links.state(INTERFACE) is None


def test_leaving_a_bridge_is_not_disappearing(links: Links, node: Node):
    """What is told about a bridge's port is not told about its interface."""
    node.batch("link add bridge0 type bridge", f"link set {INTERFACE} master bridge0")
    node.batch(f"link set {INTERFACE} nomaster", "link set bridge0 up", "link delete bridge0")
    node.batch(f"address add {FOUR} dev {INTERFACE}")
    told = _until(links, _event(LinkChange.ADDRESS_ADDED, FOUR))
    assert _event(LinkChange.DISAPPEARED) not in told
    assert links.state(INTERFACE).up


def test_another_mac(links: Links, node: Node):
    """A changed MAC is told, and the state has it."""
    node.batch(f"link set {INTERFACE} address 02:00:00:00:00:77")
    _until(links, _event(LinkChange.MAC))
    assert links.state(INTERFACE).mac.hex(":") == "02:00:00:00:00:77"


def test_virtual_address_removed_by_somebody_else(links: Links, node: Node, tmp_path: Path):
    """Our addresses are told as they come and go, and are not the interface's own."""
    own = links.state(INTERFACE).own
    with Addresses(AddressRecord(tmp_path / "owned.json"), marks=True) as addresses:
        addresses.take(links.state(INTERFACE).index, [FOUR, SIX])
    _until(links, _event(LinkChange.ADDRESS_ADDED, SIX))
    assert {FOUR, SIX} <= set(links.state(INTERFACE).addresses)
    assert links.state(INTERFACE).own == own
    node.batch(f"address delete {FOUR} dev {INTERFACE}")
    assert _until(links, _event(LinkChange.ADDRESS_REMOVED, FOUR)) == [
        _event(LinkChange.ADDRESS_REMOVED, FOUR)
    ]


def test_duplicate_address_is_not_usable(links: Links, node: Node):
    """An IPv6 address counts from the end of its duplicate address detection: here it is another node's."""
    other = node.segment.node("other")
    for place in ("all", INTERFACE):
        node.run(["sh", "-c", f"echo 1 >/proc/sys/net/ipv6/conf/{place}/accept_dad"])
    duplicate = f"{other.address6}/64"
    node.batch(f"address add {duplicate} dev {INTERFACE}")
    wait_until(lambda: "dadfailed" in node.ip("address", "show", "dev", INTERFACE), what="a duplicate")
    node.batch(f"address add {FOUR} dev {INTERFACE}")
    _until(links, _event(LinkChange.ADDRESS_ADDED, FOUR))
    assert duplicate in node.addresses()
    assert duplicate not in links.state(INTERFACE).addresses


class _Unanswered(Requests):
    """Requests that the kernel has no memory for, once."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = False

    def dump(self, request: bytes) -> list[Message]:
        if not self.refused:
            self.refused = True
            raise OSError(errno.ENOBUFS, "no memory")
        return super().dump(request)


def test_overrun_while_the_kernel_does_not_answer(node: Node):
    """After an overrun whose dump fails the next look has all the differences."""
    with node.inside(), Links(buffer=4096) as links:
        links._requests.close()
        links._requests = _Unanswered()
        node.batch(*(f"address add 10.9.0.{number}/32 dev {INTERFACE}" for number in range(1, 200)))
        with pytest.raises(OSError, match="no memory"):
            links.read()
        told = links.read()
        assert _event(LinkChange.ADDRESS_ADDED, "10.9.0.1/32") in told
        assert _event(LinkChange.ADDRESS_ADDED, "10.9.0.199/32") in told
        assert set(links.state(INTERFACE).addresses) == node.addresses()


def test_overrun(node: Node):
    """When the kernel had to throw notifications away, the state is right and the differences are told."""
    with node.inside(), Links(buffer=4096) as links:
        node.batch(*(f"address add 10.9.0.{number}/32 dev {INTERFACE}" for number in range(1, 200)))
        node.batch(f"link set {INTERFACE} down")
        told = links.read()
        assert links.overruns == 1
        assert _event(LinkChange.DOWN) in told
        assert _event(LinkChange.ADDRESS_ADDED, "10.9.0.199/32") in told
        assert set(links.state(INTERFACE).addresses) == node.addresses()
        node.batch(f"link set {INTERFACE} up")
        _until(links, _event(LinkChange.UP))
