"""Ours beside FRR's vrrpd, a second implementation: both roles, both families, and version 2."""

import pytest
from support.processes.waiting import wait_until
from support.vrrp.frr import Frr, Settings
from support.vrrp.vrrp_field import VIP, VIP6, Field
from support.vrrp.vrrp_node import VrrpNode, router

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "vrrpd", "zebra", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]

families = pytest.mark.parametrize("address", [f"{VIP}/24", f"{VIP6}/64"], ids=["ipv4", "ipv6"])


@families
def test_backup_of_frr(ground: Field, address: str):
    """Beside a better FRR ours is silent; when that one stops ours takes over, told by its priority 0."""
    bare = address.partition("/")[0]
    with Frr(ground.two, Settings(priority=150, address=address)) as peer:
        peer.wait_for("Master")  # before ours, which would not wait longer than the down interval
        with VrrpNode(ground.one, router(priority=100, addresses=(address,))) as ours:
            ours.wait_for("backup")
            ground.wait_for_adverts(3, priority=150)
            assert not ground.one.holds(bare)
            assert not ground.capture.adverts(priority=100)
            peer.terminate()
            ours.wait_for("active")
            assert ground.one.holds(bare)
            wait_until(lambda: not peer.answers(), what="FRR has left the address")
            assert ground.capture.adverts(priority=0)
            assert ground.capture.announcements(mac=ground.one.mac, address=bare)


@families
def test_active_beside_frr(ground: Field, address: str):
    """A worse FRR accepts our advertisements and stays Backup; when ours stops it takes over."""
    bare = address.partition("/")[0]
    with VrrpNode(ground.one, router(priority=150, addresses=(address,))) as ours:
        ours.wait_for("active")
        with Frr(ground.two, Settings(priority=100, address=address)) as peer:
            peer.wait_for("Backup")
            ground.wait_for_adverts(10, priority=150)
            assert not ground.capture.adverts(priority=100)
            assert peer.state() == "Backup"
            assert not peer.answers()
            assert ours.stop() == 0
            peer.wait_for("Master")
            assert not ground.one.holds(bare)
            wait_until(peer.answers, what="FRR has the address")


def test_ours_takes_from_a_worse_frr(ground: Field):
    """A better one of ours that comes later preempts an FRR, which leaves the address."""
    with Frr(ground.two, Settings(priority=100)) as peer:
        peer.wait_for("Master")
        with VrrpNode(ground.one, router(priority=150)) as ours:
            ours.wait_for("active")
            peer.wait_for("Backup")
            wait_until(lambda: not peer.answers(), what="FRR has left the address")
            assert ours.transitions() == ["backup", "active"]


def test_version_2(ground: Field):
    """Version 2 without a password is understood both ways."""
    with VrrpNode(ground.one, router(version=2, advert=1.0, priority=150)) as ours:
        ours.wait_for("active")
        with Frr(ground.two, Settings(version=2, advert=1.0, priority=100)) as peer:
            peer.wait_for("Backup")
            ground.wait_for_adverts(2, priority=150)
            assert ours.stop() == 0
            peer.wait_for("Master")
            ground.wait_for_adverts(1, priority=100)
    assert {each.priority for each in ground.capture.adverts(version=2)} == {150, 0, 100}
