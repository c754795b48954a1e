"""The priority of an instance by what it tracks."""

from dataclasses import replace

import pytest
from support.values.snapshots import virtual_router
from support.vrrp.elections import terms
from support.vrrp.simulated_vrrp import SimulatedLog
from support.vrrp.tracks import track

from appliance.core.tracking.priority import TrackResult
from appliance.core.vrrp.election import Election
from appliance.model.snapshot.virtual_router import TrackKind
from appliance.vrrp.instance.faults import Faults
from appliance.vrrp.instance.tracked_priority import TrackedPriority

pytestmark = pytest.mark.pure

ROUTER = replace(
    virtual_router(),
    track=(track("web"), track("disk", weight=-30), track("eth1", kind=TrackKind.INTERFACE)),
)


class Field:
    """A router that listens, and its tracks."""

    def __init__(self) -> None:
        self.election, self.faults, self.log = Election(terms()), Faults(), SimulatedLog()
        self.tracked = TrackedPriority(ROUTER, self.election, self.faults, self.log)
        self.election.start(0.0)


def test_results_change_the_priority_when_it_is_computed():
    """A track that is down subtracts its weight; those without a result add nothing."""
    tracked = Field().tracked
    assert (tracked.priority.value, [each.name for each in tracked.missing]) == (100, ["web", "disk", "eth1"])
    tracked.results["disk"] = TrackResult(up=False)
    assert tracked.priority.value == 100
    tracked.update()
    assert tracked.priority.value == 70


def test_all_results_end_the_wait():
    """A claim is held back until the last one has come."""
    field = Field()
    before = field.election.deadline
    field.tracked.wait(10.0)
    assert field.tracked.deadline == field.election.deadline != before
    field.tracked.results |= {each.name: TrackResult(up=True) for each in ROUTER.track}
    field.tracked.update()
    assert (field.tracked.deadline, field.election.deadline) == (None, before)


def test_the_wait_is_over_some_day():
    """Nothing happens before; then the log says once what is missing, and what that counts as."""
    field = Field()
    field.tracked.wait(10.0)
    at = field.tracked.deadline
    assert at is not None
    field.tracked.end_overdue_wait(at - 0.1)
    assert field.log.events == []
    field.tracked.end_overdue_wait(at)
    field.tracked.end_overdue_wait(at + 1)
    assert field.log.fields("track-silent") == [
        {"router": "api", "tracks": ["web", "disk", "eth1"], "counts_as": "passed"}
    ]


def test_faults_say_why():
    """With the words of the result, and with `down` where it has none."""
    field = Field()
    field.tracked.results |= {"eth1": TrackResult(up=False), "web": TrackResult(up=False, detail="status 1")}
    field.tracked.update()
    assert field.faults.messages == ("track web: status 1", "track eth1: down")


def test_an_earlier_run_is_believed_but_for_interfaces():
    """Of those netlink tells anew; what is not tracked any more is forgotten."""
    tracked = Field().tracked
    tracked.resume({name: TrackResult(up=True) for name in ("web", "eth1", "gone")})
    assert set(tracked.results) == {"web"}
