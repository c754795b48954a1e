"""Draining generations: they accept nothing more, their sessions finish, and their number is limited.

Each draining generation is a whole set of processes with its memory. An operator who reloads every minute
while sessions last for hours would fill the machine, so the oldest is cut when there are too many.
"""

from appliance.core.rollout.effects import Effect, GenerationCut, GenerationDraining, GenerationGone
from appliance.core.rollout.events import Exited, Retire
from appliance.core.rollout.generations import Concerned, Generation, Generations
from appliance.core.rollout.handlers import aborting, worker_steps
from appliance.core.rollout.states import COMMITTED, GenerationMove, GenerationState


def drain_older(generations: Generations, generation: Generation, now: float) -> list[Effect]:
    """Drain every committed generation that is older than one that accepts."""
    within = generations.drain_settings.drain
    drained = [
        effect
        for each in generations.committed_before(generation)
        for effect in _drain(generations, each, within, now)
    ]
    return drained + cut_surplus(generations, now)


def retire(generations: Generations, event: Retire, now: float) -> list[Effect]:
    """Drain every committed generation within `event.within` seconds; earlier deadlines stay."""
    end = now + event.within
    return aborting.abort(generations) + [
        effect
        for each in generations.in_state(*COMMITTED, GenerationState.DRAINING)
        if each.drain_deadline is None or each.drain_deadline > end
        for effect in _drain(generations, each, event.within, now)
    ]


def cut_surplus(generations: Generations, now: float) -> list[Effect]:
    """End the oldest draining generations if more drain than the configuration allows."""
    draining = [each for each in generations.in_state(GenerationState.DRAINING) if not each.cut]
    surplus = draining[: max(0, len(draining) - generations.drain_settings.max_draining)]
    return [effect for generation in surplus for effect in _cut(generations, generation, now)]


def exited_while_draining(at: Concerned, _: Exited) -> list[Effect]:
    """Forget a worker that has drained: no other takes its place."""
    del at.generation.workers[at.worker.id.index]
    return forget_if_empty(at.generations, at.generation)


def forget_if_empty(generations: Generations, generation: Generation) -> list[Effect]:
    """Forget a draining generation whose last worker is gone."""
    if generation.workers or generation.state is not GenerationState.DRAINING:
        return []
    del generations.by_number[generation.number]
    return [GenerationGone(generation.number)]


def _drain(generations: Generations, generation: Generation, within: float, now: float) -> list[Effect]:
    generation.move(GenerationMove.DRAIN)
    generation.drain_deadline = now + within
    effects: list[Effect] = [GenerationDraining(generation.number, within)]
    effects += _drain_workers(generations, generation, within, now)
    return effects + forget_if_empty(generations, generation)


def _cut(generations: Generations, generation: Generation, now: float) -> list[Effect]:
    generation.cut, generation.drain_deadline = True, now
    return [GenerationCut(generation.number), *_drain_workers(generations, generation, 0.0, now)]


def _drain_workers(
    generations: Generations, generation: Generation, within: float, now: float
) -> list[Effect]:
    workers = tuple(generation.workers.values())
    return [
        effect
        for each in workers
        for effect in worker_steps.drain(generation, each, within, generations.timing, now)
    ]
