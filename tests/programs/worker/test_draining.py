"""The times of a worker's end, on clocks that the test moves."""

import pytest

from appliance.worker.draining import Draining

pytestmark = pytest.mark.pure


def test_a_drain_ends_at_its_deadline():
    """The deadline is a wall clock's, and is kept by the monotonic one from the beginning of the drain on."""
    draining = Draining()
    assert draining.deadline == 0.0
    draining.begin(1030.0, late=0.0, now=50.0, wall=1000.0)
    assert draining.deadline == 1030.0
    assert not draining.is_over(79.9)
    assert draining.is_over(80.0)


def test_lingering_runs_out():
    """So many seconds after the beginning of the drain nothing is accepted any more."""
    draining = Draining()
    draining.begin(1030.0, late=2.0, now=50.0, wall=1000.0)
    assert [draining.accepts_late(now) for now in (50.0, 51.5, 52.0, 60.0)] == [2.0, 0.5, 0.0, 0.0]


def test_a_worker_leaves_unless_it_is_adopted():
    """After the patience it leaves; a master that adopts it before takes that back."""
    draining = Draining()
    assert not draining.leaves(1e9)
    draining.leave(5.0, now=50.0)
    assert [draining.leaves(now) for now in (54.9, 55.0)] == [False, True]
    draining.stay()
    assert not draining.leaves(55.0)
