"""A server that was away gets its weight back in steps."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from support.health.server_health import CHECK, fallen, feed, record_of, settings_of

from appliance.core.checks.check_schedule import HealthSettings
from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.pools import CheckInit

pytestmark = pytest.mark.pure


def test_weight_ramps_after_a_failure():
    """A server that comes back starts with a twentieth and has its whole weight after slow_start."""
    health = fallen(slow_start=60.0)
    feed(health, "++", now=100.0, step=0.0)
    assert (health.verdict, health.weight) == (HealthVerdict.UP, 5.0)
    assert health.deadline == 103.0
    assert not health.tick(102.9)
    assert health.tick(103.0)
    assert health.weight == 10.0
    assert health.tick(130.0)
    assert health.weight == 55.0
    assert health.tick(160.0)
    assert health.weight == 100.0
    assert health.deadline == health.next_check
    assert not health.tick(1000.0)


def test_the_first_verdict_is_never_a_ramp():
    """At the start a healthy server has its whole weight: slowstart is for servers seen to fail."""
    health = ServerHealth(settings_of(slow_start=60.0), now=0.0)
    feed(health, "+")
    assert health.weight == 100.0
    presumed = ServerHealth(settings_of(replace(CHECK, init=CheckInit.DOWN), slow_start=60.0), now=0.0)
    assert feed(presumed, "+") == [HealthEvent.UP]
    assert presumed.weight == 100.0


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.floats(0.001, 3600.0),
    st.lists(st.floats(0.0, 400.0), max_size=40),
    st.integers(1, 256),
)
def test_the_ramp_is_monotone_and_bounded(slow_start: float, pauses: list[float], weight: int):
    """Whenever it is looked at, the weight is above 0, never shrinks, and is whole after slow_start."""
    health = ServerHealth(
        HealthSettings(check=CHECK, weight=weight, slow_start=slow_start, phase=1.0), now=0.0
    )
    feed(health, "-++", step=0.0)
    now, last = 0.0, 0.0
    for pause in pauses:
        now += pause
        health.tick(now)
        assert last <= health.weight <= weight
        assert health.weight > 0
        assert health.deadline is not None
        last = health.weight
    health.tick(slow_start * 1.001)
    assert health.weight == weight


def test_a_failure_during_the_ramp_ends_it():
    """Down again, the server shows its configured weight; up again, it begins from a twentieth."""
    health = fallen(slow_start=60.0)
    feed(health, "++", now=10.0, step=0.0)
    health.tick(40.0)
    assert feed(health, "---", now=41.0, step=0.0)[-1] is HealthEvent.DOWN
    assert health.weight == 100.0
    feed(health, "++", now=50.0, step=0.0)
    assert health.weight == 5.0


@pytest.mark.parametrize("init", CheckInit)
def test_weight_ramps_after_maint(init: CheckInit):
    """A server that comes back from maint gets its share over slow_start, from the first moment."""
    health = ServerHealth(settings_of(replace(CHECK, init=init), slow_start=60.0), now=0.0)
    feed(health, "+")
    health.set_admin(AdminState.MAINT, now=1.0)
    health.set_admin(AdminState.READY, now=600.0)
    feed(health, "+", now=600.0)
    assert (health.verdict, health.weight) == (HealthVerdict.UP, 5.0)
    health.tick(630.0)
    assert health.weight == 55.0
    health.tick(660.0)
    assert health.weight == 100.0


def test_an_unchecked_server_ramps_after_maint():
    """Without a check the ramp begins with the operator's word, and maint in the middle of it ends it."""
    health = ServerHealth(settings_of(None, slow_start=60.0), now=0.0)
    health.set_admin(AdminState.MAINT, now=1.0)
    assert health.set_admin(AdminState.READY, now=10.0) is HealthEvent.READY
    assert (health.verdict, health.weight, health.deadline) == (HealthVerdict.UP, 5.0, 13.0)
    health.set_admin(AdminState.MAINT, now=20.0)
    assert (health.weight, health.deadline) == (100.0, None)


def test_drain_is_no_reason_to_ramp():
    """A drained server has kept its sessions and comes back with its whole weight."""
    health = ServerHealth(settings_of(slow_start=60.0), now=0.0)
    feed(health, "+")
    health.set_admin(AdminState.DRAIN, now=1.0)
    health.set_admin(AdminState.READY, now=10.0)
    assert health.weight == 100.0


def test_slow_start_taken_away_ends_the_ramp():
    """Without slow_start a server has its weight at once; with another length it goes on in new steps."""
    health = fallen(slow_start=60.0)
    feed(health, "++", now=0.0, step=0.0)
    health.change_settings(settings_of(slow_start=20.0), now=1.0)
    assert health.weight == 5.0
    health.change_settings(settings_of(), now=1.0)
    assert (health.weight, health.deadline) == (100.0, health.next_check)


def test_a_ramp_goes_on_after_a_restart():
    """A server in the middle of slow_start goes on from the weight that the board shows."""
    before = fallen(slow_start=60.0)
    feed(before, "++", now=100.0, step=0.0)
    before.tick(130.0)
    after = ServerHealth(settings_of(slow_start=60.0), now=5.0)
    after.restore(record_of(before, now=131.0, wall=131.0), now=5.0, wall=131.0)
    assert after.weight == before.weight == 55.0
    after.tick(8.0)
    assert after.weight == 60.0


def test_the_ramp_of_an_unchecked_server_goes_on_after_a_restart():
    """What maint began without a check is on the board as well."""
    before = ServerHealth(settings_of(None, slow_start=60.0), now=0.0)
    before.set_admin(AdminState.MAINT, now=1.0)
    before.set_admin(AdminState.READY, now=10.0)
    after = ServerHealth(settings_of(None, slow_start=60.0), now=5.0)
    after.restore(record_of(before, now=12.0, wall=12.0), now=5.0, wall=12.0)
    assert (after.weight, after.deadline) == (5.0, 8.0)


@pytest.mark.parametrize(("weight", "expected"), [(0.1, 5.0), (99.9, 100.0)])
def test_a_restored_weight_is_a_step_of_the_ramp(weight: float, expected: float):
    """A weight from another configuration becomes the nearest step, at least the first."""
    before = fallen()
    feed(before, "++", now=1.0)
    after = ServerHealth(settings_of(slow_start=60.0), now=5.0)
    after.restore(structs.replace(record_of(before, now=5.0, wall=5.0), weight=weight), now=5.0, wall=5.0)
    assert after.weight == expected
