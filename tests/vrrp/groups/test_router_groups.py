"""Reloads on a simulated machine: who stays, who leaves, and who takes an address over."""

from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import Machine, advert, port_of

from appliance.core.vrrp.election import RouterState
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.vrrp.groups.opening import OpeningOutcome
from appliance.vrrp.groups.router_groups import RouterGroups
from appliance.vrrp.instance.vrrp_instance import VrrpInstance

pytestmark = pytest.mark.pure

API = virtual_router("api", announce=replace(virtual_router().announce, repeat=1, delay=0.0))
INGRESS = replace(API, name="ingress", router_id=52, addresses=("192.0.2.201/24",))
CLAIMED = 5.0


class Field:
    """All groups of a machine; `left` counts those that have stopped."""

    def __init__(self, *routers: VirtualRouter) -> None:
        self.machine = Machine()
        self.left = 0
        self.groups = RouterGroups(
            self.machine.environment, self.machine.observer, self._open, on_left=self._group_left
        )
        self.reload(*routers, now=0.0)
        self.machine.loop.run(CLAIMED)

    def reload(self, *routers: VirtualRouter, now: float) -> list[OpeningOutcome]:
        """Apply a configuration, and return its outcome when all new ones are open."""
        outcomes: list[OpeningOutcome] = []
        self.groups.apply(routers, now, then=outcomes.append)
        self.machine.loop.run(now)
        return outcomes

    def instance(self, name: str) -> VrrpInstance:
        """Return a configured instance."""
        found = self.groups.find(name)
        assert found is not None
        return found[1]

    @property
    def addresses(self) -> set[str]:
        """Return what is on the interface."""
        return {address for _, address in self.machine.addresses.present}

    def _open(self, instance: VrrpInstance, now: float) -> None:
        instance.update_link(self.machine.links.state(instance.router.interface), now)

    def _group_left(self) -> None:
        self.left += 1


def test_new_routers_take_part():
    """Each is opened in a turn of its own, and claims."""
    field = Field(API, INGRESS)
    assert field.addresses == {"192.0.2.200/24", "192.0.2.201/24"}
    assert [each.name for each in field.groups.instances] == ["api", "ingress"]


def test_a_router_that_did_not_change_is_not_touched():
    """It keeps its instance and its sockets, and says nothing because of a reload."""
    field = Field(API)
    before, port = field.instance("api"), port_of(field.instance("api"))
    sent = list(port.sent)
    assert field.reload(API, INGRESS, now=6.0) == [OpeningOutcome.DONE]
    assert (field.instance("api"), port_of(before)) == (before, port)
    assert port.sent[: len(sent)] == sent
    assert 0 not in port.sent


def test_a_removed_router_leaves_with_a_successor():
    """It serves until a peer does; then nothing of it is left."""
    field = Field(API, INGRESS)
    leaving = field.instance("api")
    field.reload(INGRESS, now=6.0)
    assert field.groups.find("api") is None
    assert "192.0.2.200/24" in field.addresses
    port_of(leaving).arriving.append(advert(90))
    (group,) = field.groups.leaving
    group.receive("api", 6.2)
    field.machine.loop.run(7.0)
    assert (field.addresses, field.left, field.groups.leaving) == ({"192.0.2.201/24"}, 1, [])


def test_a_router_with_another_id_keeps_its_addresses():
    """They stay where they are: the new one goes on as active, and no client notices."""
    field = Field(API)
    old = field.instance("api")
    sent = len(port_of(old).sent)
    closed = port_of(old)
    field.reload(replace(API, router_id=77), now=6.0)
    new = field.instance("api")
    assert (new is old, new.election.state, new.holder.held) == (False, RouterState.ACTIVE, True)
    assert (closed.closed, closed.sent[sent:], field.addresses) == (True, [], {"192.0.2.200/24"})


def test_an_address_moves_from_one_router_to_another():
    """The new one has it before the old one would remove it, and it stays."""
    field = Field(API, INGRESS)
    moved = replace(INGRESS, addresses=(*INGRESS.addresses, *API.addresses))
    field.reload(replace(API, addresses=("192.0.2.210/24",)), moved, now=6.0)
    assert field.addresses == {"192.0.2.200/24", "192.0.2.201/24", "192.0.2.210/24"}


def test_a_sync_group_is_put_together():
    """Two routers that were alone become one group, in the state of the one that is active."""
    field = Field(API)
    field.reload(replace(API, sync_group="both"), replace(INGRESS, sync_group="both"), now=6.0)
    (group,) = field.groups
    assert set(group.instances) == {"api", "ingress"}
    assert group.state is RouterState.ACTIVE
    assert field.addresses == {"192.0.2.200/24", "192.0.2.201/24"}


def test_a_hand_over_ends_early_with_its_router():
    """Who waits for it is told why, before the router leaves."""
    field = Field(API)
    group, _ = field.groups.find("api") or pytest.fail("no group")
    group.move(6.0)
    field.reload(now=6.1)
    assert ("api", "cut-short", "the virtual IP was removed") in field.machine.observer.told


def test_a_stop_ends_all():
    """Everybody leaves, each end is told, and what is applied later is given up."""
    field = Field(API, INGRESS)
    field.groups.stop(6.0)
    field.machine.loop.run(12.0)
    assert (field.addresses, field.left, field.groups.leaving) == (set(), 2, [])
    assert field.reload(API, now=13.0) == [OpeningOutcome.GIVEN_UP]


def test_a_close_leaves_no_address():
    """Whatever was held is removed, without a hand-over."""
    field = Field(API)
    port = port_of(field.instance("api"))
    field.groups.close()
    assert (field.addresses, port.closed) == (set(), True)
