"""A virtual router with an excluded address of the other family: of two of ours, and beside keepalived."""

from collections.abc import Iterator
from typing import Final

import pytest
from support.network.namespaces import INTERFACE
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, VIP6, Field, agreed, field
from support.vrrp.vrrp_node import VrrpNode, router

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nsenter", "tcpdump", root=True)]

PLACES: Final = {
    "family": 4,
    "addresses": (f"{VIP}/24", f"{VIP6}/64"),
    "excluded": (f"{VIP6}/64",),
    "elsewhere": ((f"{VIP6}/64", INTERFACE),),
}


@pytest.fixture
def meadow() -> Iterator[Field]:
    """Return two nodes with addresses of both families, and the capture of their segment."""
    with field() as made:
        yield made


def announced(meadow: Field, mac: str, *, since: int = 0) -> None:
    """Wait until this hardware address has announced both addresses after the first `since` packets."""
    for address in (VIP, VIP6):
        wait_until(
            lambda address=address: any(  # type: ignore[misc]  # mypy and defaults
                each in meadow.capture.read()[since:]
                for each in meadow.capture.announcements(mac=mac, address=address)
            ),
            what=f"{address} is announced by {mac}",
        )


def test_the_addresses_move_together(meadow: Field) -> None:
    """One election decides of both families, and neighbours learn at once where each address is."""
    with agreed(meadow, **PLACES) as (one, two):
        for address in (VIP, VIP6):
            meadow.wait_for_holder(meadow.one, address)
        announced(meadow, meadow.one.mac)
        before = meadow.capture.mark()
        assert one.stop() == 0
        two.wait_for("active")
        for address in (VIP, VIP6):
            meadow.wait_for_holder(meadow.two, address)
        announced(meadow, meadow.two.mac, since=before)
    assert {each.addresses for each in meadow.capture.adverts()} == {(VIP,)}


@pytest.mark.slow("real timers of keepalived")
@pytest.mark.needs("keepalived")
@pytest.mark.parametrize("version", [2, 3])
def test_beside_keepalived(meadow: Field, version: int) -> None:
    """Each hears the other's list of addresses as its own, and one of both holds all of them."""
    lines = ("virtual_ipaddress_excluded {", f"{VIP6}/64", "}")
    theirs = Instance(version=version, advert=1, priority=150, lines=lines)
    with Keepalived(meadow.one, theirs) as keepalived:
        keepalived.wait_for("MASTER")
        meadow.wait_for_holder(meadow.one, VIP6)
        announced(meadow, meadow.one.mac)
        with VrrpNode(meadow.two, router(version=version, advert=1.0, **PLACES)) as ours:
            ours.wait_for("backup")
            wait_until(lambda: ours.status()["heard"], what="keepalived is heard")
            assert ours.status()["drops"] == {}
            keepalived.stop()
            ours.wait_for("active")
            for address in (VIP, VIP6):
                meadow.wait_for_holder(meadow.two, address)
            announced(meadow, meadow.two.mac)
            keepalived.start()
            keepalived.wait_for("MASTER")
            ours.wait_for("backup")
            for address in (VIP, VIP6):
                meadow.wait_for_holder(meadow.one, address)


@pytest.mark.slow("real timers of several routers")
def test_with_a_virtual_mac_it_has_the_interface_s_own(meadow: Field) -> None:
    """The virtual MAC is one of the router's family: as with keepalived the others are below the macvlan."""
    with VrrpNode(meadow.one, router(virtual_mac=True, **PLACES)) as ours:
        ours.wait_for("active")
        wait_until(lambda: meadow.one.holds(VIP6), what="the address is on the interface itself")
        assert not meadow.one.holds(VIP)
        for mac, address in ((meadow.one.mac, VIP6), ("00:00:5e:00:01:2a", VIP)):
            wait_until(
                lambda mac=mac, address=address: meadow.capture.announcements(mac=mac, address=address),  # type: ignore[misc]  # mypy and defaults
                what=f"{address} is at {mac}",
            )
        assert ours.stop() == 0
        assert not meadow.one.holds(VIP6)
