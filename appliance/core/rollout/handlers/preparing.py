"""A generation from its start until all its workers accept, in two phases, so that any program can refuse.

Everything that can fail is done before the commit, while the old generation still serves: the new workers are
started, read their configuration and hold the listening sockets. After the commit nothing may fail any more,
so a worker that then dies is replaced, and the older generations serve until the replacement accepts too.
"""

from appliance.core.rollout.effects import Effect, GenerationAccepting, GenerationReady
from appliance.core.rollout.events import Accepted, Commit, Prepare, Ready
from appliance.core.rollout.generations import Generation, Generations, TrackedWorker
from appliance.core.rollout.handlers import aborting, draining, worker_steps
from appliance.core.rollout.states import GenerationMove, GenerationState, WorkerMove, WorkerState


def prepare(generations: Generations, event: Prepare, now: float) -> list[Effect]:
    """Start a generation, and abort an earlier one that was not committed."""
    effects = aborting.abort(generations)
    generation = Generation(
        number=event.generation,
        snapshot=event.snapshot,
        size=event.workers,
        state=GenerationState.STARTING,
    )
    generations.by_number[event.generation] = generation
    for index in range(event.workers):
        effects += worker_steps.spawn_at(generation, index, generations.timing, now)
    return effects


def ready(
    _generations: Generations, generation: Generation, worker: TrackedWorker, _event: Ready, _now: float
) -> list[Effect]:
    """Have a worker wait for the commit; the generation is ready with its last worker."""
    worker.move(WorkerMove.READY)
    if not generation.all_in(WorkerState.READY):
        return []
    generation.move(GenerationMove.ALL_READY)
    return [GenerationReady(generation.number)]


def replacement_ready(
    _generations: Generations, _generation: Generation, worker: TrackedWorker, _event: Ready, _now: float
) -> list[Effect]:
    """Have the replacement of a worker that died before the commit wait like the others."""
    worker.move(WorkerMove.READY)
    return []


def commit(generations: Generations, event: Commit, now: float) -> list[Effect]:
    """Have every worker of the ready generation accept."""
    (generation,) = generations.in_state(GenerationState.READY)
    generations.drain_settings = event.drain_settings
    generation.move(GenerationMove.COMMIT)
    # For a worker that died since it was ready, its replacement gets the order: nothing drains before.
    waiting = [each for each in generation.workers.values() if each.state is WorkerState.READY]
    told = [
        effect
        for each in waiting
        for effect in worker_steps.tell_to_accept(generation, each, generations.timing, now)
    ]
    return told + draining.cut_surplus(generations, now)


def ready_after_commit(
    generations: Generations, generation: Generation, worker: TrackedWorker, _event: Ready, now: float
) -> list[Effect]:
    """Have the replacement of a worker that died accept at once."""
    worker.move(WorkerMove.READY)
    return worker_steps.tell_to_accept(generation, worker, generations.timing, now)


def accepted(
    generations: Generations, generation: Generation, worker: TrackedWorker, _: Accepted, now: float
) -> list[Effect]:
    """Let a worker serve; the older generations drain when every worker of this one accepts."""
    worker.move(WorkerMove.ACCEPTED)
    worker.accepting_since = now
    effects = _drain_predecessors(generations, generation, worker, now)
    if generation.state is GenerationState.ACCEPTING or not generation.all_in(WorkerState.ACCEPTING):
        return effects
    generation.move(GenerationMove.ALL_ACCEPT)
    accepting = GenerationAccepting(generation.number)
    return [*effects, accepting, *draining.drain_older(generations, generation, now)]


def _drain_predecessors(
    generations: Generations, generation: Generation, worker: TrackedWorker, now: float
) -> list[Effect]:
    """Drain the workers that refused a snapshot, and that this one replaces."""
    replaced = [each for each in generation.workers.values() if each.successor == worker.id.index]
    within = generations.drain_settings.drain
    return [
        effect
        for each in replaced
        for effect in worker_steps.drain(generation, each, within, generations.timing, now)
    ]
