"""Which routers of a new configuration would lose an address that is active here."""

from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import Machine
from support.vrrp.tracks import track

from appliance.model.snapshot.virtual_router import TrackKind, VirtualRouter
from appliance.vrrp.reload_faults import endangered

pytestmark = pytest.mark.pure

API = virtual_router()
INGRESS = replace(API, name="ingress", router_id=52, addresses=("192.0.2.201/24",))


def problems(*routers: VirtualRouter) -> list[tuple[str | None, str]]:
    """Return what is objected to while `api` is active, by path, without the hint how to force it."""
    machine = Machine()
    group = machine.group(API)
    machine.loop.run(5.0)
    machine.set_link("eth1", index=3, own=())
    machine.set_link("eth2", index=4, up=False)
    found = endangered(group.instances.values(), routers, machine.links)
    return [(each.path, each.message.partition(";")[0]) for each in found]


@pytest.mark.parametrize(
    ("changes", "place", "why"),
    [
        ({"interface": "eth9"}, "interface", "interface eth9 does not exist"),
        ({"interface": "eth2"}, "interface", "interface eth2 is down or has no carrier"),
        (
            {"interface": "eth2", "elsewhere": (("fd00::200/64", "eth2"),)},
            "interface",
            "interface eth2 is down or has no carrier",
        ),
        ({"interface": "eth1"}, "interface", "eth1 has no IPv4 address of its own"),
        (
            {"elsewhere": (("192.0.2.200/24", "eth9"),)},
            "addresses",
            "interface eth9 does not exist",
        ),
        (
            {"elsewhere": (("192.0.2.200/24", "eth2"),)},
            "addresses",
            "interface eth2 is down or has no carrier",
        ),
        ({"source": "192.0.2.7"}, "source", "eth0 has no address 192.0.2.7"),
        (
            {"track": (track("uplink", kind=TrackKind.INTERFACE, target="eth9"),)},
            "track.uplink.interface",
            "interface eth9 does not exist",
        ),
    ],
)
def test_a_fault_of_an_active_address_is_objected_to(changes: dict[str, object], place: str, why: str):
    """Each reason has its place in the file."""
    assert problems(replace(API, **changes)) == [
        (f"virtual_ips.api.{place}", f"{why}: api is active here and would be in fault")
    ]


def test_a_member_of_its_sync_group_endangers_it():
    """A fault of one is a fault of all."""
    together = {"sync_group": "both"}
    assert problems(replace(API, **together), replace(INGRESS, interface="eth9", **together)) == [
        (
            "virtual_ips.ingress.interface",
            "interface eth9 does not exist: sync group both is active here and would be in fault",
        )
    ]


def test_others_may_be_in_fault():
    """What is not active here, or does not change, is no reason to refuse a reload."""
    assert problems(API, replace(INGRESS, interface="eth9")) == []
