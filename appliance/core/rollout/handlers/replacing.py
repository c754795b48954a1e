"""Workers of a serving generation that die or hang: killed if they hang, and started again.

The first replacement comes at once, so that a single crash costs nothing; after that the pause doubles, so
that workers that die at once do not keep a processor busy with starting.
"""

from appliance.core.rollout.effects import Effect, WorkerDied, WorkerStuck
from appliance.core.rollout.events import Exited, Expired
from appliance.core.rollout.generations import Generation, Generations, TrackedWorker
from appliance.core.rollout.handlers import worker_steps
from appliance.core.rollout.states import WorkerMove


def replace(
    generations: Generations, generation: Generation, worker: TrackedWorker, event: Exited, now: float
) -> list[Effect]:
    """Start another process in the place of a worker that died, at once or after a pause."""
    since, timing = worker.accepting_since, generations.timing
    if since is not None and now - since >= timing.stable:
        worker.failures = 0
    delay = timing.backoff(worker.failures)
    worker.failures += 1
    worker.move(WorkerMove.DIED, deadline=now + delay)
    worker.accepting_since = None
    died = WorkerDied(worker.id, event.detail, delay)
    return [died] if delay else [died, *worker_steps.spawn(generation, worker, timing, now)]


def start_again(
    generations: Generations, generation: Generation, worker: TrackedWorker, _event: Expired, now: float
) -> list[Effect]:
    """Start the process of a worker whose pause is over."""
    return worker_steps.spawn(generation, worker, generations.timing, now)


def kill_stuck(
    _generations: Generations, _generation: Generation, worker: TrackedWorker, _event: Expired, _now: float
) -> list[Effect]:
    """Kill a worker that did not execute its order in time; its death decides on a replacement."""
    return [WorkerStuck(worker.id, worker.state), *worker_steps.kill(worker)]
