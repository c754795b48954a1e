"""One group of instances on a simulated machine: what is done to it, in which order, and what is told."""

from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import THEIR_MAC, Machine, advert, port_of
from support.vrrp.tracks import track

from appliance.core.tracking.priority import TrackResult
from appliance.core.vrrp.election import RouterState
from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import OnConflict
from appliance.vrrp.addresses.address_holder import MOST_RESTORED
from appliance.vrrp.groups.router_group import RouterGroup
from appliance.vrrp.instance.faults import FaultReason
from appliance.vrrp.sockets.advert_receiver import DroppedAdvert
from appliance.wire.ethernet import arp

pytestmark = pytest.mark.pure

API = virtual_router("api", announce=replace(virtual_router().announce, repeat=1, delay=0.0))
INGRESS = replace(API, name="ingress", router_id=52, addresses=("192.0.2.201/24",))
ADDRESS = (2, "192.0.2.200/24")
CLAIMED = 5.0  # seconds by which nobody but us is active


def active(machine: Machine, *routers: object, left: list[RouterGroup] | None = None) -> RouterGroup:
    """Return a group that has become active."""
    group = machine.group(*(routers or (API,)), left=left)
    machine.loop.run(CLAIMED)
    assert group.state is RouterState.ACTIVE
    return group


def test_an_only_router_becomes_active():
    """It listens, takes the addresses, advertises and announces; then it is told, when all is done."""
    machine = Machine()
    group = machine.group(API)
    instance = group.instances["api"]
    assert (group.state, machine.addresses.present) == (RouterState.BACKUP, set())
    machine.loop.run(CLAIMED)
    assert machine.addresses.present == {ADDRESS}
    assert port_of(instance).sent[0] == 100
    assert port_of(instance).frames.sent[0] == b"192.0.2.200/24"
    assert machine.observer.told == [
        ("api", RouterState.BACKUP, False),
        ("api", RouterState.ACTIVE, True),
    ]
    assert (instance.counters.state, instance.counters.gratuitous_sent > 0) == (RouterState.ACTIVE, True)


def test_a_better_router_takes_over():
    """Its advert, read from the socket, has the addresses removed and nothing asked for any more."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    assert machine.environment.asking.deadline is not None
    port_of(instance).arriving.append(advert(200))
    group.receive("api", 6.0)
    assert (group.state, machine.addresses.present) == (RouterState.BACKUP, set())
    assert (instance.holder.held, machine.environment.asking.deadline) == (False, None)
    assert group.deadline == group.sync.deadline


def test_the_deadline_follows_every_event():
    """It is computed when an event ends: nobody has to ask for it anew."""
    machine = Machine()
    group = machine.group(API)
    before, changes = group.deadline, group.changes
    port_of(group.instances["api"]).arriving.append(advert(200))
    group.receive("api", 2.0)
    assert before is not None
    assert group.deadline is not None
    assert group.deadline > before
    assert group.changes > changes


def test_an_interface_that_goes_down_is_a_fault():
    """The peers are told and the addresses removed; when it is up again it takes part again."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    group.update_link(instance, machine.set_link(up=False), 6.0)
    assert instance.faults.messages == ("interface eth0 is down or has no carrier",)
    assert (group.state, machine.addresses.present, port_of(instance).sent[-1]) == (
        RouterState.FAULT,
        set(),
        0,
    )
    group.update_link(instance, machine.set_link(), 7.0)
    assert (group.state, instance.faults.messages) == (RouterState.BACKUP, ())


def test_an_interface_that_is_made_again_gets_new_sockets():
    """A socket belongs to an interface by its index: the old ones would send nothing."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    old = port_of(instance)
    group.update_link(instance, None, 6.0)
    assert (old.closed, instance.faults.messages) == (True, ("interface eth0 does not exist",))
    group.update_link(instance, machine.set_link(index=7), 7.0)
    assert port_of(instance) is not old
    machine.loop.run(14.0)
    assert machine.addresses.present == {(7, "192.0.2.200/24")}


def test_an_interface_without_an_address_cannot_speak():
    """Adverts need a source; with one it takes part."""
    machine = Machine()
    machine.set_link(own=(), addresses=())
    group = machine.group(API)
    instance = group.instances["api"]
    assert (group.state, instance.faults.messages) == (
        RouterState.FAULT,
        ("eth0 has no IPv4 address of its own",),
    )
    group.update_link(instance, machine.set_link(), 1.0)
    assert (group.state, instance.port.source) == (RouterState.BACKUP, "192.0.2.1")


def test_sockets_that_the_kernel_refuses_are_tried_again():
    """The fault says why, and it goes when the next try works, a second later."""
    machine = Machine(refuse_ports=OSError(1, "Operation not permitted"))
    group = machine.group(API)
    instance = group.instances["api"]
    assert instance.faults.messages == ("cannot send from 192.0.2.1 on eth0: Operation not permitted",)
    machine.refuse_ports = None
    machine.loop.run(0.9)
    assert group.state is RouterState.FAULT
    machine.loop.run(1.0)
    assert (group.state, FaultReason.SOCKET in instance.faults) == (RouterState.BACKUP, False)


def test_addresses_that_the_kernel_refuses_are_a_fault():
    """What was added is removed again, the peers serve, and a second later it is tried again."""
    machine = Machine()
    machine.addresses.refused = {"192.0.2.200/24": "No buffer space available"}
    group = machine.group(API)
    machine.loop.run(CLAIMED)
    assert machine.observer.states("api")[:2] == [RouterState.BACKUP, RouterState.FAULT]
    machine.addresses.refused = {}
    machine.loop.run(20.0)
    assert (group.state, machine.addresses.present) == (RouterState.ACTIVE, {ADDRESS})


def test_a_bug_is_a_fault_of_one_group():
    """The peers are told, the other group goes on, and a second later the group tries again."""
    machine = Machine()
    first, second = active(machine), active(machine, INGRESS)
    instance = first.instances["api"]
    port_of(instance).error = ZeroDivisionError("divided")
    first.receive("api", 6.0)
    assert instance.faults.messages == ("ZeroDivisionError: divided",)
    assert ("api", "crashed", "divided") in machine.observer.told
    assert (first.state, first.deadline, second.state) == (RouterState.FAULT, 7.0, RouterState.ACTIVE)
    assert machine.addresses.present == {(2, "192.0.2.201/24")}
    port_of(instance).error = None
    machine.loop.run(7.0)
    assert (first.state, instance.faults.messages) == (RouterState.BACKUP, ())


def test_a_bug_while_opening_is_a_fault():
    """Its group begins all the same, and takes part when it tries again."""
    machine = Machine()
    group = machine.group(API)
    group.fail(ZeroDivisionError("divided"), 0.5)
    assert group.state is RouterState.FAULT
    machine.loop.run(1.5)
    assert group.state is RouterState.BACKUP


def test_a_sync_group_has_one_state():
    """Its instances claim together, and a fault of one is the fault of all."""
    machine = Machine()
    group = active(machine, API, INGRESS)
    assert machine.addresses.present == {ADDRESS, (2, "192.0.2.201/24")}
    machine.addresses.refused = {"192.0.2.201/24": "Permission denied"}
    instance = group.instances["ingress"]
    instance.faults.add(FaultReason.CONFLICT, "conflict")
    group.update_priority(instance, 6.0)
    assert (group.state, machine.addresses.present) == (RouterState.FAULT, set())
    assert machine.observer.states("api")[-1] is machine.observer.states("ingress")[-1] is RouterState.FAULT


def test_a_stop_releases_when_a_successor_is_heard():
    """Make before break: the addresses stay until then, and the end is told once."""
    machine, left = Machine(), list[RouterGroup]()
    group = active(machine, left=left)
    instance = group.instances["api"]
    group.stop(6.0)
    assert (port_of(instance).sent[-1], machine.addresses.present) == (0, {ADDRESS})
    assert group.prompt() is False
    port_of(instance).arriving.append(advert(90))
    group.receive("api", 6.2)
    machine.loop.run(7.0)
    assert (machine.addresses.present, left) == (set(), [group])


def test_while_leaving_nothing_is_announced():
    """The successor may have announced itself: what waits for the interface is given up."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    port_of(instance).frames.full = True
    instance.announcer.announce(2, 6.0)
    assert port_of(instance).announcing.deadline is not None
    group.stop(6.0)
    port_of(instance).frames.full = False
    sent = len(port_of(instance).frames.sent)
    machine.loop.run(6.5)
    assert (port_of(instance).announcing.deadline, len(port_of(instance).frames.sent)) == (None, sent)


def test_what_the_interface_cannot_take_is_sent_later():
    """A full queue is no error: the rest of an announcement goes when there is room."""
    machine = Machine()
    group = active(machine)
    port = port_of(group.instances["api"])
    port.frames.full = True
    group.announce_again("api", 6.0)
    sent = len(port.frames.sent)
    port.frames.full = False
    machine.loop.run(6.05)
    assert len(port.frames.sent) > sent


def test_a_move_that_nobody_takes_ends_here():
    """When nobody took over in time it advertises again, and who asked is told."""
    machine = Machine()
    group = active(machine)
    group.move(6.0)
    machine.loop.run(10.0)
    assert ("api", "handed-over", None) in machine.observer.told
    assert (group.state, machine.addresses.present) == (RouterState.ACTIVE, {ADDRESS})


def test_a_move_is_not_taken_back_until_it_is_reclaimed():
    """The successor keeps the addresses, however good this router is, until an operator says otherwise."""
    machine = Machine()
    group = active(machine, replace(API, priority=200))
    instance = group.instances["api"]
    group.move(6.0)
    port_of(instance).arriving.append(advert(90))
    group.receive("api", 6.2)
    machine.loop.run(6.5)
    assert (group.state, instance.election.yielded) == (RouterState.BACKUP, True)
    group.reclaim(6.6)
    port_of(instance).arriving.append(advert(90))
    group.receive("api", 7.2)
    machine.loop.run(8.5)
    assert group.state is RouterState.ACTIVE


def test_addresses_that_somebody_removes_are_put_back():
    """At once, and announced; again and again it waits, as two programs may fight for them."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    machine.addresses.present.clear()
    assert group.restore(instance, 1, 6.0) is True
    assert machine.addresses.present == {ADDRESS}
    outcomes = [group.restore(instance, 1, 6.1) for _ in range(MOST_RESTORED)]
    assert (outcomes[0], outcomes[-1]) == (True, False)
    machine.addresses.present.clear()
    machine.loop.run(7.1)
    assert machine.addresses.present == {ADDRESS}
    assert instance.counters.restored == MOST_RESTORED + 1


def test_a_packet_that_cannot_be_sent_is_counted():
    """The first of each kind is logged; the election goes on."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    port_of(instance).error = OSError(100, "Network is down")
    machine.loop.run(8.5)
    assert (group.state, instance.counters.send_errors) == (RouterState.ACTIVE, 3)
    assert machine.log.fields("socket-error") == [
        {"router": "api", "doing": "send", "reason": "Network is down"}
    ]


def test_a_late_wake_up_is_told():
    """Also when an advert that was read first has moved the deadline."""
    machine = Machine()
    group = active(machine)
    due = group.sync.deadline
    assert due is not None
    group.tick(due + 0.4)
    assert machine.observer.told[-1] == ("api", "late", 0.4)


def test_a_claim_waits_for_what_is_tracked():
    """Without a result it is put off for a bounded time; then it claims, and the log says what is missing."""
    machine = Machine()
    group = machine.group(replace(API, track=(track("web"),)))
    machine.loop.run(CLAIMED)
    assert group.state is RouterState.BACKUP
    machine.loop.run(12.0)
    assert group.state is RouterState.ACTIVE
    assert machine.log.fields("track-silent") == [{"router": "api", "tracks": ["web"], "counts_as": "passed"}]


def test_a_track_that_is_down_is_a_fault():
    """A track without weight keeps it from taking part, with its own words, until it is up."""
    machine = Machine()
    group = machine.group(replace(API, track=(track("web"),)))
    instance = group.instances["api"]
    instance.tracked.results["web"] = TrackResult(up=False, detail="exit status 1")
    group.update_priority(instance, 1.0)
    assert (group.state, instance.faults.messages) == (RouterState.FAULT, ("track web: exit status 1",))
    instance.tracked.results["web"] = TrackResult(up=True)
    group.update_priority(instance, 2.0)
    assert (group.state, instance.faults.messages) == (RouterState.BACKUP, ())


def test_a_weight_changes_the_priority():
    """An active says its new priority at once."""
    machine = Machine()
    group = machine.group(replace(API, track=(track("web", weight=-20),)))
    machine.loop.run(12.0)
    assert group.state is RouterState.ACTIVE
    instance = group.instances["api"]
    instance.tracked.results["web"] = TrackResult(up=False)
    group.update_priority(instance, 12.0)
    assert port_of(instance).sent[-1] == 80


def test_another_user_of_the_address_keeps_it_from_claiming():
    """With `on_conflict: refuse` an answer to a probe is a fault; the probe claims nothing."""
    machine = Machine()
    group = machine.group(replace(API, on_conflict=OnConflict.REFUSE))
    (claims,) = machine.claims
    machine.loop.run(2.5)
    assert arp.decode(claims.sent[0]).sender == "0.0.0.0"
    claims.arriving.append(arp.gratuitous(THEIR_MAC, "192.0.2.200", form=arp.GratuitousForm.REPLY))
    machine.loop.readers[claims.fileno()]()
    assert group.state is RouterState.FAULT
    (message,) = group.instances["api"].faults.messages
    assert message.startswith("conflict: address-in-use of 02:00:00:00:00:02")
    assert machine.log.fields("address-conflict")[0]["kind"] == "address-in-use"


def test_an_advert_that_is_dropped_is_logged_once():
    """Each reason once for each sender, and it is a conflict, as nobody obeys the other."""
    machine = Machine()
    group = machine.group(API)
    dropped = DroppedAdvert(reason=DropReason.ADDRESS_LIST, peer="192.0.2.9", advertisement=None)
    port_of(group.instances["api"]).arriving += [dropped, dropped]
    group.receive("api", 1.0)
    assert len(machine.log.fields("drop")) == 1
    assert [each["kind"] for each in machine.log.fields("address-conflict")] == ["addresses"]
    assert group.instances["api"].counters.drops[DropReason.ADDRESS_LIST] == 2


def test_other_parameters_take_effect_at_once():
    """An active adds its new addresses; those that it has no longer go when the reload is done."""
    machine = Machine()
    group = active(machine)
    instance = group.instances["api"]
    group.reconfigure(instance, replace(API, addresses=("192.0.2.210/24",), advert=2.0), 6.0)
    assert machine.addresses.present == {ADDRESS, (2, "192.0.2.210/24")}
    assert instance.election.settings.advert == 2.0
    instance.holder.remove_surplus()
    assert machine.addresses.present == {(2, "192.0.2.210/24")}


def test_an_address_that_another_one_holds_stays():
    """What two routers have on one interface is removed by the last one."""
    machine = Machine()
    first = active(machine)
    second = active(machine, replace(INGRESS, addresses=(*API.addresses, *INGRESS.addresses)))
    instance = first.instances["api"]
    first.update_link(instance, machine.set_link(up=False), 6.0)
    assert ADDRESS in machine.addresses.present
    second.update_link(second.instances["ingress"], machine.set_link(up=False), 7.0)
    assert machine.addresses.present == set()


def test_an_earlier_run_is_resumed():
    """It goes on as active at once, without listening first."""
    machine = Machine()
    instance = machine.instance(API, 0.0)
    group = RouterGroup([instance], machine.observer, now=0.0, on_left=lambda _: None)
    group.resume(0.0)
    assert (group.state, port_of(instance).sent, machine.addresses.present) == (
        RouterState.ACTIVE,
        [100],
        {ADDRESS},
    )


def test_foreign_addresses_are_told():
    """An address of ours that somebody has put on this machine is a conflict, once."""
    machine = Machine()
    machine.links.foreign = {"192.0.2.200": (("eth0", "192.0.2.200/24"),)}
    group = machine.group(API)
    group.instances["api"].find_foreign_addresses(1.0)
    (found,) = machine.log.fields("address-conflict")
    assert (found["kind"], found["peer"]) == ("address-foreign", "eth0")


ELSEWHERE = replace(
    API, addresses=("192.0.2.200/24", "198.51.100.7/24"), elsewhere=(("198.51.100.7/24", "eth1"),)
)
THERE = (3, "198.51.100.7/24")


def two_legged(**changes: object) -> Machine:
    """Return a machine with a second interface, of index 3."""
    machine = Machine()
    machine.set_link("eth1", **{"index": 3, "own": ("198.51.100.1/24",), "addresses": (), **changes})
    return machine


def test_an_address_on_another_interface_moves_with_the_others():
    """There is one election: its addresses come and go on both interfaces."""
    machine = two_legged()
    group = active(machine, ELSEWHERE)
    instance = group.instances["api"]
    assert machine.addresses.present == {ADDRESS, THERE}
    assert instance.holder.addresses == (("eth0", "192.0.2.200/24"), ("eth1", "198.51.100.7/24"))
    assert [each.addresses for each in machine.claims] == [("192.0.2.200",)]
    port_of(instance).arriving.append(advert(200))
    group.receive("api", 6.0)
    assert (machine.addresses.present, instance.holder.addresses) == (set(), ())


def test_a_router_with_all_addresses_on_another_interface():
    """Nothing is asked for on its own one, and its adverts name them all the same."""
    machine = two_legged()
    group = active(machine, replace(ELSEWHERE, addresses=("198.51.100.7/24",)))
    assert (machine.addresses.present, machine.claims) == ({THERE}, [])
    assert group.instances["api"].router.advertised == ("198.51.100.7/24",)


@pytest.mark.parametrize("state", [{"up": False}, None])
def test_another_interface_that_goes_down_is_a_fault(state: dict[str, object] | None):
    """Who cannot hold one of its addresses holds none; it takes part again when the interface is back."""
    machine = two_legged()
    group = active(machine, ELSEWHERE)
    instance = group.instances["api"]
    link = machine.links.state("eth0")
    assert not instance.concerns(link)
    if state is None:
        del machine.links.links["eth1"]
    else:
        machine.set_link("eth1", index=3, **state)
    assert instance.concerns(link)
    group.update_link(instance, link, 6.0)
    assert (group.state, ADDRESS in machine.addresses.present) == (RouterState.FAULT, False)
    assert instance.faults.messages == ("interface eth1 does not exist, is down or has no carrier",)
    machine.set_link("eth1", index=9)
    group.update_link(instance, link, 7.0)
    assert instance.faults.messages == ()
    machine.loop.run(14.0)
    assert machine.addresses.present >= {ADDRESS, (9, "198.51.100.7/24")}


def test_an_address_for_an_interface_that_is_gone_cannot_be_taken():
    """It says so, and is tried again: netlink may tell of the interface a moment later."""
    machine = two_legged()
    group = active(machine, ELSEWHERE)
    instance = group.instances["api"]
    del machine.links.links["eth1"]
    group.reconfigure(instance, replace(ELSEWHERE, addresses=(*ELSEWHERE.addresses, "192.0.2.9/24")), 6.0)
    assert "the addresses cannot be added: eth1: the interface does not exist" in instance.faults.messages


def test_an_address_that_a_reload_puts_on_another_interface():
    """It is taken there at once, and goes here when the reload is done."""
    machine = two_legged()
    group = active(machine, replace(ELSEWHERE, elsewhere=()))
    instance = group.instances["api"]
    group.reconfigure(instance, ELSEWHERE, 6.0)
    assert machine.addresses.present == {ADDRESS, THERE, (2, "198.51.100.7/24")}
    instance.holder.remove_surplus()
    assert machine.addresses.present == {ADDRESS, THERE}
    group.reconfigure(instance, API, 7.0)
    instance.holder.remove_surplus()
    assert machine.addresses.present == {ADDRESS}


def test_the_network_of_another_interface_decides_its_route():
    """When the interface gets an address of that network, the requests are built anew."""
    machine = two_legged(own=())
    group = machine.group(ELSEWHERE)
    instance = group.instances["api"]
    before = len(machine.addresses.prepared)
    machine.set_link("eth1", index=3, own=("198.51.100.1/24",), addresses=())
    group.update_link(instance, machine.links.state("eth0"), 1.0)
    machine.loop.run(1.0)
    assert machine.addresses.prepared[before:] == [("192.0.2.200/24",), ("198.51.100.7/24",)]


def test_an_election_about_no_address():
    """It is held for those who are told of it: nothing is asked for, taken or announced."""
    machine = Machine()
    group = active(machine, replace(API, addresses=()))
    instance = group.instances["api"]
    assert (machine.addresses.present, machine.claims, port_of(instance).frames.sent) == (set(), [], [])
    assert machine.observer.states("api")[-1] is RouterState.ACTIVE
    port_of(instance).arriving.append(advert(200))
    group.receive("api", 6.0)
    assert group.state is RouterState.BACKUP
