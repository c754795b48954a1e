"""The priority of an instance by what it tracks."""

from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.values.tracks import track

from appliance.core.tracking.priority import TrackResult
from appliance.model.snapshot.virtual_router import TrackKind
from appliance.vrrp.instance.tracked_priority import TrackedPriority

pytestmark = pytest.mark.pure

ROUTER = replace(
    virtual_router(),
    track=(track("web"), track("disk", weight=-30), track("eth1", kind=TrackKind.INTERFACE)),
)


def test_results_change_the_priority_when_it_is_computed():
    """A track that is down subtracts its weight; those without a result add nothing."""
    tracked = TrackedPriority(ROUTER)
    assert (tracked.priority.value, [each.name for each in tracked.missing]) == (100, ["web", "disk", "eth1"])
    tracked.results["disk"] = TrackResult(up=False)
    assert tracked.priority.value == 100
    tracked.update()
    assert tracked.priority.value == 70


def test_all_results_end_the_wait():
    """Only where something was waited for."""
    tracked = TrackedPriority(ROUTER)
    assert tracked.all_arrived is False
    tracked.first_verdicts.wait_for(tracked.missing, 0.0)
    assert tracked.all_arrived is False
    tracked.results |= {each.name: TrackResult(up=True) for each in ROUTER.track}
    assert tracked.all_arrived is True


def test_faults_say_why():
    """With the words of the result, with `down` where it has none, and without a result."""
    tracked = TrackedPriority(ROUTER)
    tracked.first_verdicts.wait_for(tracked.missing, 0.0)
    tracked.first_verdicts.time_out(60.0, other_active_until=70.0)
    assert tracked.counts_missing_as == "down"
    tracked.results["eth1"] = TrackResult(up=False)
    tracked.update()
    assert tracked.fault_messages == {"web": "track web: no result yet", "eth1": "track eth1: down"}
    tracked.results["web"] = TrackResult(up=False, detail="exit status 1")
    tracked.update()
    assert tracked.fault_messages["web"] == "track web: exit status 1"


def test_an_earlier_run_is_believed_but_for_interfaces():
    """Of those netlink tells anew; what is not tracked any more is forgotten."""
    tracked = TrackedPriority(ROUTER)
    tracked.resume({name: TrackResult(up=True) for name in ("web", "eth1", "gone")})
    assert set(tracked.results) == {"web"}
    assert tracked.counts_missing_as == "passed"
