"""Reloads that give addresses to other virtual routers: those that stay on the machine never leave it."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest
from support.load.stalls import judged
from support.processes.waiting import wait_until
from support.vrrp.vrrp_field import AddressMonitor, Field, pair
from support.vrrp.vrrp_node import VrrpNode, router

from appliance.model.snapshot.virtual_router import OnConflict, VirtualRouter

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "nsenter", "tcpdump", root=True)]

X, Y, Z = "192.0.2.101/24", "192.0.2.102/24", "192.0.2.103/24"


def entries(*lists: Sequence[str]) -> tuple[VirtualRouter, ...]:
    """Return virtual routers `a`, `b`... with these addresses."""
    return tuple(
        router("abc"[place], router_id=place + 1, addresses=tuple(addresses))
        for place, addresses in enumerate(lists)
    )


def bare(address: str) -> str:
    """Return an address without its prefix length."""
    return address.partition("/")[0]


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (entries([X], [Y]), entries([Y], [X])),
        (entries([X, Z], [Y]), entries([X], [Y, Z])),
        (entries([X], [Y, Z]), entries([X, Z], [Y])),
        (entries([X], [Y, Z]), entries([X, Y, Z])),
        (entries([X]), tuple(replace(each, router_id=9) for each in entries([X, Y]))),
    ],
    ids=["swapped", "forward", "back", "merged", "with-another-router-id"],
)
def test_addresses_change_their_entries(
    ground: Field, before: tuple[VirtualRouter, ...], after: tuple[VirtualRouter, ...]
):
    """An address that another entry has now never leaves the interface (keepalived's issue 1854)."""
    stay = {each for made in before for each in made.addresses}
    with VrrpNode(ground.one, *before) as one:
        for each in before:
            one.wait_for("active", each.name)
        with AddressMonitor(ground.one) as monitor:
            one.reload(*after)
            wait_until(lambda: one.ask("status")["leaving"] == [], what="who is gone has left")
            wait_until(
                lambda: all(ground.one.holds(each) for made in after for each in made.addresses),
                what="all addresses are there",
            )
            ground.one.ip("address", "add", "192.0.2.250/32", "dev", "lo")
            wait_until(lambda: monitor.came("192.0.2.250"), what="the monitor has seen everything")
            assert {each: monitor.went(bare(each)) for each in stay} == dict.fromkeys(stay, 0)
        assert "address-restored" not in one.log()
        assert {one.state(each.name) for each in after} == {"active"}


@pytest.mark.slow("real timers of several routers")
def test_a_virtual_ip_is_renamed(ground: Field):
    """Another name is nothing to the peers: the address stays, nobody is told that somebody leaves."""
    named, peer = router("old", priority=150), router("old", priority=100)
    with VrrpNode(ground.one, named) as one:
        one.wait_for("active", "old")
        with VrrpNode(ground.two, peer) as two, AddressMonitor(ground.one) as monitor:
            two.wait_for("backup", "old")
            one.reload(replace(named, name="new"))
            ground.wait_for_adverts(5, source=ground.one.address, priority=150)
            assert one.state("new") == "active"
            assert one.state("old") == ""
            assert monitor.went(bare(named.addresses[0])) == 0
            assert two.transitions("old") == ["backup"]
            assert ground.capture.adverts(priority=0) == []


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("lists", [([X], [Y]), ([Y], [X])], ids=["names", "router-ids"])
def test_names_are_swapped(ground: Field, lists: tuple[list[str], list[str]]):
    """Two that swap names, or their router ids, keep every address, and none says that it leaves."""
    before = entries([X], [Y])
    swapped = [replace(each, name=name) for each, name in zip(entries(*lists), "ba", strict=True)]
    with VrrpNode(ground.one, *before) as one:
        for each in "ab":
            one.wait_for("active", each)
        with AddressMonitor(ground.one) as monitor:
            one.reload(*swapped)
            for number in (1, 2):
                ground.wait_for_adverts(5, router_id=number, priority=100)
            assert [one.state(each) for each in "ab"] == ["active", "active"]
            assert [one.status(each)["router_id"] for each in "ab"] == [2, 1]
            assert [one.status(each)["addresses"] for each in "ba"] == [*lists]
            assert [monitor.went(bare(each)) for each in (X, Y)] == [0, 0]
            assert ground.capture.adverts(priority=0) == []


@pytest.mark.slow("real timers of several routers")
def test_a_renamed_backup_is_a_backup(ground: Field):
    """A Backup under another name listens again and claims nothing."""
    high, low = router(priority=150), router(priority=100)
    with pair(ground, high, low) as (one, two):
        two.reload(replace(low, name="new"))
        two.wait_for("backup", "new")
        ground.wait_for_adverts(5, source=ground.one.address)
        assert two.transitions("new") == ["backup"]
        assert one.transitions() == ["backup", "active"]


@pytest.mark.slow("real timers of several routers")
def test_a_renamed_one_that_was_moved_away_stays_away(ground: Field):
    """Another name or router id does not undo a planned hand-over."""
    high, low = router(priority=150), router(priority=100)
    with pair(ground, high, low) as (one, two):
        assert one.move()["ok"] is True
        one.reload(replace(high, name="new"))
        one.wait_for("backup", "new")
        ground.wait_for_adverts(5, source=ground.two.address)
        assert one.transitions("new") == ["backup"]
        assert two.state() == "active"


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"router_id": 9}, "api: the virtual IP is api with router id 9 now, and stays here"),
        ({"name": "new"}, "api: the virtual IP is new with router id 42 now, and stays here"),
        ({"name": "new", "router_id": 9}, "api: the virtual IP was removed"),
        ({"interface": "lo"}, "api: the virtual IP was replaced by another one"),
    ],
    ids=["router-id", "name", "removed", "elsewhere"],
)
def test_a_move_ends_with_its_router(ground: Field, changes: dict[str, object], why: str):
    """Who asked for a hand-over hears what has become of the virtual IP that a reload changes meanwhile."""
    before = router(hand_over=60.0)
    with VrrpNode(ground.one, before) as one, ThreadPoolExecutor(1) as executor:
        one.wait_for("active")
        move = executor.submit(one.move)
        wait_until(lambda: ground.capture.adverts(priority=0), what="it says that it leaves")
        one.reload(replace(before, **changes))
        assert move.result(20) == {"ok": False, "errors": [{"message": why}]}


def test_a_move_ends_with_a_fault(ground: Field):
    """Who asked for a hand-over hears that the interface has failed meanwhile."""
    with VrrpNode(ground.one, router(hand_over=60.0)) as one, ThreadPoolExecutor(1) as executor:
        one.wait_for("active")
        move = executor.submit(one.move)
        wait_until(lambda: ground.capture.adverts(priority=0), what="it says that it leaves")
        ground.one.unplug()
        why = "api: in fault before another node took over"
        assert move.result(20) == {"ok": False, "errors": [{"message": why}]}


def test_another_router_id_and_a_new_group_at_once(ground: Field):
    """Active under a new router id it is in a new sync group as well, and takes the new member along."""
    (alone,) = entries([X])
    together = tuple(replace(each, sync_group="both") for each in entries([X], [Y]))
    with VrrpNode(ground.one, alone) as one:
        one.wait_for("active", "a")
        with AddressMonitor(ground.one) as monitor:
            one.reload(replace(together[0], router_id=9), together[1])
            one.wait_for("active", "b")
            assert one.transitions("a") == ["active"]
            assert monitor.went(bare(X)) == 0


def test_a_virtual_mac_outlives_another_version(ground: Field):
    """A virtual MAC belongs to the router id: another version leaves it and its addresses in place."""
    before = router(virtual_mac=True, version=2, advert=1.0, priority=254, listen=0.1)
    with VrrpNode(ground.one, before) as one:
        one.wait_for("active")
        with AddressMonitor(ground.one) as monitor:
            one.reload(replace(before, version=3))
            ground.wait_for_adverts(3, version=3)
            assert one.state() == "active"
            assert monitor.went(bare(before.addresses[0])) == 0


@pytest.mark.slow("real timers of several routers")
@pytest.mark.parametrize("first", ["active", "backup"])
@pytest.mark.parametrize("policy", ["warn", "wait", "refuse"])
def test_addresses_are_added_node_after_node(ground: Field, first: str, policy: str):
    """While the lists differ the two still hear each other: one is active, and the difference is told."""
    before = [router(priority=each, addresses=(X,), on_conflict=OnConflict(policy)) for each in (150, 100)]
    high, low = (replace(each, addresses=(X, Y)) for each in before)
    with pair(ground, *before) as (one, two):
        wait_until(lambda: two.status()["heard"], what="the active is heard")
        one.reload(high) if first == "active" else two.reload(low)
        wait_until(lambda: two.status()["conflicts"], what="the difference is told")
        assert two.status()["conflicts"][0]["kind"] == "addresses"
        ground.wait_for_adverts(8, source=ground.one.address)
        assert '"address-conflict"' in two.log()
        two.reload(low) if first == "active" else one.reload(high)
        wait_until(lambda: not two.status()["conflicts"], what="there is no difference any more")
        assert (one.transitions(), two.transitions()) == (["backup", "active"], ["backup"])
        assert ground.senders() == {ground.one.address}
        assert [ground.one.holds(each) for each in (X, Y)] == [True, True]


@pytest.mark.slow("real timers of several routers")
def test_many_are_added_beside_one_that_does_not_notice(ground: Field):
    """While reloads add 60 and remove them again on both nodes, one that did not change stays where it is."""
    judged(lambda: _add_and_remove_many(ground), longest=0.02)


def _add_and_remove_many(ground: Field) -> None:
    fast = {"advert": 0.01, "down_timer_adverts": 5}
    high, low = router(priority=150, **fast), router(priority=100, **fast)
    more = {
        priority: [
            router(f"r{each}", priority=priority, router_id=each, addresses=(f"192.0.2.{each}/24",), **fast)
            for each in range(130, 190)
        ]
        for priority in (150, 100)
    }
    with pair(ground, high, low) as (one, two), AddressMonitor(ground.one) as monitor:
        wait_until(lambda: two.status()["heard"], what="the active is heard")
        one.reload(high, *more[150])
        assert {each["name"] for each in one.ask("status")["routers"]} >= {each.name for each in more[150]}
        wait_until(
            lambda: {each["state"] for each in one.ask("status")["routers"]} == {"active"}, what="all hold"
        )
        two.reload(low, *more[100])
        wait_until(lambda: all(each["heard"] for each in two.ask("status")["routers"]), what="all are heard")
        one.reload(high)
        wait_until(lambda: one.ask("status")["leaving"] == [], what="they have left one")
        two.reload(low)
        wait_until(lambda: two.ask("status")["leaving"] == [], what="they have left the other one")
        assert (one.transitions(), two.transitions()) == (["backup", "active"], ["backup"])
        assert monitor.went(bare(high.addresses[0])) == 0
        assert [ground.one.holds(each) for each in (X, high.addresses[0])] == [False, True]


def test_a_reload_while_it_stops_is_refused(ground: Field):
    """One that leaves takes nothing new, and leaves no address behind when nobody takes over."""
    with VrrpNode(ground.one, router(hand_over=1.0)) as one:
        one.wait_for("active")
        one.terminate()
        wait_until(lambda: one.ask("status")["leaving"], what="it leaves")
        assert "stopping" in str(one.propose_and_commit(router(priority=160, hand_over=1.0)))
        assert one.exit_status() == 0
        assert ground.holders() == []
