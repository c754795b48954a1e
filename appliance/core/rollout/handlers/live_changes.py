"""Snapshots that running workers apply: ordered, applied, or refused and ordered again.

Every worker has confirmed before the commit that it could (`check`), so a refusal is rare: the file of the
snapshot cannot be read at that moment, or the machine is short of something.
"""

from typing import Final

from appliance.core.rollout.effects import Effect, WorkerRefused
from appliance.core.rollout.events import ApplyLive, SnapshotApplied, SnapshotRefused
from appliance.core.rollout.generations import Concerned, Generations, TrackedWorker
from appliance.core.rollout.handlers import draining, worker_steps
from appliance.core.rollout.states import COMMITTED, WorkerState

_MOST_REFUSALS: Final = 3
"""Refusals of one snapshot after which a new worker, which starts with it, replaces this one."""


def apply_live(generations: Generations, event: ApplyLive, now: float) -> list[Effect]:
    """Have every serving worker apply a snapshot; starting ones get it before they accept."""
    generations.drain_settings = event.drain_settings
    effects: list[Effect] = []
    for generation in generations.in_state(*COMMITTED):
        generation.snapshot = event.snapshot
        for worker in generation.workers.values():
            if worker.state in (WorkerState.OPENING, WorkerState.ACCEPTING):
                worker.refusals = 0
                effects += worker_steps.order_apply(worker, event.snapshot)
    return effects + draining.cut_surplus(generations, now)


def applied(at: Concerned, event: SnapshotApplied) -> list[Effect]:
    """Store which snapshot a worker uses."""
    at.worker.applied, at.worker.refusal = event.snapshot, ""
    return []


def refused_before_accepting(at: Concerned, event: SnapshotRefused) -> list[Effect]:
    """Kill a worker that accepts nothing yet: no connection is lost, and its replacement starts with it."""
    if at.worker.snapshot != event.snapshot:
        return []  # it has a newer order
    _note_refusal(at.worker, event)
    refused = WorkerRefused(worker=at.worker.id, reason=event.reason, delay=None)
    return [refused, *worker_steps.kill(at.worker)]


def refused(at: Concerned, event: SnapshotRefused) -> list[Effect]:
    """Order a worker again after a pause; after several refusals start another one alongside."""
    if at.worker.snapshot != event.snapshot:
        return []  # it has a newer order
    _note_refusal(at.worker, event)
    if at.worker.refusals < _MOST_REFUSALS:
        delay = at.generations.timing.backoff(at.worker.refusals)
        at.worker.retry_at = at.now + delay
        return [WorkerRefused(worker=at.worker.id, reason=event.reason, delay=delay)]
    refusal = WorkerRefused(worker=at.worker.id, reason=event.reason, delay=None)
    return [refusal, *_start_successor(at)]


def _note_refusal(worker: TrackedWorker, event: SnapshotRefused) -> None:
    worker.refusals, worker.refusal = worker.refusals + 1, event.reason


def _start_successor(at: Concerned) -> list[Effect]:
    """Start another worker; the old one holds sessions and serves until the new one accepts."""
    if at.worker.successor is not None:
        return []
    at.worker.successor = at.generation.free_index(at.worker.id.index)
    return worker_steps.spawn_at(at.generation, at.worker.successor, at.generations.timing, at.now)
