"""A generation from its start until all its workers accept, in two phases, so that any program can refuse.

Everything that can fail is done before the commit, while the old generation still serves: the new workers are
started, read their configuration and hold the listening sockets. After the commit nothing may fail any more,
so a worker that then dies is replaced, and the older generations serve until the replacement accepts too.
"""

from appliance.core.rollout.effects import Effect, GenerationAccepting, GenerationReady
from appliance.core.rollout.events import Accepted, Commit, Prepare, Ready
from appliance.core.rollout.generations import Concerned, Generation, Generations
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


def ready(at: Concerned, _: Ready) -> list[Effect]:
    """Have a worker wait for the commit; the generation is ready with its last worker."""
    at.worker.move(WorkerMove.READY)
    if not at.generation.all_in(WorkerState.READY):
        return []
    at.generation.move(GenerationMove.ALL_READY)
    return [GenerationReady(at.generation.number)]


def replacement_ready(at: Concerned, _: Ready) -> list[Effect]:
    """Have the replacement of a worker that died before the commit wait like the others."""
    at.worker.move(WorkerMove.READY)
    return []


def commit(generations: Generations, event: Commit, now: float) -> list[Effect]:
    """Have every worker of the ready generation accept."""
    (generation,) = generations.in_state(GenerationState.READY)
    generations.drain_settings = event.drain_settings
    generation.move(GenerationMove.COMMIT)
    # For a worker that died since it was ready, its replacement gets the order: nothing drains before.
    waiting = [each for each in generation.workers.values() if each.state is WorkerState.READY]
    applied = [
        effect
        for each in waiting
        for effect in worker_steps.order_accept(generation, each, generations.timing, now)
    ]
    return applied + draining.cut_surplus(generations, now)


def ready_after_commit(at: Concerned, _: Ready) -> list[Effect]:
    """Have the replacement of a worker that died accept at once."""
    at.worker.move(WorkerMove.READY)
    return worker_steps.order_accept(at.generation, at.worker, at.generations.timing, at.now)


def accepted(at: Concerned, _: Accepted) -> list[Effect]:
    """Let a worker serve; the older generations drain when every worker of this one accepts."""
    at.worker.move(WorkerMove.ACCEPTED)
    at.worker.accepting_since = at.now
    effects = _drain_predecessors(at)
    if at.generation.state is GenerationState.ACCEPTING or not at.generation.all_in(WorkerState.ACCEPTING):
        return effects
    at.generation.move(GenerationMove.ALL_ACCEPT)
    accepting = GenerationAccepting(at.generation.number)
    return [*effects, accepting, *draining.drain_older(at.generations, at.generation, at.now)]


def _drain_predecessors(at: Concerned) -> list[Effect]:
    """Drain the workers that refused a snapshot, and that this one replaces."""
    replaced = [each for each in at.generation.workers.values() if each.successor == at.worker.id.index]
    within = at.generations.drain_settings.drain
    return [
        effect
        for each in replaced
        for effect in worker_steps.drain(at.generation, each, within, at.generations.timing, at.now)
    ]
