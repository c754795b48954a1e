"""Workers of a serving generation that die or hang: killed if they hang, and started again.

The first replacement comes at once, so that a single crash costs nothing; after that the pause doubles, so
that workers that die at once do not keep a processor busy with starting.
"""

from appliance.core.rollout.effects import Effect, WorkerDied, WorkerStuck
from appliance.core.rollout.events import Exited, Expired
from appliance.core.rollout.generations import Concerned
from appliance.core.rollout.handlers import worker_steps
from appliance.core.rollout.states import WorkerMove


def replace(at: Concerned, event: Exited) -> list[Effect]:
    """Start another process in the place of a worker that died, at once or after a pause."""
    since, timing = at.worker.accepting_since, at.generations.timing
    if since is not None and at.now - since >= timing.stable:
        at.worker.failures = 0
    delay = timing.backoff(at.worker.failures)
    at.worker.failures += 1
    at.worker.move(WorkerMove.DIED, deadline=at.now + delay)
    at.worker.accepting_since = None
    died = WorkerDied(at.worker.id, event.detail, delay)
    return [died] if delay else [died, *worker_steps.spawn(at.generation, at.worker, timing, at.now)]


def start_again(at: Concerned, _: Expired) -> list[Effect]:
    """Start the process of a worker whose pause is over."""
    return worker_steps.spawn(at.generation, at.worker, at.generations.timing, at.now)


def kill_stuck(at: Concerned, _: Expired) -> list[Effect]:
    """Kill a worker that did not execute its order in time; its death decides on a replacement."""
    return [WorkerStuck(at.worker.id, at.worker.state), *worker_steps.kill(at.worker)]
