"""Addresses of ours on the interfaces of a node, beside those of others."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.network.namespaces import INTERFACE, Node, Segment

from appliance.net.netlink.address_messages import all_addresses
from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.virtual_addresses import Addresses, HeldAddress, kernel_marks

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

MARKS = pytest.param(True, marks=pytest.mark.skipif(not kernel_marks(), reason="needs Linux 5.18"))

FOUR = "192.0.2.100/24"
SIX = "fd00::100/64"


@pytest.fixture
def node() -> Iterator[Node]:
    """A node of its own."""
    with Segment() as segment:
        yield segment.node("only")


@pytest.fixture(params=[MARKS, False], ids=["mark", "record"])
def addresses(node: Node, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Addresses]:
    """What is tested, in the node, by the mark and by the record."""
    with node.inside(), _opened(tmp_path, marks=request.param) as opened:
        yield opened


def _opened(directory: Path, *, marks: bool) -> Addresses:
    return Addresses(AddressRecord(directory / "owned.json"), marks=marks)


def _index(node: Node) -> int:
    return int(node.ip("-oneline", "link", "show", "dev", INTERFACE).partition(":")[0])


def _line(node: Node, address: str) -> str:
    shown = node.ip("-oneline", "address", "show", "dev", INTERFACE).splitlines()
    return next(line for line in shown if f" {address} " in line)


@pytest.mark.promise("kernel", "addresses (netlink)")
@pytest.mark.parametrize("address", [FOUR, "10.9.8.7/32", SIX, "fd00::7/128"])
def test_take_and_release(addresses: Addresses, node: Node, address: str):
    """An address comes and goes, and both can be repeated."""
    index, before = _index(node), node.addresses()
    assert addresses.take(index, [address]).added == {address}
    assert addresses.take(index, [address]).already == {address}
    assert node.addresses() == before | {address}
    assert addresses.present() == {HeldAddress(index=index, address=address)}
    assert addresses.release(index, [address]) == {address}
    assert addresses.release(index, [address]) == set()
    assert node.addresses() == before
    assert addresses.present() == set()


def test_others_stay(addresses: Addresses, node: Node):
    """An address that somebody else has put is reported when taken, and stays when released."""
    index, before = _index(node), node.addresses()
    own = [f"{node.address}/24", f"{node.address6}/64"]
    taken = addresses.take(index, [*own, FOUR])
    assert taken.foreign == set(own)
    assert taken.added == {FOUR}
    assert addresses.release(index, [*own, FOUR]) == {FOUR}
    assert node.addresses() == before


@pytest.mark.skipif(not kernel_marks(), reason="needs Linux 5.18")
def test_put_back_by_somebody_else(node: Node, tmp_path: Path):
    """An address that was ours and is somebody else's now is left to them, by its mark."""
    index = _index(node)
    with node.inside(), _opened(tmp_path, marks=True) as addresses:
        addresses.take(index, [FOUR])
        node.batch(f"address delete {FOUR} dev {INTERFACE}", f"address add {FOUR} dev {INTERFACE}")
        assert addresses.present() == set()
        assert addresses.release(index, [FOUR]) == set()
        assert addresses.take(index, [FOUR]).foreign == {FOUR}
    assert node.holds(FOUR)


def test_flags(addresses: Addresses, node: Node):
    """Addresses work at once and are no source of connections; a network that is there gets no route."""
    index, routes = _index(node), node.ip("route", "show")
    addresses.take(index, [FOUR], label=f"{INTERFACE}:vip")
    addresses.take(index, [SIX])
    assert node.ip("route", "show") == routes
    four, six = _line(node, FOUR), _line(node, SIX)
    assert "noprefixroute" in four
    assert f"{INTERFACE}:vip" in four
    assert "tentative" not in six
    assert {"nodad", "noprefixroute", "deprecated"} <= set(six.split())
    assert f"from {node.address6}" in node.ip(
        "route", "get", "fd00::99"
    ) or f"src {node.address6}" in node.ip("route", "get", "fd00::99")


@pytest.mark.promise("kernel", "routes (netlink)")
def test_network_of_its_own(addresses: Addresses, node: Node):
    """An address of a network not yet reached brings the network's route, and takes it along."""
    index = _index(node)
    addresses.take(index, ["10.9.8.7/24", "10.1.1.1/32"])
    assert "10.9.8.0/24" in node.ip("route", "show")
    assert "10.1.1.1" not in node.ip("route", "show")
    addresses.release(index, ["10.9.8.7/24", "10.1.1.1/32"])
    assert "10.9.8.0/24" not in node.ip("route", "show")


def test_removing_the_first_of_a_network(addresses: Addresses, node: Node):
    """The kernel's first address of a network can go without the others of it."""
    index = _index(node)
    addresses.take(index, ["10.9.8.7/24", "10.9.8.8/24"])
    node.batch(f"address add 10.9.8.9/24 dev {INTERFACE}")
    addresses.release(index, ["10.9.8.7/24"])
    assert {"10.9.8.8/24", "10.9.8.9/24"} <= node.addresses()
    node.batch(f"address delete {node.address}/24 dev {INTERFACE}")
    assert {"10.9.8.8/24", "10.9.8.9/24"} <= node.addresses()


def test_another_prefix_length(addresses: Addresses, node: Node):
    """An IPv6 address of ours changes its prefix length, one of somebody else's is left as it is."""
    index, before = _index(node), node.addresses()
    addresses.take(index, [SIX, "fd00::101/64"])
    assert addresses.take(index, ["fd00::100/128", "fd00::101/64"]).added == {"fd00::100/128"}
    assert node.addresses() == before | {"fd00::100/128", "fd00::101/64"}
    assert addresses.take(index, [f"{node.address6}/128"]).foreign == {f"{node.address6}/128"}
    assert addresses.release(index, [SIX, "fd00::100/128", "fd00::101/64"]) == {
        "fd00::100/128",
        "fd00::101/64",
    }
    assert node.addresses() == before


def test_recorded_network(node: Node, tmp_path: Path):
    """An address that only the record knows as ours does not count as reaching its network."""
    index = _index(node)
    node.batch(f"address add 10.9.0.5/24 dev {INTERFACE}")
    AddressRecord(tmp_path / "owned.json").add([(INTERFACE, "10.9.0.5/24")])
    with node.inside(), _opened(tmp_path, marks=False) as addresses:
        addresses.prepare(index, ["10.9.0.5/24"])
        addresses.release(index, ["10.9.0.5/24"])
        addresses.take(index, ["10.9.0.5/24"])
    assert "10.9.0.0/24" in node.ip("route")


@pytest.mark.parametrize("marks", [MARKS, False], ids=["mark", "record"])
def test_left_by_a_killed_process(node: Node, tmp_path: Path, *, marks: bool):
    """What a process killed with -9 held is found and removed by the next, with nothing of others."""
    index, before = _index(node), node.addresses()
    killed = (
        "import os, pathlib, sys\n"
        "from appliance.net.netlink.virtual_addresses import Addresses\n"
        "from appliance.net.netlink.address_record import AddressRecord\n"
        "record = AddressRecord(pathlib.Path(sys.argv[1]))\n"
        f"Addresses(record, marks={marks}).take({index}, {[FOUR, SIX]})\n"
        "os.kill(os.getpid(), 9)\n"
    )
    with node.inside():
        ran = subprocess.run([sys.executable, "-c", killed, str(tmp_path / "owned.json")], check=False)
        assert ran.returncode == -9
        assert node.addresses() == before | {FOUR, SIX}
        with _opened(tmp_path, marks=marks) as addresses:
            left = addresses.leftovers()
            assert left == {HeldAddress(index=index, address=FOUR), HeldAddress(index=index, address=SIX)}
            addresses.take(index, [SIX])
            assert addresses.leftovers() == {HeldAddress(index=index, address=FOUR)}
            addresses.release(index, [FOUR, SIX])
            assert addresses.leftovers() == set()
    assert node.addresses() == before


def test_interface_gone(addresses: Addresses, node: Node):
    """Without the interface taking fails with the reason, releasing has nothing to do, and nothing raises."""
    index = _index(node)
    addresses.take(index, [FOUR])
    node.batch(f"link delete {INTERFACE}")
    assert addresses.release(index, [FOUR]) == set()
    assert addresses.take(index, [FOUR]).failed == {FOUR: "No such device"}
    assert addresses.present() == set()


def test_label_too_long(addresses: Addresses, node: Node):
    """What the kernel refuses is reported with its words, and the other addresses are taken."""
    index = _index(node)
    taken = addresses.take(index, [FOUR], label="a-label-that-is-too-long")
    assert taken.failed.keys() == {FOUR}
    assert addresses.take(index, [SIX, FOUR]).added == {SIX, FOUR}


def test_many(addresses: Addresses, node: Node):
    """More addresses than fit one request are taken and released."""
    index = _index(node)
    many = [f"10.9.{number // 250}.{number % 250 + 1}/16" for number in range(300)]
    assert addresses.take(index, many).added == set(many)
    assert len(addresses.present()) == 300
    assert addresses.release(index, many) == set(many)
    assert addresses.present() == set()


def test_refused_dump(node: Node):
    """An error that the kernel answers a dump with is an OSError."""
    with node.inside(), Requests() as requests, pytest.raises(OSError, match="No such device"):
        requests.dump(all_addresses(12345))
