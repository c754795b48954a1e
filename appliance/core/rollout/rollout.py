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

from appliance.core.rollout.events import (
    Abort,
    Accept,
    Accepted,
    Adopt,
    Answered,
    Apply,
    Commit,
    Drain,
    DrainSettings,
    Effect,
    Event,
    Exited,
    GenerationAccepting,
    GenerationCut,
    GenerationDraining,
    GenerationFailed,
    GenerationGone,
    GenerationReady,
    GenerationState,
    Kill,
    Live,
    Orphan,
    Prepare,
    Ready,
    Resume,
    Retire,
    SnapshotApplied,
    SnapshotRefused,
    Spawn,
    Timing,
    WorkerDied,
    WorkerId,
    WorkerRefused,
    WorkerState,
    WorkerStuck,
)

_COMMITTED: Final = (GenerationState.OPENING, GenerationState.ACCEPTING)
_MOST_REFUSALS: Final = 3
"""Refusals of one snapshot after which a worker is replaced by another, which starts with it."""


@dataclass(slots=True, eq=False)
class TrackedWorker:
    """A worker's place as the machine knows it; what `deadline` ends is said by `phase`.

    `snapshot` is what it was told to obey, `obeys` what it said that it does; `refusal` is why not, and
    `retry_at` when it is told again. A worker that is replaced drains when its `successor` accepts.
    """

    id: WorkerId
    phase: WorkerState
    deadline: float | None = None
    snapshot: int = 0
    obeys: int = 0
    refusals: int = 0
    refusal: str = ""
    retry_at: float | None = None
    successor: int | None = None
    failures: int = 0
    accepting_since: float | None = None


@dataclass(slots=True, eq=False)
class Generation:
    """A generation as the machine knows it."""

    number: int
    snapshot: int
    size: int
    phase: GenerationState
    workers: dict[int, TrackedWorker] = field(default_factory=dict)
    drain_deadline: float | None = None
    cut: bool = False


class Rollout:
    """The machine: events in, effects out, one deadline at which it wants to be ticked."""

    def __init__(self, *, terms: DrainSettings, timing: Timing | None = None) -> None:
        self.generations: dict[int, Generation] = {}
        self.terms = terms
        self._timing = timing or Timing()

    @property
    def deadline(self) -> float | None:
        """When `tick` has something to do, None for never."""
        times = (time for worker in self._workers() for time in (worker.deadline, worker.retry_at))
        return min((time for time in times if time is not None), default=None)

    @property
    def accepting(self) -> Generation | None:
        """The newest generation that accepts with all its workers, or did before some of them crashed."""
        return max(self._in_phase(GenerationState.ACCEPTING), key=_number, default=None)

    @property
    def pending(self) -> Generation | None:
        """The generation that was prepared and neither committed nor given up."""
        return next(self._in_phase(GenerationState.STARTING, GenerationState.READY), None)

    @property
    def disobedient(self) -> list[TrackedWorker]:
        """The workers in service that have not said yet that they obey what they were told to."""
        serving = (self.generations[each.generation].workers[each.index] for each in self.serving)
        return [each for each in serving if each.obeys != each.snapshot]

    @property
    def serving(self) -> list[WorkerId]:
        """The workers that accept, or were told to."""
        workers = (each for committed in self._in_phase(*_COMMITTED) for each in committed.workers.values())
        return [each.id for each in workers if each.phase in (WorkerState.OPENING, WorkerState.ACCEPTING)]

    def worker(self, worker: WorkerId) -> TrackedWorker | None:
        """Return a worker's place, None for one that is not of ours any more."""
        generation = self.generations.get(worker.generation)
        return generation.workers.get(worker.index) if generation else None

    def handle(self, event: Event, *, now: float) -> list[Effect]:  # noqa: C901, PLR0911, PLR0912  # one line for each event
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
            case SnapshotApplied(worker, snapshot):
                return self._applied(worker, snapshot)
            case SnapshotRefused(worker, snapshot, reason):
                return self._refused(worker, snapshot, reason, now)
            case Adopt():
                return self._adopt(event, now)
            case Answered():
                return self._answered(event, now)
            case Resume():
                return self._resume(event, now)
            case Retire(within=within):
                return self._retire(within, now)
            case _:
                assert_never(event)

    def tick(self, *, now: float) -> list[Effect]:
        """Do what is due."""
        again = [each for each in self._workers() if each.retry_at is not None and each.retry_at <= now]
        due = [each for each in self._workers() if each.deadline is not None and each.deadline <= now]
        effects = [effect for worker in again for effect in self._tell(worker, worker.snapshot)]
        return effects + [effect for worker in due for effect in self._expire(worker, now)]

    # Preparing

    def _prepare(self, event: Prepare, now: float) -> list[Effect]:
        effects = self._abort()
        generation = Generation(
            number=event.generation,
            snapshot=event.snapshot,
            size=event.workers,
            phase=GenerationState.STARTING,
        )
        self.generations[event.generation] = generation
        for index in range(event.workers):
            effects += self._spawn_at(generation, index, now)
        return effects

    def _spawn_at(self, generation: Generation, index: int, now: float) -> list[Effect]:
        worker = TrackedWorker(id=WorkerId(generation.number, index), phase=WorkerState.WAITING)
        generation.workers[index] = worker
        return self._spawn(generation, worker, now)

    def _spawn(self, generation: Generation, worker: TrackedWorker, now: float) -> list[Effect]:
        worker.phase, worker.deadline = WorkerState.STARTING, now + self._timing.startup
        worker.snapshot = worker.obeys = generation.snapshot  # it starts with it or not at all
        worker.accepting_since, worker.retry_at, worker.refusals = None, None, 0
        return [Spawn(worker=worker.id, snapshot=generation.snapshot, workers=generation.size)]

    def _ready(self, worker_id: WorkerId, now: float) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is None or worker.phase is not WorkerState.STARTING:
            return []
        generation = self.generations[worker_id.generation]
        worker.phase, worker.deadline = WorkerState.READY, None
        if generation.phase in _COMMITTED:
            return self._open(generation, worker, now)
        if generation.phase is GenerationState.READY or not _all_in(generation, WorkerState.READY):
            return []
        generation.phase = GenerationState.READY
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

    def _commit(self, terms: DrainSettings, now: float) -> list[Effect]:
        generation = self.pending
        if generation is None or generation.phase is not GenerationState.READY:
            return []
        self.terms = terms
        generation.phase = GenerationState.OPENING
        # A worker that crashed since it was ready is told when its replacement is: nothing drains before.
        ready = [each for each in generation.workers.values() if each.phase is WorkerState.READY]
        opened = [effect for worker in ready for effect in self._open(generation, worker, now)]
        return opened + self._cut_surplus(now)

    def _open(self, generation: Generation, worker: TrackedWorker, now: float) -> list[Effect]:
        worker.phase, worker.deadline = WorkerState.OPENING, now + self._timing.accept
        late = worker.snapshot != generation.snapshot  # a live change came while it was starting
        apply = self._tell(worker, generation.snapshot) if late else []
        return [*apply, Accept(worker.id)]

    def _accepted(self, worker_id: WorkerId, now: float) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is None or worker.phase is not WorkerState.OPENING:
            return []
        worker.phase, worker.deadline, worker.accepting_since = WorkerState.ACCEPTING, None, now
        generation = self.generations[worker_id.generation]
        effects = self._succeed(generation, worker, now)
        if generation.phase is GenerationState.ACCEPTING or not _all_in(generation, WorkerState.ACCEPTING):
            return effects
        generation.phase = GenerationState.ACCEPTING
        return [*effects, GenerationAccepting(generation.number), *self._drain_older(generation, now)]

    def _older(self, generation: Generation) -> list[Generation]:
        older = (each for each in self._in_phase(*_COMMITTED) if each.number < generation.number)
        return sorted(older, key=_number)

    def _drain_older(self, generation: Generation, now: float) -> list[Effect]:
        older = self._older(generation)
        drained = [effect for each in older for effect in self._drain(each, self.terms.drain, now)]
        return drained + self._cut_surplus(now)

    def _live(self, event: Live, now: float) -> list[Effect]:
        self.terms = event.terms
        effects: list[Effect] = []
        for generation in self._in_phase(*_COMMITTED):
            generation.snapshot = event.snapshot
            for worker in generation.workers.values():
                if worker.phase in (WorkerState.OPENING, WorkerState.ACCEPTING):
                    worker.refusals = 0
                    effects += self._tell(worker, event.snapshot)
        return effects + self._cut_surplus(now)

    # Obedience

    def _tell(self, worker: TrackedWorker, snapshot: int) -> list[Effect]:
        worker.snapshot, worker.retry_at = snapshot, None
        return [Apply(worker.id, snapshot)]

    def _applied(self, worker_id: WorkerId, snapshot: int) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is not None:
            worker.obeys, worker.refusal = snapshot, ""
        return []

    def _refused(self, worker_id: WorkerId, snapshot: int, reason: str, now: float) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is None or worker.snapshot != snapshot:
            return []
        worker.refusals, worker.refusal = worker.refusals + 1, reason
        if worker.phase is WorkerState.OPENING:  # it has no connection yet that could be lost with it
            return [WorkerRefused(worker=worker_id, reason=reason, delay=None), *self._kill(worker)]
        if worker.phase is not WorkerState.ACCEPTING:
            return []
        if worker.refusals < _MOST_REFUSALS:
            delay = _backoff(worker.refusals, self._timing)
            worker.retry_at = now + delay
            return [WorkerRefused(worker=worker_id, reason=reason, delay=delay)]
        refused = WorkerRefused(worker=worker_id, reason=reason, delay=None)
        return [refused, *self._supersede(self.generations[worker_id.generation], worker, now)]

    def _supersede(self, generation: Generation, worker: TrackedWorker, now: float) -> list[Effect]:
        """Start another worker beside one that does not obey, which goes on until that accepts."""
        if worker.successor is not None:
            return []
        worker.successor = _free_index(generation, worker.id.index)
        return self._spawn_at(generation, worker.successor, now)

    def _succeed(self, generation: Generation, worker: TrackedWorker, now: float) -> list[Effect]:
        replaced = (each for each in generation.workers.values() if each.successor == worker.id.index)
        return [
            effect
            for each in tuple(replaced)
            for effect in self._drain_worker(generation, each, self.terms.drain, now)
        ]

    # Draining

    def _drain(self, generation: Generation, within: float, now: float) -> list[Effect]:
        generation.phase, generation.drain_deadline = GenerationState.DRAINING, now + within
        effects: list[Effect] = [GenerationDraining(generation.number, within)]
        for worker in tuple(generation.workers.values()):
            effects += self._drain_worker(generation, worker, within, now)
        return effects + self._forget_if_empty(generation)

    def _drain_worker(
        self, generation: Generation, worker: TrackedWorker, within: float, now: float
    ) -> list[Effect]:
        match worker.phase:
            case WorkerState.WAITING:
                del generation.workers[worker.id.index]
                return []
            case WorkerState.STARTING | WorkerState.READY:
                return self._kill(worker)
            case WorkerState.ENDING:
                return []
            case WorkerState.OPENING | WorkerState.ACCEPTING | WorkerState.DRAINING:
                end = now + within + self._timing.kill_grace
                if worker.phase is WorkerState.DRAINING and worker.deadline is not None:
                    end = min(end, worker.deadline)
                worker.phase, worker.deadline = WorkerState.DRAINING, end
                return [Drain(worker.id, max(0.0, end - self._timing.kill_grace - now))]
            case _:
                assert_never(worker.phase)

    def _cut_surplus(self, now: float) -> list[Effect]:
        draining = sorted(
            (each for each in self._in_phase(GenerationState.DRAINING) if not each.cut), key=_number
        )
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
        for generation in sorted(self._in_phase(*_COMMITTED, GenerationState.DRAINING), key=_number):
            if generation.drain_deadline is None or generation.drain_deadline > now + within:
                effects += self._drain(generation, within, now)
        return effects

    def _forget_if_empty(self, generation: Generation) -> list[Effect]:
        if generation.workers or generation.phase is not GenerationState.DRAINING:
            return []
        del self.generations[generation.number]
        return [GenerationGone(generation.number)]

    # Death

    def _exited(self, worker_id: WorkerId, detail: str, now: float) -> list[Effect]:
        worker = self.worker(worker_id)
        if worker is None or worker.phase is WorkerState.WAITING:
            return []
        generation = self.generations[worker_id.generation]
        if generation.phase is GenerationState.STARTING:
            worker.phase = WorkerState.WAITING  # it has no process any more that could be killed
            return self._fail(generation, f"worker {worker_id.index} {detail}")
        if generation.phase is GenerationState.DRAINING or worker.phase is WorkerState.DRAINING:
            del generation.workers[worker_id.index]
            return self._forget_if_empty(generation)
        return self._replace(generation, worker, detail, now)

    def _replace(
        self, generation: Generation, worker: TrackedWorker, detail: str, now: float
    ) -> list[Effect]:
        since, timing = worker.accepting_since, self._timing
        if since is not None and now - since >= timing.stable:
            worker.failures = 0
        delay = _backoff(worker.failures, timing)
        worker.failures += 1
        died = WorkerDied(worker.id, detail, delay)
        if not delay:
            return [died, *self._spawn(generation, worker, now)]
        worker.phase, worker.deadline, worker.accepting_since = WorkerState.WAITING, now + delay, None
        return [died]

    def _expire(self, worker: TrackedWorker, now: float) -> list[Effect]:
        generation = self.generations.get(worker.id.generation)
        if generation is None:  # given up a moment ago, for another of its workers
            return []
        if worker.phase is WorkerState.WAITING:
            return self._spawn(generation, worker, now)
        if generation.phase is GenerationState.STARTING:
            reason = f"worker {worker.id.index} was not ready within {self._timing.startup:g} s"
            return self._fail(generation, reason)
        return [WorkerStuck(worker.id, worker.phase), *self._kill(worker)]

    def _kill(self, worker: TrackedWorker) -> list[Effect]:
        worker.phase, worker.deadline = WorkerState.ENDING, None
        return [Kill(worker.id)]

    # Take-over

    def _adopt(self, event: Adopt, now: float) -> list[Effect]:
        """Drains go on as they were; what accepts goes on until `Resume`, or until a generation of ours does.

        Where nobody accepts, those that are ready belong to a change that was never committed.
        """
        accepts = any(orphan.phase is WorkerState.ACCEPTING for orphan in event.orphans)
        generation = Generation(
            number=event.generation,
            snapshot=max((orphan.snapshot for orphan in event.orphans), default=0),
            size=event.workers,
            phase=GenerationState.ACCEPTING if accepts else GenerationState.DRAINING,
        )
        self.generations[event.generation] = generation
        for orphan in event.orphans:
            generation.workers[orphan.index] = self._adopted(event.generation, orphan, now)
        if accepts:
            return []
        left = max((orphan.drain_within for orphan in event.orphans), default=0.0)
        generation.drain_deadline = now + left
        ready = [each for each in generation.workers.values() if each.phase is WorkerState.READY]
        return [effect for each in ready for effect in self._kill(each)] + self._forget_if_empty(generation)

    def _adopted(self, generation: int, orphan: Orphan, now: float) -> TrackedWorker:
        worker = TrackedWorker(
            id=WorkerId(generation, orphan.index),
            phase=orphan.phase,
            snapshot=orphan.snapshot,
            obeys=orphan.snapshot,
        )
        if orphan.phase is WorkerState.ACCEPTING:
            worker.accepting_since = now
        if orphan.silent:
            worker.deadline = now + self._timing.silence
        elif orphan.phase is WorkerState.DRAINING:
            worker.deadline = now + orphan.drain_within + self._timing.kill_grace
        return worker

    def _answered(self, event: Answered, now: float) -> list[Effect]:
        """Take what a silent orphan says for true; what it was told meanwhile waits for it."""
        generation = self.generations.get(event.generation)
        known = generation.workers.get(event.orphan.index) if generation else None
        if generation is None or known is None:
            return []
        worker = self._adopted(event.generation, event.orphan, now)
        generation.workers[event.orphan.index] = worker
        if worker.phase is WorkerState.DRAINING:
            return []
        if known.phase is WorkerState.DRAINING:
            worker.phase, worker.deadline = WorkerState.DRAINING, known.deadline
            return []
        if worker.phase is WorkerState.READY:
            return self._open(generation, worker, now)
        return self._tell(worker, generation.snapshot) if worker.obeys != generation.snapshot else []

    def _resume(self, event: Resume, now: float) -> list[Effect]:
        generation = self.accepting
        if generation is None:
            return []
        self.terms, generation.snapshot = event.terms, event.snapshot
        effects: list[Effect] = []
        for worker in tuple(generation.workers.values()):
            effects += self._go_on(generation, worker, now)
        for place in _empty_places(generation):
            effects += self._spawn_at(generation, _free_index(generation, place), now)
        if _all_in(generation, WorkerState.ACCEPTING):
            return effects + self._drain_older(generation, now)
        if self._older(generation):  # they accept as well, until all of this one do
            generation.phase = GenerationState.OPENING
        return effects

    def _go_on(self, generation: Generation, worker: TrackedWorker, now: float) -> list[Effect]:
        if worker.phase is WorkerState.READY:
            return self._open(generation, worker, now)
        if worker.phase is WorkerState.ACCEPTING and worker.obeys != generation.snapshot:
            return self._tell(worker, generation.snapshot)
        return []

    def _workers(self) -> Iterator[TrackedWorker]:
        for generation in tuple(self.generations.values()):
            yield from tuple(generation.workers.values())

    def _in_phase(self, *phases: GenerationState) -> Iterator[Generation]:
        return (each for each in tuple(self.generations.values()) if each.phase in phases)


def _number(generation: Generation) -> int:
    return generation.number


def _all_in(generation: Generation, phase: WorkerState) -> bool:
    """Say whether every worker is in a phase; one that another has replaced does not count."""
    staying = (each for each in generation.workers.values() if each.phase is not WorkerState.DRAINING)
    return all(worker.phase is phase for worker in staying)


def _empty_places(generation: Generation) -> list[int]:
    staying = (each for each in generation.workers.values() if each.phase is not WorkerState.DRAINING)
    taken = {each.id.index % generation.size for each in staying}
    return [place for place in range(generation.size) if place not in taken]


def _free_index(generation: Generation, index: int) -> int:
    """Return an index that nobody has, and that stands for the same share of the limits (`worker_shares`)."""
    while index in generation.workers:
        index += generation.size
    return index


def _has_process(worker: TrackedWorker) -> bool:
    return worker.phase not in (WorkerState.WAITING, WorkerState.ENDING)


def _backoff(failures: int, timing: Timing) -> float:
    if not failures:
        return 0.0
    return float(min(timing.backoff_longest, timing.backoff_first * 2.0 ** min(failures - 1, 16)))
