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


def waiting(until: float = 10.0) -> ActiveDownTimer:
    """Return a wait for a silent active."""
    timer = ActiveDownTimer()
    timer.start(until, Cause.ACTIVE_DOWN)
    return timer


def test_begins_anew():
    """A new wait replaces the old one, with its reason."""
    timer = waiting()
    timer.start(5.0, Cause.ACTIVE_LEFT)
    assert (timer.deadline, timer.cause) == (5.0, Cause.ACTIVE_LEFT)


def test_hastens_only():
    """A wait that is over sooner stays as long as it is, and ends for the new reason."""
    timer = waiting()
    timer.shorten(11.0, Cause.PREEMPTED)
    assert (timer.deadline, timer.cause) == (10.0, Cause.PREEMPTED)
    timer.shorten(9.0, Cause.PREEMPTED)
    assert (timer.deadline, timer.cause) == (9.0, Cause.PREEMPTED)


def test_listening_is_over_before_preemption_but_not_before_succession():
    """Addresses that an active has given up need no listening."""
    timer = ActiveDownTimer()
    timer.listen(20.0)
    timer.shorten(5.0, Cause.PREEMPTED)
    assert timer.deadline == 20.0
    timer.restart(5.0)
    assert timer.deadline == 20.0
    timer.start(5.0, Cause.ACTIVE_LEFT)
    assert timer.deadline == 5.0


def test_nothing_is_claimed_while_held():
    """A hold is longer than every wait, until it is taken back."""
    timer = waiting()
    timer.hold(20.0, ClaimHold.CONFLICT)
    timer.start(12.0, Cause.ACTIVE_LEFT)
    timer.restart(13.0)
    assert timer.deadline == 20.0
    timer.hold(0.0, ClaimHold.CONFLICT)
    timer.start(12.0, Cause.ACTIVE_LEFT)
    assert timer.deadline == 12.0


def test_holds_end_each_for_itself():
    """What is held for two reasons goes on when both are over, at the time that it had without them."""
    timer = waiting()
    timer.hold(20.0, ClaimHold.CONFLICT)
    timer.hold(30.0, ClaimHold.TRACKS)
    assert timer.deadline == 30.0
    timer.hold(0.0, ClaimHold.TRACKS)
    assert timer.deadline == 20.0
    timer.hold(0.0, ClaimHold.CONFLICT)
    assert timer.deadline == 10.0


def test_what_is_hastened_while_held_has_its_reason():
    """Preemption that is put off is preemption still."""
    timer = waiting()
    timer.hold(20.0, ClaimHold.TRACKS)
    timer.shorten(5.0, Cause.PREEMPTED)
    timer.hold(0.0, ClaimHold.TRACKS)
    assert (timer.deadline, timer.cause) == (5.0, Cause.PREEMPTED)


def test_lateness_is_excused_once():
    """A wait that ended while the process could not run goes on for one interval, and then it is over."""
    timer = waiting()
    assert not timer.postpones(10.5, late=0.5, interval=1.0)
    assert timer.postpones(12.0, late=2.0, interval=1.0)
    assert timer.deadline == 13.0
    assert not timer.postpones(20.0, late=7.0, interval=1.0)
