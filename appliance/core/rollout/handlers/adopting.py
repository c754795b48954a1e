"""Workers that outlived their master (orphans): the next master takes them over, with their sessions.

An accepting worker continues until a generation of the new master accepts, or the new master finds that the
orphans have the accepted snapshot and keeps them. A drain continues to its deadline.
"""

from dataclasses import replace

from appliance.core.rollout.effects import Effect
from appliance.core.rollout.events import Adopt, Orphan, OrphanAnswered, Resume
from appliance.core.rollout.generations import Concerned, Generation, Generations, TrackedWorker
from appliance.core.rollout.handlers import draining, worker_steps
from appliance.core.rollout.states import GenerationMove, GenerationState, WorkerId, WorkerState
from appliance.core.rollout.timing import Timing


def adopt(generations: Generations, event: Adopt, now: float) -> list[Effect]:
    """Take over a generation; if none accepts, its ready workers were never committed, and end."""
    accepts = any(orphan.state is WorkerState.ACCEPTING for orphan in event.orphans)
    generation = Generation(
        number=event.generation,
        snapshot=max((orphan.snapshot for orphan in event.orphans), default=0),
        size=event.workers,
        state=GenerationState.ACCEPTING if accepts else GenerationState.DRAINING,
    )
    generations.by_number[event.generation] = generation
    for orphan in event.orphans:
        generation.workers[orphan.index] = _tracked(event.generation, orphan, generations.timing, now)
    if accepts:
        return []
    left = max((orphan.drain_within for orphan in event.orphans), default=0.0)
    generation.drain_deadline = now + left
    ready = [each for each in generation.workers.values() if each.state is WorkerState.READY]
    killed = [effect for each in ready for effect in worker_steps.kill(each)]
    return killed + draining.forget_if_empty(generations, generation)


def _tracked(generation: int, orphan: Orphan, timing: Timing, now: float) -> TrackedWorker:
    worker = TrackedWorker(
        id=WorkerId(generation, orphan.index),
        state=orphan.state,
        snapshot=orphan.snapshot,
        applied=orphan.snapshot,
    )
    if orphan.state is WorkerState.ACCEPTING:
        worker.accepting_since = now
    if orphan.silent:
        worker.deadline = now + timing.silence
    elif orphan.state is WorkerState.DRAINING:
        worker.deadline = now + orphan.drain_within + timing.kill_grace
    return worker


def answered(at: Concerned, event: OrphanAnswered) -> list[Effect]:
    """Use a silent orphan's report of itself; orders sent to it meanwhile are waiting in its queue."""
    orphan, timing = event.orphan, at.generations.timing
    if at.worker.state is WorkerState.DRAINING and orphan.state is not WorkerState.DRAINING:
        # It has not read the order to drain yet.
        worker = _tracked(at.generation.number, replace(orphan, state=WorkerState.DRAINING), timing, at.now)
        worker.deadline = at.worker.deadline
    else:
        worker = _tracked(at.generation.number, orphan, timing, at.now)
    at.generation.workers[orphan.index] = worker
    return _go_on(replace(at, worker=worker))


def resume(generations: Generations, event: Resume, now: float) -> list[Effect]:
    """Continue with the newest generation that accepts, and start workers in its empty places."""
    generation = generations.accepting
    if generation is None:
        return []
    generations.drain_settings, generation.snapshot = event.drain_settings, event.snapshot
    effects: list[Effect] = []
    for worker in tuple(generation.workers.values()):
        effects += _go_on(Concerned(generations, generation, worker, now))
    for place in generation.empty_places():
        index = generation.free_index(place)
        effects += worker_steps.spawn_at(generation, index, generations.timing, now)
    if generation.all_in(WorkerState.ACCEPTING):
        return effects + draining.drain_older(generations, generation, now)
    if generations.committed_before(generation):  # they accept as well, until all of this one do
        generation.move(GenerationMove.REOPEN)
    return effects


def _go_on(at: Concerned) -> list[Effect]:
    """Complete what the dead master began: a commit that it died in, a snapshot half applied."""
    if at.worker.state is WorkerState.READY:
        return worker_steps.order_accept(at.generation, at.worker, at.generations.timing, at.now)
    if at.worker.state is WorkerState.ACCEPTING and at.worker.applied != at.generation.snapshot:
        return worker_steps.order_apply(at.worker, at.generation.snapshot)
    return []
