"""Sync groups: IPv4 and IPv6 of one service move together, beside keepalived's groups."""

from pathlib import Path

import pytest
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import VIP, VIP6, Field
from support.vrrp.vrrp_node import VrrpNode, router, track

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "keepalived", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]

_GROUP = "vrrp_sync_group both {\ngroup {\nfour\nsix\n}\n}"


def _keepalived(ground: Field, *, priority: int) -> Keepalived:
    four = Instance(name="four", router_id=4, priority=priority, addresses=(f"{VIP}/24",))
    six = Instance(name="six", router_id=6, priority=priority, addresses=(f"{VIP6}/64",))
    return Keepalived(ground.two, four, six, head=_GROUP)


def _ours(ground: Field, *, priority: int, health: Path) -> VrrpNode:
    four = router("four", router_id=4, priority=priority, sync_group="both")
    six = router(
        "six",
        router_id=6,
        priority=priority,
        sync_group="both",
        addresses=(f"{VIP6}/64",),
        track=(track("file", str(health)),),
    )
    return VrrpNode(ground.one, four, six)


@pytest.fixture(name="health")
def _health(tmp_path: Path) -> Path:
    path = tmp_path / "health"
    path.write_text("0\n")
    return path


def _wait_for_both(ground: Field, node: object) -> None:
    for address in (VIP, VIP6):
        ground.wait_for_holder(node, address)


def test_both_move_with_one_fault(ground: Field, health: Path):
    """A fault of the IPv6 half takes both to the keepalived, and its end brings both back."""
    with _keepalived(ground, priority=100) as peer, _ours(ground, priority=150, health=health) as ours:
        _wait_for_both(ground, ground.one)
        health.write_text("1\n")
        _wait_for_both(ground, ground.two)
        assert {ours.state("four"), ours.state("six")} == {"fault"}
        wait_until(lambda: peer.states("both", kind="GROUP")[-1:] == ["MASTER"], what="the group is MASTER")
        health.write_text("0\n")
        _wait_for_both(ground, ground.one)


def test_both_take_over_when_a_group_stops(ground: Field, health: Path):
    """Ours takes both addresses of a keepalived group that stops, and gives both back when it returns."""
    with _ours(ground, priority=100, health=health) as ours:
        with _keepalived(ground, priority=150) as peer:
            _wait_for_both(ground, ground.two)
            peer.stop()
            _wait_for_both(ground, ground.one)
            peer.start()
            _wait_for_both(ground, ground.two)
        assert {ours.state("four"), ours.state("six")} == {"backup"}


def test_a_stop_hands_both_over(ground: Field, health: Path):
    """Ours that stops leaves both addresses, and tells priority 0 for each."""
    with _keepalived(ground, priority=100), _ours(ground, priority=150, health=health) as ours:
        _wait_for_both(ground, ground.one)
        assert ours.stop() == 0
        _wait_for_both(ground, ground.two)
    for number in (4, 6):
        assert ground.capture.adverts(router_id=number, priority=0)
