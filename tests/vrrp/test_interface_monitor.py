"""What netlink tells, on a simulated machine: who is told, and which addresses are put back."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import Machine, port_of
from support.vrrp.tracks import track

from appliance.core.vrrp.election import RouterState
from appliance.model.snapshot.virtual_router import TrackKind, VirtualRouter
from appliance.net.netlink.links import LinkChange, LinkEvent
from appliance.vrrp.groups.router_groups import RouterGroups
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.interface_monitor import InterfaceMonitor
from appliance.vrrp.tracks import Tracks

pytestmark = pytest.mark.pure

API = virtual_router("api", announce=replace(virtual_router().announce, repeat=1, delay=0.0))


class Field:
    """A machine whose routers are active, and whose netlink socket delivers what a test puts in."""

    def __init__(self, *routers: VirtualRouter, others: tuple[str, ...] = ()) -> None:
        self.machine = Machine()
        for index, name in enumerate(others, 3):
            self.machine.set_link(name, index=index)
        links = self.machine.links
        links.damaged = 0
        links.read = self._read
        self.arriving: list[LinkEvent] | OSError = []
        self.tracks = Tracks(
            self.machine.loop,
            links,
            self.machine.log,
            heartbeat=Path("nowhere/tracker.heartbeat"),  # no tracker is started here
            groups=lambda: self.groups,
        )
        self.groups = RouterGroups(
            self.machine.environment, self.machine.observer, self._open, on_left=lambda: None
        )
        self.monitor = InterfaceMonitor(links, self.groups, self.tracks, self.machine.log)
        self.groups.apply(routers or (API,), 0.0, then=lambda _: None)
        self.machine.loop.run(5.0)

    @property
    def api(self) -> VrrpInstance:
        """Return the instance of that name."""
        found = self.groups.find("api")
        assert found is not None
        return found[1]

    def tell(self, *events: LinkEvent, now: float = 6.0) -> None:
        """Have netlink tell these."""
        self.arriving = list(events)
        self.monitor.retry_at = now
        self.monitor.tick(now)

    def _open(self, instance: VrrpInstance, now: float) -> None:
        instance.update_link(self.machine.links.state(instance.router.interface), now)
        self.tracks.update_interfaces(instance)

    def _read(self) -> list[LinkEvent]:
        if isinstance(self.arriving, OSError):
            raise self.arriving
        return self.arriving


def event(change: LinkChange, name: str = "eth0", address: str = "") -> LinkEvent:
    """Return one change."""
    return LinkEvent(change=change, name=name, address=address)


def test_an_address_that_was_removed_is_put_back():
    """It is announced again, and the log says which."""
    field = Field()
    field.machine.addresses.present.clear()
    frames = len(port_of(field.api).frames.sent)
    field.tell(event(LinkChange.ADDRESS_REMOVED, address="192.0.2.200/24"))
    assert field.machine.addresses.present == {(2, "192.0.2.200/24")}
    assert len(port_of(field.api).frames.sent) > frames
    assert field.machine.log.fields("address-restored") == [
        {"router": "api", "addresses": ["192.0.2.200/24"]}
    ]


def test_an_address_of_somebody_else_is_left_alone():
    """What goes on another interface, or is no virtual address, is nobody's business."""
    field = Field()
    removed = LinkChange.ADDRESS_REMOVED
    field.tell(event(removed, "eth1", "192.0.2.200/24"), event(removed, address="192.0.2.7/24"))
    assert field.machine.log.fields("address-restored") == []


def test_an_interface_that_goes_down_is_told_its_routers():
    """The election of one that uses it is in fault at once."""
    field = Field()
    field.machine.set_link(up=False)
    field.tell(event(LinkChange.DOWN))
    assert field.api.election.state is RouterState.FAULT


def test_a_tracked_interface_changes_the_priority():
    """Also one that no router is on."""
    uplink = track("uplink", kind=TrackKind.INTERFACE, target="eth9", weight=-40)
    field = Field(replace(API, track=(uplink,)))
    assert field.api.priority.value == 60
    field.machine.set_link("eth9", index=9)
    field.tell(event(LinkChange.UP, "eth9"))
    assert field.api.priority.value == 100


def test_a_foreign_address_is_looked_for():
    """When one of ours comes up somewhere, or an interface with unknown addresses does."""
    field = Field()
    field.machine.links.foreign = {"192.0.2.200": (("eth0", "192.0.2.200/32"),)}
    field.tell(event(LinkChange.ADDRESS_ADDED, "eth0", "192.0.2.77/24"))
    assert field.machine.log.fields("address-conflict") == []
    field.tell(event(LinkChange.APPEARED, "eth5"))
    assert [each["kind"] for each in field.machine.log.fields("address-conflict")] == ["address-foreign"]


def test_what_could_not_be_read_is_read_again():
    """A second later; until then the state stays as it is known."""
    field = Field()
    field.arriving = OSError(105, "No buffer space available")
    field.monitor.retry_at = 6.0
    field.monitor.tick(6.0)
    assert field.monitor.retry_at == 7.0
    assert field.machine.log.fields("interfaces-unread") == [{"reason": "No buffer space available"}]
    field.arriving = []
    field.monitor.tick(6.5)
    assert field.monitor.retry_at == 7.0
    field.monitor.tick(7.0)
    assert field.monitor.retry_at is None


def test_damaged_messages_are_logged_once():
    """Messages that nobody can read are counted; the log has them once."""
    field = Field()
    field.machine.links.damaged = 2
    field.tell()
    field.tell(now=7.0)
    assert field.machine.log.fields("netlink-damaged") == [{"count": 2}]


def test_an_address_on_another_interface_is_put_back_there():
    """What goes on the interface that it is held on is put back, and its state is the router's."""
    router = replace(
        API, addresses=("192.0.2.200/24", "198.51.100.7/24"), elsewhere=(("198.51.100.7/24", "eth1"),)
    )
    field = Field(router, others=("eth1",))
    field.machine.addresses.present.discard((3, "198.51.100.7/24"))
    field.tell(event(LinkChange.ADDRESS_REMOVED, "eth1", "198.51.100.7/24"))
    assert (3, "198.51.100.7/24") in field.machine.addresses.present
    field.machine.set_link("eth1", index=3, up=False)
    field.tell(event(LinkChange.DOWN, "eth1"), now=7.0)
    assert field.api.election.state is RouterState.FAULT
