"""Missing verdicts of tracks, with literal times."""

import pytest
from support.vrrp.tracks import track

from appliance.core.tracking.first_verdicts import TRACKER_START, FirstVerdicts, FirstVerdictState
from appliance.core.tracking.priority import MissingVerdict

pytestmark = pytest.mark.pure


def asked() -> FirstVerdicts:
    """Return what waits since 10.0 for two tracks, the slower one with 3 s and 8 s."""
    verdicts = FirstVerdicts()
    verdicts.wait_for(
        [track("quick", interval=1.0, timeout=1.0), track("slow", interval=3.0, timeout=8.0)], 10.0
    )
    return verdicts


def test_waits_for_nothing_without_tracks():
    """A router that tracks nothing waits for nothing."""
    verdicts = FirstVerdicts()
    verdicts.wait_for([], 10.0)
    assert (verdicts.claim_held_until, verdicts.deadline, verdicts.state) == (
        0.0,
        None,
        FirstVerdictState.COMPLETE,
    )


def test_holds_for_interval_and_timeout():
    """A claim is delayed for the slowest interval and timeout, and is no fault meanwhile."""
    verdicts = asked()
    assert verdicts.claim_held_until == verdicts.deadline == 10.0 + TRACKER_START + 11.0
    assert verdicts.missing_means is MissingVerdict.PASS


def test_wait_ends_when_all_have_come():
    """The last verdict ends it."""
    verdicts = asked()
    verdicts.stop_waiting()
    assert (verdicts.claim_held_until, verdicts.deadline, verdicts.missing_means) == (
        0.0,
        None,
        MissingVerdict.PASS,
    )


def test_timed_out_beside_an_active_is_fault_until_that_one_is_gone():
    """A missing verdict means fault while another router is active."""
    verdicts = asked()
    verdicts.time_out(30.0, other_active_until=33.0)
    assert (verdicts.missing_means, verdicts.deadline, verdicts.claim_held_until) == (
        MissingVerdict.FAULT,
        33.0,
        0.0,
    )
    verdicts.time_out(33.0, other_active_until=33.0)
    assert (verdicts.missing_means, verdicts.deadline) == (MissingVerdict.PASS, None)
    assert verdicts.state is FirstVerdictState.TIMED_OUT


def test_timed_out_alone_passes():
    """Where no other active is heard, nobody would serve the addresses."""
    verdicts = asked()
    verdicts.time_out(30.0, other_active_until=float("-inf"))
    assert (verdicts.missing_means, verdicts.deadline, verdicts.claim_held_until) == (
        MissingVerdict.PASS,
        None,
        0.0,
    )
