"""What a reload does to the virtual routers that run."""

import pytest
from support.values.snapshots import virtual_router

from appliance.core.vrrp.reload_plan import Added, Removed, Replaced, Revised, changes

pytestmark = pytest.mark.pure

A, B, C = (virtual_router(name, router_id=number) for number, name in enumerate("abc", 1))


def test_what_is_the_same_is_in_no_plan():
    """Equal routers are left alone, in whatever order."""
    assert changes((A, B), (B, A)) == ()


def test_first_what_goes_then_what_comes():
    """Addresses may pass from one router to another: the old one leaves first."""
    changed = virtual_router("b", router_id=2, priority=7)
    assert changes((A, B), (changed, C)) == (
        Removed(router=A),
        Revised(before=B, after=changed),
        Added(router=C),
    )


@pytest.mark.parametrize(
    "difference",
    [
        {"priority": 200},
        {"advert": 2.0},
        {"addresses": ("192.0.2.201/24",)},
        {"elsewhere": (("192.0.2.200/24", "eth1"),)},
        {"peers": ("192.0.2.2",)},
        {"sync_group": "service"},
        {"preempt": False},
    ],
)
def test_parameters_are_revised(difference: dict[str, object]):
    """The same virtual router with other parameters goes on."""
    after = virtual_router("a", **{"router_id": 1, **difference})
    assert changes((A,), (after,)) == (Revised(before=A, after=after),)


@pytest.mark.parametrize(
    ("difference", "keeps"),
    [
        ({"router_id": 9}, True),
        ({"version": 3}, True),
        ({"interface": "eth1"}, False),
        ({"virtual_mac": True}, False),
        ({"router_id": 9, "addresses": ("192.0.2.201/24",)}, False),
        ({"router_id": 9, "addresses": ("192.0.2.200/32",)}, False),
        ({"router_id": 9, "addresses": ("192.0.2.200/24", "192.0.2.201/24")}, True),
        ({"router_id": 9, "elsewhere": (("192.0.2.200/24", "eth1"),)}, False),
        ({"family": 6, "addresses": ("fd00::1/64",)}, False),
    ],
)
def test_another_virtual_router_takes_its_place(difference: dict[str, object], *, keeps: bool):
    """Another identity replaces it; its addresses stay when they are the same ones, in the same place."""
    after = virtual_router("a", **{"router_id": 1, **difference})
    assert changes((A,), (after,)) == (Replaced(before=A, after=after, keeps=keeps),)


def test_a_virtual_mac_has_the_router_id_in_it():
    """With virtual MACs the addresses move to another interface with the router id."""
    before = virtual_router("a", virtual_mac=True, router_id=1)
    after = virtual_router("a", virtual_mac=True, router_id=2)
    assert changes((before,), (after,)) == (Replaced(before=before, after=after, keeps=False),)


def test_a_virtual_mac_outlives_another_version():
    """With the same router id the virtual MAC is the same one."""
    before = virtual_router("a", virtual_mac=True, version=2)
    after = virtual_router("a", virtual_mac=True, version=3)
    assert changes((before,), (after,)) == (Replaced(before=before, after=after, keeps=True),)


def test_another_name_is_no_other_virtual_router():
    """One that is there under another name takes the old one's place, whatever else it changes."""
    named = virtual_router("z", router_id=1, addresses=("192.0.2.201/24",))
    assert changes((A, B), (named, B)) == (Replaced(before=A, after=named, keeps=True),)


def test_a_name_that_another_one_takes():
    """Who is there already and takes the name of one that goes is no other virtual router."""
    named = virtual_router("a", router_id=2)
    assert changes((A, B), (named,)) == (Removed(router=A), Replaced(before=B, after=named, keeps=True))


def test_names_are_swapped():
    """Two that swap their names stay what they are to the peers, also on interfaces of their own."""
    other = virtual_router("b", router_id=2, interface="eth1")
    swapped = virtual_router("a", router_id=2, interface="eth1"), virtual_router("b", router_id=1)
    assert changes((A, other), swapped) == (
        Replaced(before=other, after=swapped[0], keeps=True),
        Replaced(before=A, after=swapped[1], keeps=True),
    )


def test_several_of_one_identity_are_told_apart_by_their_names():
    """With unicast peers of their own two may have the same router id: their names say which is which."""
    before = [virtual_router(each, router_id=1, peers=(f"192.0.2.{each}",)) for each in "23"]
    revised = virtual_router("3", router_id=1, peers=("192.0.2.3",), priority=7)
    assert changes(before, before) == ()
    assert changes(before, (revised, before[0])) == (Revised(before=before[1], after=revised),)


def test_names_are_passed_on():
    """The name of one that is renamed is free for a third one."""
    named, new = virtual_router("b", router_id=1), virtual_router("a", router_id=3)
    assert changes((A,), (new, named)) == (
        Replaced(before=A, after=named, keeps=True),
        Added(router=new),
    )
