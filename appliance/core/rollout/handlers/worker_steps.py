"""Steps with one worker: start, order to accept, to apply a snapshot or to drain, and kill."""

from typing import assert_never

from appliance.core.rollout.effects import Accept, Apply, Drain, Effect, Kill, Spawn
from appliance.core.rollout.generations import Generation, TrackedWorker
from appliance.core.rollout.states import WorkerId, WorkerMove, WorkerState
from appliance.core.rollout.timing import Timing


def spawn_at(generation: Generation, index: int, timing: Timing, now: float) -> list[Effect]:
    """Start a worker at an unused index."""
    worker = TrackedWorker(id=WorkerId(generation.number, index), state=WorkerState.WAITING)
    generation.workers[index] = worker
    return spawn(generation, worker, timing, now)


def spawn(generation: Generation, worker: TrackedWorker, timing: Timing, now: float) -> list[Effect]:
    """Start the process of a waiting worker."""
    worker.move(WorkerMove.START, deadline=now + timing.startup)
    worker.snapshot = worker.applied = generation.snapshot  # it starts with this one or not at all
    worker.accepting_since, worker.retry_at, worker.refusals = None, None, 0
    return [Spawn(worker=worker.id, snapshot=generation.snapshot, workers=generation.size)]


def order_accept(generation: Generation, worker: TrackedWorker, timing: Timing, now: float) -> list[Effect]:
    """Have a ready worker accept, with the snapshot that holds now."""
    worker.move(WorkerMove.ACCEPT, deadline=now + timing.accept)
    late = worker.snapshot != generation.snapshot  # a live change came while it was starting
    apply = order_apply(worker, generation.snapshot) if late else []
    return [*apply, Accept(worker.id)]


def order_apply(worker: TrackedWorker, snapshot: int) -> list[Effect]:
    """Have a worker apply a snapshot."""
    worker.snapshot, worker.retry_at = snapshot, None
    return [Apply(worker.id, snapshot)]


def drain(
    generation: Generation, worker: TrackedWorker, within: float, timing: Timing, now: float
) -> list[Effect]:
    """End a worker within `within` seconds, or earlier if it drains already.

    One that never accepted has no sessions to lose, and is killed at once.
    """
    match worker.state:
        case WorkerState.WAITING:
            del generation.workers[worker.id.index]
            return []
        case WorkerState.STARTING | WorkerState.READY:
            return kill(worker)
        case WorkerState.ENDING:
            return []
        case WorkerState.OPENING | WorkerState.ACCEPTING | WorkerState.DRAINING:
            end = now + within + timing.kill_grace
            if worker.state is WorkerState.DRAINING and worker.deadline is not None:
                end = min(end, worker.deadline)
            worker.move(WorkerMove.DRAIN, deadline=end)
            return [Drain(worker.id, max(0.0, end - timing.kill_grace - now))]
        case _:
            assert_never(worker.state)


def kill(worker: TrackedWorker) -> list[Effect]:
    """End a worker at once."""
    worker.move(WorkerMove.KILL)
    return [Kill(worker.id)]
