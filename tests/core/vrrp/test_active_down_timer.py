"""A Backup's wait, with literal times."""

import pytest

from appliance.core.vrrp.active_down_timer import ActiveDownTimer, ClaimHold
from appliance.core.vrrp.election import Cause

pytestmark = pytest.mark.pure


def waiting(until: float = 10.0) -> ActiveDownTimer:
    """Return a wait for a silent active."""
    wait = ActiveDownTimer()
    wait.begin(until, Cause.ACTIVE_DOWN)
    return wait


def test_begins_anew():
    """A new wait replaces the old one, with its reason."""
    wait = waiting()
    wait.begin(5.0, Cause.ACTIVE_LEFT)
    assert (wait.deadline, wait.why) == (5.0, Cause.ACTIVE_LEFT)


def test_hastens_only():
    """A wait that is over sooner stays as long as it is, and ends for the new reason."""
    wait = waiting()
    wait.hasten(11.0, Cause.PREEMPTED)
    assert (wait.deadline, wait.why) == (10.0, Cause.PREEMPTED)
    wait.hasten(9.0, Cause.PREEMPTED)
    assert (wait.deadline, wait.why) == (9.0, Cause.PREEMPTED)


def test_listening_is_over_before_preemption_but_not_before_succession():
    """Addresses that an active has given up need no listening."""
    wait = ActiveDownTimer()
    wait.listen(20.0)
    wait.hasten(5.0, Cause.PREEMPTED)
    assert wait.deadline == 20.0
    wait.replace(5.0)
    assert wait.deadline == 20.0
    wait.begin(5.0, Cause.ACTIVE_LEFT)
    assert wait.deadline == 5.0


def test_nothing_is_claimed_while_held():
    """A hold is longer than every wait, until it is taken back."""
    wait = waiting()
    wait.hold(20.0, ClaimHold.CONFLICT)
    wait.begin(12.0, Cause.ACTIVE_LEFT)
    wait.replace(13.0)
    assert wait.deadline == 20.0
    wait.hold(0.0, ClaimHold.CONFLICT)
    wait.begin(12.0, Cause.ACTIVE_LEFT)
    assert wait.deadline == 12.0


def test_holds_end_each_for_itself():
    """What is held for two reasons goes on when both are over, at the time that it had without them."""
    wait = waiting()
    wait.hold(20.0, ClaimHold.CONFLICT)
    wait.hold(30.0, ClaimHold.TRACKS)
    assert wait.deadline == 30.0
    wait.hold(0.0, ClaimHold.TRACKS)
    assert wait.deadline == 20.0
    wait.hold(0.0, ClaimHold.CONFLICT)
    assert wait.deadline == 10.0


def test_what_is_hastened_while_held_has_its_reason():
    """Preemption that is put off is preemption still."""
    wait = waiting()
    wait.hold(20.0, ClaimHold.TRACKS)
    wait.hasten(5.0, Cause.PREEMPTED)
    wait.hold(0.0, ClaimHold.TRACKS)
    assert (wait.deadline, wait.why) == (5.0, Cause.PREEMPTED)


def test_lateness_is_excused_once():
    """A wait that ended while the process could not run goes on for one interval, and then it is over."""
    wait = waiting()
    assert not wait.excuses(10.5, late=0.5, interval=1.0)
    assert wait.excuses(12.0, late=2.0, interval=1.0)
    assert wait.deadline == 13.0
    assert not wait.excuses(20.0, late=7.0, interval=1.0)
