"""Generations of workers in a status."""

import pytest
from support.values import boards
from support.values.observations import NOW, observations

from appliance.core.status.assessment import assess
from appliance.core.status.status import (
    GenerationPhase,
    ServerConnections,
)
from appliance.model.worker_phases import WorkerPhase

pytestmark = pytest.mark.pure


def test_draining_generations_say_what_they_hold():
    """A draining generation has its deadline, its sessions and the servers they are on."""
    draining = [
        boards.worker(
            generation=3,
            index=index,
            pid=50 + index,
            phase=WorkerPhase.DRAINING,
            drain_deadline=260.0,
            sessions=2,
            servers=(boards.server_counters(current=2), boards.server_counters("idle")),
        )
        for index in (0, 1)
    ]
    status = assess(observations(workers=(boards.worker(generation=4), *draining)), NOW)
    old, new = status.generations
    assert (old.phase, new.phase) == (GenerationPhase.DRAINING, GenerationPhase.ACCEPTING)
    assert (old.sessions, old.drain_deadline, old.pids) == (4, 260.0, (50, 51))
    assert old.holds == (ServerConnections(pool="pool", server="server-0", connections=4),)
    assert new.drain_deadline is None


def test_compiled_are_generations_of_which_each_worker_is():
    """A generation runs compiled code when all its workers do."""
    workers = [
        boards.worker(generation=generation, index=index, compiled=compiled)
        for generation, index, compiled in ((1, 0, False), (1, 1, True), (2, 0, True), (2, 1, True))
    ]
    status = assess(observations(workers=tuple(workers)), NOW)
    assert [each.compiled for each in status.generations] == [False, True]
