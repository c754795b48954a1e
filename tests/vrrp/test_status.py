"""What is said of an instance: in the status, on the board, and to a successor."""

from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.simulated_vrrp import Machine, advert, port_of
from support.vrrp.tracks import track

from appliance.core.tracking.priority import TrackResult
from appliance.model.drop_reasons import DropReason
from appliance.vrrp.groups.router_group import RouterGroup
from appliance.vrrp.sockets.advert_receiver import DroppedAdvert
from appliance.vrrp.status import board_record, router_status, takeover_state
from appliance.wire.lines.vrrp_takeover import KnownTrack

pytestmark = pytest.mark.pure

API = virtual_router(
    announce=replace(virtual_router().announce, repeat=1, delay=0.0), track=(track("web", weight=-20),)
)


def active() -> tuple[Machine, RouterGroup]:
    """Return a group that is active, with a track that is down, after an advert and a dropped one."""
    machine = Machine()
    group = machine.group(API)
    instance = group.instances["api"]
    instance.tracked.results["web"] = TrackResult(up=False, value=0, detail="status 1")
    group.update_priority(instance, 0.5)
    machine.loop.run(5.0)
    dropped = DroppedAdvert(reason=DropReason.VERSION, peer="192.0.2.9", advertisement=None)
    port_of(instance).arriving += [advert(60), dropped]
    group.receive("api", 5.5)
    return machine, group


def test_the_status_of_an_active():
    """It has what an operator asks for: why the priority is what it is, who was heard, what was dropped."""
    _, group = active()
    status = router_status(group, group.instances["api"], now=5.5)
    assert (status.state, status.held, status.priority, status.base) == ("active", True, 80, 100)
    assert [(each.track, each.added, each.detail) for each in status.parts] == [("web", -20, "status 1")]
    assert [(each.peer, each.state) for each in status.heard] == [("192.0.2.2", "active")]
    assert (status.drops, status.source) == ({"version": 1}, "192.0.2.1")
    assert [each.state for each in status.transitions] == ["backup", "active"]
    assert [(each.kind, each.peer) for each in status.conflicts] == [("version", "192.0.2.9")]
    assert status.counters["split_brains"] == 1
    assert status.timers.deadline_in is not None
    assert status.is_active


def test_who_was_heard_falls_silent_or_leaves():
    """After a down interval without an advert, or with the last word of priority 0."""
    _, group = active()
    instance = group.instances["api"]
    assert [each.state for each in router_status(group, instance, now=20.0).heard] == ["silent"]
    port_of(instance).arriving.append(advert(0))
    group.receive("api", 6.0)
    assert [each.state for each in router_status(group, instance, now=6.0).heard] == ["left"]


def test_the_board_has_the_last_advert():
    """The next run decides by it whether the peers have noticed anything."""
    _, group = active()
    record = board_record(group.instances["api"])
    assert (record.state, record.priority, record.peer) == ("active", 80, "")
    assert record.last_advert == pytest.approx(5.5, abs=1.0)
    assert record.drops == {DropReason.VERSION: 1}


def test_a_successor_learns_what_goes_on():
    """One that hands over is not to be resumed as active."""
    _, group = active()
    known = takeover_state(group.instances["api"])
    assert (known.active, known.yielded) == (True, False)
    assert known.tracks == (KnownTrack(name="web", up=False, value=0, detail="status 1"),)
    group.stop(6.0)
    assert takeover_state(group.instances["api"]).active is False
