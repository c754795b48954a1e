"""The times of both versions by the RFCs' formulas, and the wait of a Backup, with literal times."""

import pytest

from appliance.core.vrrp.election import Cause
from appliance.core.vrrp.timers import ActiveDownTimer, ClaimHold, active_down_interval, skew_time

pytestmark = pytest.mark.pure


def test_skew_of_version_3_is_a_part_of_the_interval():
    """RFC 9568 section 6.1: (256 - priority) * interval / 256."""
    assert skew_time(3, priority=192, interval=0.5) == 0.125


def test_skew_of_version_2_is_a_part_of_a_second():
    """RFC 3768 section 6.1: (256 - priority) / 256 seconds, whatever the interval."""
    assert skew_time(2, priority=192, interval=5.0) == 0.25


def test_down_interval_is_some_adverts_and_the_skew():
    """Three intervals and the skew time; keepalived lets the three be another number."""
    assert active_down_interval(3, priority=192, interval=1.0, adverts=3) == 3.25
    assert active_down_interval(2, priority=128, interval=2.0, adverts=2) == 4.5


def started(until: float = 10.0) -> ActiveDownTimer:
    """Return a timer that was started for a silent active."""
    timer = ActiveDownTimer()
    timer.start(until, Cause.ACTIVE_DOWN)
    return timer


def test_starts_anew():
    """A new start replaces deadline and cause."""
    timer = started()
    timer.start(5.0, Cause.ACTIVE_LEFT)
    assert (timer.deadline, timer.cause) == (5.0, Cause.ACTIVE_LEFT)


def test_shortens_only():
    """A deadline that is earlier stays, with the new cause."""
    timer = started()
    timer.shorten(11.0, Cause.PREEMPTED)
    assert (timer.deadline, timer.cause) == (10.0, Cause.PREEMPTED)
    timer.shorten(9.0, Cause.PREEMPTED)
    assert (timer.deadline, timer.cause) == (9.0, Cause.PREEMPTED)


def test_first_wait_delays_preemption_but_no_free_addresses():
    """After priority 0 nobody has the addresses, and the first wait is cut short."""
    timer = ActiveDownTimer()
    timer.listen(20.0)
    timer.shorten(5.0, Cause.PREEMPTED)
    assert timer.deadline == 20.0
    timer.restart(5.0)
    assert timer.deadline == 20.0
    timer.start(5.0, Cause.ACTIVE_LEFT)
    assert timer.deadline == 5.0


def test_nothing_is_claimed_while_held():
    """A hold delays every claim until it ends."""
    timer = started()
    timer.hold(20.0, ClaimHold.CONFLICT)
    timer.start(12.0, Cause.ACTIVE_LEFT)
    timer.restart(13.0)
    assert timer.deadline == 20.0
    timer.hold(0.0, ClaimHold.CONFLICT)
    timer.start(12.0, Cause.ACTIVE_LEFT)
    assert timer.deadline == 12.0


def test_each_hold_ends_by_itself():
    """When both holds are over, the deadline is the one without them."""
    timer = started()
    timer.hold(20.0, ClaimHold.CONFLICT)
    timer.hold(30.0, ClaimHold.TRACKS)
    assert timer.deadline == 30.0
    timer.hold(0.0, ClaimHold.TRACKS)
    assert timer.deadline == 20.0
    timer.hold(0.0, ClaimHold.CONFLICT)
    assert timer.deadline == 10.0


def test_what_is_shortened_while_held_keeps_its_cause():
    """Preemption that is delayed is still preemption."""
    timer = started()
    timer.hold(20.0, ClaimHold.TRACKS)
    timer.shorten(5.0, Cause.PREEMPTED)
    timer.hold(0.0, ClaimHold.TRACKS)
    assert (timer.deadline, timer.cause) == (5.0, Cause.PREEMPTED)


def test_late_wake_up_waits_once_more():
    """A deadline that passed while the process could not run is moved by one interval, once."""
    timer = started()
    assert not timer.postpones(10.5, late=0.5, interval=1.0)
    assert timer.postpones(12.0, late=2.0, interval=1.0)
    assert timer.deadline == 13.0
    assert not timer.postpones(20.0, late=7.0, interval=1.0)
