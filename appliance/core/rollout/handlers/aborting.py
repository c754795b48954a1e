"""A generation that was not committed ends without a trace: by command, or because a worker cannot start."""

from appliance.core.rollout.effects import Effect, GenerationFailed, Kill
from appliance.core.rollout.events import Abort, Exited, Expired
from appliance.core.rollout.generations import Concerned, Generations


def abort(generations: Generations) -> list[Effect]:
    """Kill the generation that was not committed, and forget it at once; harmless without one."""
    generation = generations.pending
    if generation is None:
        return []
    del generations.by_number[generation.number]
    return [Kill(worker.id) for worker in generation.workers.values() if worker.has_process]


def abort_by_command(generations: Generations, _event: Abort, _now: float) -> list[Effect]:
    """Execute the command of the master."""
    return abort(generations)


def exited_before_ready(at: Concerned, event: Exited) -> list[Effect]:
    """Give the generation up: a worker that cannot start would fail at a second try too."""
    del at.generation.workers[at.worker.id.index]  # it has no process any more that could be killed
    return _fail(at, f"worker {at.worker.id.index} {event.detail}")


def late_before_ready(at: Concerned, _: Expired) -> list[Effect]:
    """Give the generation up: a worker hangs during its start."""
    reason = f"worker {at.worker.id.index} was not ready within {at.generations.timing.startup:g} s"
    return _fail(at, reason)


def _fail(at: Concerned, reason: str) -> list[Effect]:
    return [*abort(at.generations), GenerationFailed(at.generation.number, reason)]
