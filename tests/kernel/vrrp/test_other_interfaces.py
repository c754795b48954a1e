"""A virtual router with an address on another interface: of two of ours, and beside Debian's keepalived."""

from collections.abc import Iterator
from typing import Final

import pytest
from support.network.namespaces import Node
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, Field, agreed, field
from support.vrrp.vrrp_node import VrrpNode, router

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nsenter", "tcpdump", root=True)]

LEG: Final = "eth1"
THERE: Final = "198.51.100.100"
PLACES: Final = {
    "addresses": (f"{VIP}/24", f"{THERE}/24"),
    "elsewhere": ((f"{THERE}/24", LEG),),
}


@pytest.fixture
def meadow() -> Iterator[Field]:
    """Return two nodes that share a second network, by which each believes announcements."""
    with field() as made:
        made.one.batch(f"link add {LEG} type veth peer name {LEG} netns {made.two.name}")
        for number, node in enumerate((made.one, made.two), 1):
            node.batch(f"link set {LEG} up", f"address add 198.51.100.{number}/24 dev {LEG}")
            node.run(["sh", "-c", f"echo 1 > /proc/sys/net/ipv4/conf/{LEG}/arp_accept"])
        yield made


def holds_all(node: Node) -> bool:
    """Say whether a node has each address where it belongs, and nowhere else."""
    return node.holds(VIP) and node.holds(THERE, LEG) and not node.holds(THERE)


def holds_none(node: Node) -> bool:
    """Say whether a node has neither address."""
    return not node.holds(VIP) and not node.holds(THERE, LEG)


def mac(node: Node) -> str:
    """Return the hardware address of the second interface."""
    return node.ip("-oneline", "link", "show", LEG).partition("link/ether ")[2].split()[0]


def test_the_addresses_move_together(meadow: Field) -> None:
    """One election decides of both interfaces; each address is announced where it is."""
    with agreed(meadow, **PLACES) as (_, two):
        assert holds_all(meadow.one)
        assert holds_none(meadow.two)
        known = wait_until(
            lambda: meadow.two.ip("neighbour", "show", THERE, "dev", LEG), what="it was announced there"
        )
        assert mac(meadow.one) in known
        meadow.one.unplug()
        two.wait_for("active")
        assert holds_all(meadow.two)
        wait_until(lambda: holds_none(meadow.one), what="a fault leaves no address")


def test_what_somebody_removes_is_put_back_there(meadow: Field) -> None:
    """It comes back on its own interface."""
    with agreed(meadow, **PLACES):
        meadow.one.ip("address", "delete", f"{THERE}/24", "dev", LEG)
        wait_until(lambda: holds_all(meadow.one), what="the address is back")


def test_an_interface_that_is_gone_is_a_fault(meadow: Field) -> None:
    """Who cannot hold one of the addresses gives all of them away; a stop leaves nothing behind."""
    with agreed(meadow, **PLACES) as (one, two):
        meadow.one.ip("link", "set", LEG, "down")
        one.wait_for("fault")
        assert not meadow.one.holds(VIP)
        meadow.one.ip("link", "set", LEG, "up")
        one.wait_for("active")
        assert holds_all(meadow.one)
        assert one.stop() == 0
        two.wait_for("active")
        assert holds_none(meadow.one)


@pytest.mark.slow("real timers of keepalived")
@pytest.mark.needs("keepalived")
def test_beside_keepalived(meadow: Field) -> None:
    """Each hears the other's list of addresses as its own, and both hold them in the same places."""
    theirs = Instance(priority=150, addresses=(f"{VIP}/24", f"{THERE}/24 dev {LEG}"))
    with Keepalived(meadow.one, theirs) as keepalived:
        keepalived.wait_for("MASTER")
        wait_until(lambda: holds_all(meadow.one), what="keepalived holds them")
        with VrrpNode(meadow.two, router(**PLACES)) as ours:
            ours.wait_for("backup")
            wait_until(lambda: ours.status()["heard"], what="keepalived is heard")
            assert ours.status()["drops"] == {}
            keepalived.stop()
            ours.wait_for("active")
            assert holds_all(meadow.two)
            keepalived.start()
            keepalived.wait_for("MASTER")
            ours.wait_for("backup")
            assert holds_none(meadow.two)


@pytest.mark.slow("real timers of keepalived")
@pytest.mark.needs("keepalived")
def test_an_election_about_no_address_beside_keepalived(meadow: Field) -> None:
    """Its instance without addresses, of version 2, and ours elect one of both; there is nothing to hold."""
    theirs = Instance(version=2, advert=1, priority=150, addresses=())
    with Keepalived(meadow.one, theirs) as keepalived:
        keepalived.wait_for("MASTER")
        with VrrpNode(meadow.two, router(addresses=(), family=4, version=2, advert=1.0)) as ours:
            ours.wait_for("backup")
            wait_until(lambda: ours.status()["heard"], what="keepalived is heard")
            assert ours.status()["drops"] == {}
            keepalived.stop()
            ours.wait_for("active")
            keepalived.start()
            keepalived.wait_for("MASTER")
            ours.wait_for("backup")
