"""Generations of proxy workers: who accepts, who drains, who is started again. Pure; `now` is monotonic.

The contract, after tableflip: (1) a generation that was never ready changes nothing when it fails; (2) an old
generation is told to drain only when every worker of a newer one has said that it accepts; (3) from the first
accepting generation on there is one at every moment, and its dead workers are started again, until `Retire`;
(4) a drain ends at its deadline or earlier, never later. Between commit and the last acknowledgement two
generations accept side by side, which costs nothing: they share their listening sockets.

    STARTING -all ready-> READY -Commit-> OPENING -all accept-> ACCEPTING -a newer one accepts-> DRAINING

A crash or a timeout in STARTING, and `Abort` before the commit, end a generation without a trace.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, assert_never

from appliance.core.generations import (
    Abort,
    Accept,
    Accepted,
    Adopt,
    Apply,
    Commit,
    Drain,
    Effect,
    Event,
    Exited,
    GenerationAccepting,
    GenerationCut,
    GenerationDraining,
    GenerationFailed,
    GenerationGone,
    GenerationReady,
    Kill,
    Live,
    Orphan,
    Phase,
    Prepare,
    Ready,
    Retire,
    Spawn,
    Terms,
    Timing,
    WorkerDied,
    WorkerId,
    WorkerPhase,
    WorkerStuck,
)

_COMMITTED: Final = (Phase.OPENING, Phase.ACCEPTING)


@dataclass(slots=True, eq=False)
class Worker:
    """A worker's place as the machine knows it; what `deadline` ends is said by `phase`."""

    id: WorkerId
    phase: WorkerPhase
    deadline: float | None = None
    snapshot: int = 0
    failures: int = 0
    accepting_since: float | None = None


@dataclass(slots=True, eq=False)
class Generation:
    """A generation as the machine knows it."""

    number: int
    snapshot: int
    size: int
    phase: Phase
    workers: dict[int, Worker] = field(default_factory=dict)
    drain_deadline: float | None = None
    cut: bool = False


class Rollout:
    """The machine: events in, effects out, one deadline at which it wants to be ticked."""

    def __init__(self, *, terms: Terms, timing: Timing | None = None) -> None:
        self.generations: dict[int, Generation] = {}
        self.terms = terms
        self._timing = timing or Timing()

    @property
    def deadline(self) -> float | None:
        """When `tick` has something to do, None for never."""
        times = (worker.deadline for worker in self._workers())
        return min((time for time in times if time is not None), default=None)

    @property
    def accepting(self) -> Generation | None:
        """The newest generation that accepts with all its workers, or did before some of them crashed."""
        return max(self._in_phase(Phase.ACCEPTING), key=_number, default=None)

    @property
    def pending(self) -> Generation | None:
        """The generation that was prepared and neither committed nor given up."""
        return next(self._in_phase(Phase.STARTING, Phase.READY), None)

    def worker(self, worker: WorkerId) -> Worker | None:
        """Return a worker's place, None for one that is not of ours any more."""
        generation = self.generations.get(worker.generation)
        return generation.workers.get(worker.index) if generation else None

    def handle(self, event: Event, *, now: float) -> list[Effect]:  # noqa: PLR0911  # one line for each event
        """Take an event and return what is to be done, in order."""
        match event:
            case Prepare():
                return self._prepare(event, now)
            case Ready(worker):
                return self._ready(worker, now)
            case Accepted(worker):
                return self._accepted(worker, now)
            case Exited(worker, detail):
                return self._exited(worker, detail, now)
            case Commit(terms):
                return self._commit(terms, now)
            case Abort():
                return self._abort()
            case Live():
                return self._live(event, now)
            case Adopt():
                return self._adopt(event, now)
            case Retire(within=within):
                return self._retire(within, now)
            case _:
                assert_never(event)

    def tick(self, *, now: float) -> list[Effect]:
        """Do what is due."""
        due = [each for each in self._workers() if each.deadline is not None and each.deadline <= now]
        return [effect for worker in due for effect in self._expire(worker, now)]

    # Preparing

    def _prepare(self, event: Prepare, now: float) -> list[Effect]:
        effects = self._abort()
        generation = Generation(
            number=event.generation, snapshot=event.snapshot, size=event.workers, phase=Phase.STARTING
        )
        self.generations[event.generation] = generation
        for index in range(event.workers):
            worker = Worker(id=WorkerId(event.generation, index), phase=WorkerPhase.WAITING)
            generation.workers[index] = worker
            effects += self._spawn(generation, worker, now)
        return effects

    def _spawn(self, generation: Generation, worker: Worker, now: float) -> list[Effect]:
        worker.phase, worker.deadline = WorkerPhase.STARTING, now + self._timing.startup
        worker.snapshot, worker.accepting_since = generation.snapshot, None
        return [Spawn(worker=worker.id, snapshot=generation.snapshot, workers=generation.size)]

    def _ready(self, worker_id: WorkerId, now: float) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is None or worker.phase is not WorkerPhase.STARTING:
            return []
        generation = self.generations[worker_id.generation]
        worker.phase, worker.deadline = WorkerPhase.READY, None
        if generation.phase in _COMMITTED:
            return self._open(generation, worker, now)
        if generation.phase is Phase.READY or not _all_in(generation, WorkerPhase.READY):
            return []
        generation.phase = Phase.READY
        return [GenerationReady(generation.number)]

    def _abort(self) -> list[Effect]:
        generation = self.pending
        if generation is None:
            return []
        del self.generations[generation.number]
        return [Kill(worker.id) for worker in generation.workers.values() if _has_process(worker)]

    def _fail(self, generation: Generation, reason: str) -> list[Effect]:
        return [*self._abort(), GenerationFailed(generation.number, reason)]

    # Committing

    def _commit(self, terms: Terms, now: float) -> list[Effect]:
        generation = self.pending
        if generation is None or generation.phase is not Phase.READY:
            return []
        self.terms = terms
        generation.phase = Phase.OPENING
        # A worker that crashed since it was ready is told when its replacement is: nothing drains before.
        ready = [each for each in generation.workers.values() if each.phase is WorkerPhase.READY]
        opened = [effect for worker in ready for effect in self._open(generation, worker, now)]
        return opened + self._cut_surplus(now)

    def _open(self, generation: Generation, worker: Worker, now: float) -> list[Effect]:
        worker.phase, worker.deadline = WorkerPhase.OPENING, now + self._timing.accept
        apply: list[Effect] = []
        if worker.snapshot != generation.snapshot:  # a live change came while it was starting
            worker.snapshot = generation.snapshot
            apply = [Apply(worker.id, generation.snapshot)]
        return [*apply, Accept(worker.id)]

    def _accepted(self, worker_id: WorkerId, now: float) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is None or worker.phase is not WorkerPhase.OPENING:
            return []
        worker.phase, worker.deadline, worker.accepting_since = WorkerPhase.ACCEPTING, None, now
        generation = self.generations[worker_id.generation]
        if generation.phase is Phase.ACCEPTING or not _all_in(generation, WorkerPhase.ACCEPTING):
            return []
        generation.phase = Phase.ACCEPTING
        older = sorted(
            (each for each in self._in_phase(*_COMMITTED) if each.number < generation.number), key=_number
        )
        effects: list[Effect] = [GenerationAccepting(generation.number)]
        for each in older:
            effects += self._drain(each, self.terms.drain, now)
        return effects + self._cut_surplus(now)

    def _live(self, event: Live, now: float) -> list[Effect]:
        self.terms = event.terms
        effects: list[Effect] = []
        for generation in self._in_phase(*_COMMITTED):
            generation.snapshot = event.snapshot
            for worker in generation.workers.values():
                if worker.phase in (WorkerPhase.OPENING, WorkerPhase.ACCEPTING):
                    worker.snapshot = event.snapshot
                    effects.append(Apply(worker.id, event.snapshot))
        return effects + self._cut_surplus(now)

    # Draining

    def _drain(self, generation: Generation, within: float, now: float) -> list[Effect]:
        generation.phase, generation.drain_deadline = Phase.DRAINING, now + within
        effects: list[Effect] = [GenerationDraining(generation.number, within)]
        for worker in tuple(generation.workers.values()):
            effects += self._drain_worker(generation, worker, within, now)
        return effects + self._forget_if_empty(generation)

    def _drain_worker(
        self, generation: Generation, worker: Worker, within: float, now: float
    ) -> list[Effect]:
        match worker.phase:
            case WorkerPhase.WAITING:
                del generation.workers[worker.id.index]
                return []
            case WorkerPhase.STARTING | WorkerPhase.READY:
                return self._kill(worker)
            case WorkerPhase.ENDING:
                return []
            case WorkerPhase.OPENING | WorkerPhase.ACCEPTING | WorkerPhase.DRAINING:
                end = now + within + self._timing.kill_grace
                if worker.phase is WorkerPhase.DRAINING and worker.deadline is not None:
                    end = min(end, worker.deadline)
                worker.phase, worker.deadline = WorkerPhase.DRAINING, end
                return [Drain(worker.id, max(0.0, end - self._timing.kill_grace - now))]
            case _:
                assert_never(worker.phase)

    def _cut_surplus(self, now: float) -> list[Effect]:
        draining = sorted((each for each in self._in_phase(Phase.DRAINING) if not each.cut), key=_number)
        surplus = draining[: max(0, len(draining) - self.terms.max_draining)]
        return [effect for generation in surplus for effect in self._cut(generation, now)]

    def _cut(self, generation: Generation, now: float) -> list[Effect]:
        generation.cut, generation.drain_deadline = True, now
        effects: list[Effect] = [GenerationCut(generation.number)]
        for worker in tuple(generation.workers.values()):
            effects += self._drain_worker(generation, worker, 0.0, now)
        return effects

    def _retire(self, within: float, now: float) -> list[Effect]:
        effects = self._abort()
        for generation in sorted(self._in_phase(*_COMMITTED), key=_number):
            effects += self._drain(generation, within, now)
        return effects

    def _forget_if_empty(self, generation: Generation) -> list[Effect]:
        if generation.workers or generation.phase is not Phase.DRAINING:
            return []
        del self.generations[generation.number]
        return [GenerationGone(generation.number)]

    # Death

    def _exited(self, worker_id: WorkerId, detail: str, now: float) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is None or worker.phase is WorkerPhase.WAITING:
            return []
        generation = self.generations[worker_id.generation]
        if generation.phase is Phase.STARTING:
            worker.phase = WorkerPhase.WAITING  # it has no process any more that could be killed
            return self._fail(generation, f"worker {worker_id.index} {detail}")
        if generation.phase is Phase.DRAINING or worker.phase is WorkerPhase.DRAINING:
            del generation.workers[worker_id.index]
            return self._forget_if_empty(generation)
        return self._replace(generation, worker, detail, now)

    def _replace(self, generation: Generation, worker: Worker, detail: str, now: float) -> list[Effect]:
        since, timing = worker.accepting_since, self._timing
        if since is not None and now - since >= timing.stable:
            worker.failures = 0
        delay = _backoff(worker.failures, timing)
        worker.failures += 1
        died = WorkerDied(worker.id, detail, delay)
        if not delay:
            return [died, *self._spawn(generation, worker, now)]
        worker.phase, worker.deadline, worker.accepting_since = WorkerPhase.WAITING, now + delay, None
        return [died]

    def _expire(self, worker: Worker, now: float) -> list[Effect]:
        generation = self.generations.get(worker.id.generation)
        if generation is None:  # given up a moment ago, for another of its workers
            return []
        if worker.phase is WorkerPhase.WAITING:
            return self._spawn(generation, worker, now)
        if generation.phase is Phase.STARTING:
            reason = f"worker {worker.id.index} was not ready within {self._timing.startup:g} s"
            return self._fail(generation, reason)
        return [WorkerStuck(worker.id, worker.phase), *self._kill(worker)]

    def _kill(self, worker: Worker) -> list[Effect]:
        worker.phase, worker.deadline = WorkerPhase.ENDING, None
        return [Kill(worker.id)]

    # Take-over

    def _adopt(self, event: Adopt, now: float) -> list[Effect]:
        """Drains go on as they were; what accepts goes on until a generation of ours does."""
        accepts = any(orphan.drain_within is None for orphan in event.orphans)
        generation = Generation(
            number=event.generation,
            snapshot=event.snapshot,
            size=event.workers,
            phase=Phase.ACCEPTING if accepts else Phase.DRAINING,
        )
        self.generations[event.generation] = generation
        for orphan in event.orphans:
            generation.workers[orphan.index] = self._adopted(event, orphan, now)
        if not accepts:
            left = max((orphan.drain_within or 0.0 for orphan in event.orphans), default=0.0)
            generation.drain_deadline = now + left
        return self._forget_if_empty(generation)

    def _adopted(self, event: Adopt, orphan: Orphan, now: float) -> Worker:
        worker = WorkerId(event.generation, orphan.index)
        if orphan.drain_within is None:
            return Worker(
                id=worker, phase=WorkerPhase.ACCEPTING, snapshot=event.snapshot, accepting_since=now
            )
        end = now + orphan.drain_within + self._timing.kill_grace
        return Worker(id=worker, phase=WorkerPhase.DRAINING, snapshot=event.snapshot, deadline=end)

    def _workers(self) -> Iterator[Worker]:
        for generation in tuple(self.generations.values()):
            yield from tuple(generation.workers.values())

    def _in_phase(self, *phases: Phase) -> Iterator[Generation]:
        return (each for each in tuple(self.generations.values()) if each.phase in phases)


def _number(generation: Generation) -> int:
    return generation.number


def _all_in(generation: Generation, phase: WorkerPhase) -> bool:
    return all(worker.phase is phase for worker in generation.workers.values())


def _has_process(worker: Worker) -> bool:
    return worker.phase not in (WorkerPhase.WAITING, WorkerPhase.ENDING)


def _backoff(failures: int, timing: Timing) -> float:
    if not failures:
        return 0.0
    return float(min(timing.backoff_longest, timing.backoff_first * 2.0 ** min(failures - 1, 16)))
