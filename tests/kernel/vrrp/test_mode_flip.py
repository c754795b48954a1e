"""From multicast to unicast and back, as OpenShift's `monitor.conf` has it: all nodes at the same moment."""

from dataclasses import replace

import pytest
from support.network.namespaces import Node
from support.processes.waiting import wait_until
from support.vrrp.keepalived import Instance, Keepalived
from support.vrrp.vrrp_field import Field
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.model.snapshot.virtual_router import VirtualRouter

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.needs("ip", "keepalived", "tcpdump", root=True),
    pytest.mark.slow("real timers of several routers"),
]

_ADVERT = 0.2
_GROUP = "224.0.0.18"
_HIGH, _LOW = 150, 100


def _ours(here: Node, there: Node, *, priority: int, unicast: bool) -> VirtualRouter:
    peers = {"source": here.address, "peers": (there.address,)} if unicast else {}
    return router(priority=priority, advert=_ADVERT, **peers)


def _theirs(here: Node, there: Node, *, priority: int, unicast: bool) -> Instance:
    made = Instance(priority=priority, advert=_ADVERT)
    return replace(made, source=here.address, peers=(there.address,)) if unicast else made


def _hears(ground: Field, *, active: Node, unicast: bool, other: Node) -> None:
    """Wait until the active one has advertised in this mode for longer than a backup waits."""
    ground.wait_for_adverts(5, source=active.address, destination=other.address if unicast else _GROUP)


def test_ours_flips_without_a_change(ground: Field):
    """There and back, with a keepalived as backup: we stay active, it stays backup, no address moves."""
    one, two = ground.one, ground.two
    with (
        VrrpNode(one, _ours(one, two, priority=_HIGH, unicast=False)) as vrrp,
        Keepalived(two, _theirs(two, one, priority=_LOW, unicast=False)) as keepalived,
    ):
        ground.wait_for_holder(one)
        keepalived.wait_for("BACKUP")
        entered, told = len(vrrp.transitions()), len(keepalived.states())
        for unicast in (True, False):
            keepalived.configure(_theirs(two, one, priority=_LOW, unicast=unicast))
            keepalived.reload()
            vrrp.reload(_ours(one, two, priority=_HIGH, unicast=unicast))
            _hears(ground, active=one, unicast=unicast, other=two)
            assert ground.holders() == [one]
        assert len(vrrp.transitions()) == entered
        assert "MASTER" not in keepalived.states()[told:]


def test_keepalived_flips_beside_ours(ground: Field):
    """It leaves by itself and comes back, as beside another keepalived: we step in, and then yield to it."""
    one, two = ground.one, ground.two
    with (
        VrrpNode(one, _ours(one, two, priority=_LOW, unicast=False)) as vrrp,
        Keepalived(two, _theirs(two, one, priority=_HIGH, unicast=False)) as keepalived,
    ):
        ground.wait_for_holder(two)
        vrrp.wait_for("backup")
        for unicast in (True, False):
            keepalived.configure(_theirs(two, one, priority=_HIGH, unicast=unicast))
            keepalived.reload()
            vrrp.reload(_ours(one, two, priority=_LOW, unicast=unicast))
            _hears(ground, active=two, unicast=unicast, other=one)
            ground.wait_for_holder(two)
            vrrp.wait_for("backup")


@pytest.mark.parametrize("active", ["ours", "keepalived"])
def test_two_actives_of_a_mixed_phase_end_with_it(ground: Field, active: str):
    """One flips, and neither hears the other: both are active. When both have flipped the lower yields."""
    one, two = ground.one, ground.two
    ours, theirs = (_HIGH, _LOW) if active == "ours" else (_LOW, _HIGH)
    first = one if active == "ours" else two
    with (
        VrrpNode(one, _ours(one, two, priority=ours, unicast=False)) as vrrp,
        Keepalived(two, _theirs(two, one, priority=theirs, unicast=False)) as keepalived,
    ):
        ground.wait_for_holder(first)
        vrrp.wait_for("active" if active == "ours" else "backup")
        vrrp.reload(_ours(one, two, priority=ours, unicast=True))
        wait_until(lambda: set(ground.holders()) == {one, two}, what="both hold it", timeout=20.0)
        keepalived.configure(_theirs(two, one, priority=theirs, unicast=True))
        keepalived.reload()
        ground.wait_for_holder(first)
        if active == "ours":
            keepalived.wait_for("BACKUP")
        else:
            vrrp.wait_for("backup")
