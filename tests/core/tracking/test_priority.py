"""The effective priority: keepalived's weights, one by one and together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.vrrp.tracks import track

from appliance.core.tracking.priority import (
    MissingVerdict,
    Priority,
    TrackResult,
    effective_priority,
)
from appliance.model.snapshot.virtual_router import TrackKind
from appliance.wire.lines.vrrp_status import PriorityPartStatus

pytestmark = pytest.mark.pure


@pytest.mark.parametrize(
    ("weight", "up", "value"),
    [(20, True, 120), (20, False, 100), (-20, True, 100), (-20, False, 80), (0, True, 100), (0, False, 100)],
)
def test_weight_counts_while_up_or_down(*, weight: int, up: bool, value: int):
    """A positive weight is added while the track is up, a negative one while it is down."""
    priority = effective_priority(100, [track(weight=weight)], {"web": TrackResult(up=up)})
    assert (priority.value, priority.fault) == (value, ())


def test_without_weight_down_is_fault():
    """A track without weight leaves the priority alone, and means fault while it is down."""
    tracks = [track("web"), track("disk")]
    priority = effective_priority(100, tracks, {"web": TrackResult(up=False), "disk": TrackResult(up=True)})
    assert (priority.value, priority.fault) == (100, ("web",))


def test_without_verdict_adds_nothing_and_means_fault():
    """Before the first verdict a weight adds nothing, and a track without weight means fault."""
    tracks = [track("web"), track("disk", weight=10), track("link", weight=-10)]
    priority = effective_priority(100, tracks, {})
    assert (priority.value, priority.fault) == (100, ("web",))


def test_added_by_a_reload_passes_without_verdict():
    """A router that is active does not stop for a track that has no verdict yet."""
    assert effective_priority(100, [track("web")], {}, missing_means=MissingVerdict.PASS).fault == ()


def test_number_of_a_file_is_multiplied():
    """The number in a file times the weight is added, whatever the sign of either."""
    file = track("load", kind=TrackKind.FILE, weight=-2)
    assert effective_priority(100, [file], {"load": TrackResult(up=True, value=15)}).value == 70
    assert effective_priority(100, [file], {"load": TrackResult(up=True, value=-15)}).value == 130


@pytest.mark.parametrize(("number", "fault"), [(-253, ()), (-254, ("load",))])
def test_file_that_asks_for_too_little_is_fault(number: int, fault: tuple[str, ...]):
    """A file's product below -253 means fault."""
    file = track("load", kind=TrackKind.FILE, weight=1)
    assert effective_priority(100, [file], {"load": TrackResult(up=True, value=number)}).fault == fault


def test_owner_keeps_its_priority():
    """Priority 255 stays 255."""
    assert effective_priority(255, [track(weight=-100)], {"web": TrackResult(up=False)}).value == 255


def test_has_what_each_track_adds():
    """Status shows the sum with its parts."""
    tracks = [track("web", weight=-20), track("disk")]
    results = {"web": TrackResult(up=False, detail="exit 1")}
    assert effective_priority(100, tracks, results) == Priority(
        value=80,
        base=100,
        parts=(
            PriorityPartStatus(track="web", weight=-20, up=False, value=0, added=-20, detail="exit 1"),
            PriorityPartStatus(track="disk", weight=None, up=None, value=0, added=0, detail=""),
        ),
        fault=("disk",),
    )


@given(st.integers(1, 254), st.lists(st.tuples(st.integers(-253, 253), st.booleans()), max_size=6))
def test_stays_within_what_can_be_elected(base: int, states: list[tuple[int, bool]]):
    """Whatever is tracked, the priority of a router that is no owner is one of 1 to 254."""
    tracks = [track(str(index), weight=weight) for index, (weight, _) in enumerate(states)]
    results = {str(index): TrackResult(up=up) for index, (_, up) in enumerate(states)}
    assert 1 <= effective_priority(base, tracks, results).value <= 254
