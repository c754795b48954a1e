"""The master of one group's workers: performs what the rollout decides, and answers prepare, commit, abort.

It touches no data. What it holds are listening sockets, processes and their control connections; when it is
killed, all of these live on in the workers, and the next master takes them over.
"""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import assert_never

import gevent
from gevent.event import AsyncResult, Event
from gevent.lock import RLock
from structlog.typing import FilteringBoundLogger

from appliance import __version__
from appliance.core.balancing.worker_shares import Shortage, shortage
from appliance.core.rollout import effects, events
from appliance.core.rollout.generations import Generation, TrackedWorker
from appliance.core.rollout.needs_generation import needs_generation
from appliance.core.rollout.rollout import Rollout
from appliance.core.rollout.states import GenerationState, WorkerId, WorkerState
from appliance.core.rollout.timing import NO_DEADLINE, DrainSettings, Timing
from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Group
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.control.sockets import Call, ControlUnavailable, WithDescriptors
from appliance.net.files import program_failures, snapshots
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.logging import log
from appliance.net.process.limits import open_files, processors
from appliance.net.workers.generation_numbers import GenerationNumbers
from appliance.net.workers.listener_lending import OtherGroups
from appliance.net.workers.listeners import Address, BindProblem, Listeners, ReservedBinds, lost, overlap
from appliance.net.workers.orphaned_workers import LivingWorker, SilentWorker, adopt_all, listeners_of
from appliance.net.workers.removed_virtual_addresses import going_addresses
from appliance.net.workers.worker_processes import WorkerProcesses, WorkerStart
from appliance.wire.lines.control import Answer, AnswerProblem, Question, bad, good
from appliance.wire.lines.worker_arguments import InheritedListener

WORKER = ("-m", "appliance.programs.worker")

_COMMIT_PATIENCE = 20.0  # seconds for a ready generation to say that it accepts
_OBEY_PATIENCE = 20.0  # seconds for workers to answer to a live change
_LINGER = (
    1.0  # seconds that old workers accept on what is closed: handshakes that have begun end in that time
)
_HAND_OVER = 30.0  # the same, where another group's program is about to take it
_LET_GO = 3.0  # seconds for workers to close what a next reload may want to bind

ListeningFrontends = tuple[tuple[str, Address], ...]
"""The frontends of a generation with the addresses at which they listen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedSnapshot:
    """A snapshot that was prepared: with a generation of its own, or live, or with nothing left to serve."""

    snapshot: Snapshot
    generation: int | None = None
    fresh: frozenset[Address] = frozenset()
    changed: bool = True
    borrowed: bool = False


@dataclass(slots=True, eq=False)
class _GenerationOutcome:
    """What becomes of a generation: the reason why it failed or None, and whether it accepts."""

    ready: "AsyncResult[str | None]" = field(default_factory=AsyncResult)
    accepting: Event = field(default_factory=Event)


class ProxyMaster:
    """Generations of workers for one group."""

    def __init__(
        self,
        paths: Paths,
        group: str,
        *,
        numbers: GenerationNumbers,
        logger: FilteringBoundLogger,
        module: Sequence[str] = WORKER,
        timing: Timing | None = None,
    ) -> None:
        self.paths = paths
        self.group = group
        self.program = f"proxy-{group}"
        self.log = logger
        self.timing = timing or Timing()
        self.rollout = Rollout(drain_settings=DrainSettings(drain=120.0, max_draining=10), timing=self.timing)
        self.crew = WorkerProcesses(
            paths, self.program, module=module, report=self.feed, fault=self._fault, log=logger
        )
        self._lenders = OtherGroups(paths, self.program)
        self.listeners = Listeners(self._lenders.lend)
        self.services: dict[int, ListeningFrontends] = {}
        self.current: Snapshot | None = None
        self.pending: PreparedSnapshot | None = None
        self.failure: ProgramFailure | None = None
        self.stopping = False
        self.retired = False
        self.moved = Event()
        self._numbers = numbers
        self._outcomes: dict[int, _GenerationOutcome] = {}
        self._shortage: Shortage | None = None
        self.turn = RLock()
        self._clock = Event()
        self._answered = Event()
        self._taken = 0
        self._versions: dict[int, set[str]] = {}
        self.broken = False
        gevent.spawn(self._tick).link_exception(self._fault)

    # Events in, effects out

    def feed(self, event: events.Event) -> None:
        """Give the rollout an event and do what it says; never gives way to another greenlet."""
        self._perform(self.rollout.handle(event, now=time.monotonic()))

    def _perform(self, orders: Iterable[effects.Effect]) -> None:
        for effect in orders:
            self._perform_one(effect)
        self._clock.set()
        self.moved.set()
        self._note_obedience()

    def _tick(self) -> None:
        while True:
            deadline = self.rollout.deadline
            self._clock.wait(None if deadline is None else max(0.0, deadline - time.monotonic()))
            self._clock.clear()
            if (deadline := self.rollout.deadline) is not None and deadline <= time.monotonic():
                self._perform(self.rollout.tick(now=time.monotonic()))

    def _fault(self, greenlet: gevent.Greenlet) -> None:
        """End the program, after a bug ended a part of it: its successor takes over what serves."""
        self.log.error("internal-error", exc_info=greenlet.exception)
        self.broken = True
        self.moved.set()

    def _perform_one(self, effect: effects.Effect) -> None:  # noqa: C901, PLR0912  # one case for each effect
        match effect:
            case effects.Spawn(worker=worker, snapshot=snapshot, workers=workers):
                self.crew.spawn(worker, self._job(worker.generation, snapshot, workers))
            case effects.Accept(worker):
                self.crew.accept(worker)
            case effects.Apply(worker, snapshot):
                self.crew.apply(worker, snapshot)
            case effects.Drain(worker, within):
                self.crew.order(worker, self._drain_order(worker, within))
            case effects.Kill(worker):
                self.crew.kill(worker)
            case effects.GenerationReady(generation):
                self._outcomes[generation].ready.set(None)
                self.log.info("generation-ready", generation=generation)
            case effects.GenerationFailed(generation, reason):
                self._outcomes.pop(generation).ready.set(reason)
                self.services.pop(generation)
                self.log.error("generation-failed", generation=generation, reason=reason)
            case effects.GenerationAccepting(generation):
                self.log.info("generation-accepting", generation=generation)
                if outcome := self._outcomes.pop(generation, None):  # none for one that was adopted
                    outcome.accepting.set()
                self._close_unused()
            case effects.GenerationDraining(generation, within):
                self.log.info("generation-draining", generation=generation, seconds=_bounded(within))
            case effects.GenerationCut(generation):
                limit = self.rollout.drain_settings.max_draining
                self.log.warning("generation-cut", generation=generation, max_draining=limit)
            case effects.GenerationGone(generation):
                self.services.pop(generation, None)
                self.log.info("generation-gone", generation=generation)
            case effects.WorkerDied(worker, detail, delay):
                self._log_death(worker, detail, delay)
            case effects.WorkerStuck(worker, state):
                place = {"generation": worker.generation, "worker": worker.index}
                self.log.error("worker-stuck", **place, phase=state)
            case effects.WorkerRefused(worker=worker, reason=reason, delay=delay):
                place = {"generation": worker.generation, "worker": worker.index}
                self.log.error("worker-refused", **place, reason=reason, again_in=delay)
            case effects.Unexpected(event=event, state=state, worker=worker):
                place = {"generation": worker.generation, "worker": worker.index} if worker else {}
                self.log.error("rollout-event-unexpected", **place, kind=event, state=state)
            case _:
                assert_never(effect)

    def _log_death(self, worker: WorkerId, detail: str, delay: float) -> None:
        self.log.error(
            "worker-died",
            generation=worker.generation,
            worker=worker.index,
            reason=detail,
            again_in=round(delay, 3),
        )

    def _job(self, generation: int, snapshot: int, workers: int) -> WorkerStart:
        held = set(self.listeners)
        return WorkerStart(
            group=self.group,
            workers=workers,
            snapshot=snapshot,
            listeners=tuple(
                InheritedListener(
                    frontend=frontend,
                    host=address.host,
                    port=address.port,
                    fd=self.listeners.fileno(address),
                )
                for frontend, address in self.services[generation]
                if address in held
            ),
        )

    # Take-over

    def take_over(self) -> bool:
        """Adopt the workers that a dead master left, with their listeners; say whether one accepts.

        It has the turn: before it ends, addresses that we shall hold would be in use by workers of ours.
        """
        with self.turn:
            living, silent = adopt_all(self.paths, self.program)
            for each in living:
                self._adopt_listeners(each)
            generations = {each.worker.generation for each in living} | {
                each.worker.generation for each in silent
            }
            for generation in sorted(generations):
                self._adopt(
                    generation,
                    [each for each in living if each.worker.generation == generation],
                    [each for each in silent if each.worker.generation == generation],
                )
            return self.rollout.accepting is not None

    def _adopt_listeners(self, living: LivingWorker) -> None:
        """Own what a worker listens on. All of a generation share theirs: after the first it is cheap."""
        if living.status.phase == "draining":
            return
        try:
            self.listeners.take_over(listeners_of(living))
        except ControlUnavailable as error:
            self.log.warning("listeners-not-received", reason=str(error))

    def _adopt(self, generation: int, living: list[LivingWorker], silent: list[SilentWorker]) -> None:
        for each in living:
            self.crew.adopt(each)
        for hanging in silent:
            place = {"generation": generation, "worker": hanging.worker.index}
            self.log.warning("worker-silent", **place, pid=hanging.pid, phase=hanging.state)
            self.crew.follow(hanging)
        self._numbers.seen(generation)
        self.services[generation] = _service_of(living, silent)
        self._versions[generation] = {each.status.version for each in living}
        self.log.warning("generation-adopted", generation=generation, workers=len(living), silent=len(silent))
        workers = max((*(each.status.workers for each in living), *(each.orders.workers for each in silent)))
        orphans = (
            *(each.orphan for each in living),
            *(each.orphan for each in silent),
        )
        self.feed(events.Adopt(generation=generation, workers=workers, orphans=orphans))

    def start(self, snapshot: Snapshot) -> tuple[AnswerProblem, ...]:
        """Run a snapshot that was accepted before; the problems are empty when it does.

        Adopted workers that were started for it, or for one that differs in nothing but what they take
        while they run, go on as its generation.
        """
        with self.turn:
            if self.current is not None:
                return ()
            if (generation := self.rollout.accepting) and self._serves(generation, snapshot):
                return self._resume(generation.number, snapshot)
            answer = self._begin(snapshot)
            return answer.errors or self._commit().errors

    def _serves(self, generation: Generation, snapshot: Snapshot) -> bool:
        """Say whether an adopted generation can go on as a snapshot's.

        A new version of ours needs new processes, and who replaces a dead worker needs all their listeners.
        """
        held = set(self.listeners)
        return (
            snapshot.group(self.group) is not None
            and self._versions[generation.number] == {__version__}
            and all(address in held for _, address in self.services[generation.number])
            and all(self._obeyable(each.applied, snapshot) for each in generation.workers.values())
        )

    def _obeyable(self, obeyed: int, snapshot: Snapshot) -> bool:
        if obeyed == snapshot.number:
            return True
        try:
            before = snapshots.read(self.paths.snapshot(obeyed))
        except SnapshotError:
            return False
        return before is not None and not needs_generation(before=before, after=snapshot, group=self.group)

    def _resume(self, generation: int, snapshot: Snapshot) -> tuple[AnswerProblem, ...]:
        self._obey_log(snapshot)
        self.current = snapshot
        self.log.info("generation-resumed", generation=generation, configuration=snapshot.number)
        self.feed(events.Resume(snapshot=snapshot.number, drain_settings=_drain_settings(snapshot)))
        self._close_unused()
        self._obeyed()
        return ()

    # Commands

    def prepare(self, call: Call) -> Answer:
        """Do everything that can fail for a snapshot: bind what is new, get a generation ready."""
        number = call.question.integer("snapshot")
        with self.turn:
            if self.stopping:
                return bad(f"{self.program} is stopping")
            if self.pending and self.pending.snapshot.number == number:
                return self._prepared(self.pending)
            self._drop()
            return self._begin(snapshots.proposed(self.paths, number))

    def commit(self, call: Call) -> Answer:
        """Make the prepared snapshot real; returns when its generation accepts."""
        number = call.question.integer("snapshot")
        with self.turn:
            if self.pending and self.pending.snapshot.number == number:
                return self._commit()
            if self.current and self.current.number == number:
                return good(changed=False)
            return bad(f"snapshot {number} is not prepared")

    def abort(self, call: Call) -> Answer:
        """Forget what was prepared."""
        call.question.integer("snapshot")
        with self.turn:
            self._drop()
        return good()

    def give_up_pending(self) -> None:
        """Forget what was prepared, now, whoever has the turn: the program ends."""
        self._drop()

    def _begin(self, snapshot: Snapshot) -> Answer:
        group = snapshot.group(self.group)
        if group is None:
            return self._hold(PreparedSnapshot(snapshot=snapshot, changed=not self.retired))
        binds = tuple(dict.fromkeys(bind for frontend in group.frontends for bind in frontend.binds))
        going = going_addresses(self.current, snapshot, self.paths)
        if going and (problems := lost(binds, going)):
            return bad(*_bind_problems(group, problems))
        if self.current and not needs_generation(before=self.current, after=snapshot, group=self.group):
            return self._begin_live(self.current, snapshot)
        reserved = self.listeners.reserve(binds, virtual=snapshot.virtual_addresses)
        if not isinstance(reserved, ReservedBinds):
            return bad(*_bind_problems(group, reserved))
        for note in reserved.notes:
            self.log.warning("bind-degraded", bind=str(note.bind), reason=note.reason)
        try:
            generation = self._numbers.next()
        except OSError as error:
            self.listeners.release(reserved.fresh)
            return bad(f"{self.program}: the number of a generation cannot be written: {error.strerror}")
        return self._begin_generation(generation, snapshot, group, reserved)

    def _begin_live(self, before: Snapshot, snapshot: Snapshot) -> Answer:
        """Have the workers say whether they can take it, while nothing has changed yet."""
        reasons = self.crew.check(snapshot.number, self.rollout.serving, patience=_OBEY_PATIENCE)
        if reasons:
            return bad(*(f"worker {each.generation}.{each.index}: {why}" for each, why in reasons.items()))
        return self._hold(PreparedSnapshot(snapshot=snapshot, changed=not snapshots.same(before, snapshot)))

    def _begin_generation(
        self, generation: int, snapshot: Snapshot, group: Group, reserved: ReservedBinds
    ) -> Answer:
        self.services[generation] = tuple(_service(group, reserved))
        outcome = self._outcomes[generation] = _GenerationOutcome()
        workers = group.workers or processors()
        self._check_open_files(group, workers)
        self.log.info(
            "generation-started", generation=generation, configuration=snapshot.number, workers=workers
        )
        pending = PreparedSnapshot(
            snapshot=snapshot,
            generation=generation,
            fresh=reserved.fresh,
            borrowed=self.listeners.borrowed_last,
        )
        self.pending = pending
        self.feed(events.Prepare(generation=generation, snapshot=snapshot.number, workers=workers))
        reason = outcome.ready.get()  # the rollout bounds it: ready or failed within its startup time
        if reason is None:
            return self._prepared(pending)
        if self.pending is pending:
            self._drop()
        return bad(
            AnswerProblem(message=f"{self.program}: generation {generation}: {reason}", path=group.name)
        )

    def _check_open_files(self, group: Group, workers: int) -> None:
        """Say where files allow fewer sessions than a reload wants; of a start `run` says it."""
        found = shortage(group, workers=workers, open_files=open_files())
        if found and found != self._shortage and self.current is not None:
            self.log.warning("open-files-low", workers=workers, **asdict(found))
        self._shortage = found

    def _hold(self, pending: PreparedSnapshot) -> Answer:
        self.pending = pending
        return self._prepared(pending)

    def _prepared(self, pending: PreparedSnapshot) -> Answer:
        return good(changed=pending.changed, generation=pending.generation)

    def _commit(self) -> Answer:
        pending, self.pending = self.pending, None
        if pending is None:
            return bad("nothing is prepared")
        try:
            self.listeners.open(pending.fresh)
        except OSError as error:
            self.pending = pending
            self._drop()
            return bad(f"{self.program}: what was bound cannot be listened on: {error.strerror}")
        if self.current is None or self.current.log != pending.snapshot.log:
            self._obey_log(pending.snapshot)
        self.current, self.failure = pending.snapshot, None
        program_failures.remove(self.paths, self.program)
        drain_settings = _drain_settings(pending.snapshot)
        if pending.snapshot.group(self.group) is None:
            self.retire(within=drain_settings.drain)
            self._settle()
            return good(changed=pending.changed)
        if pending.generation is None:
            self.feed(events.ApplyLive(snapshot=pending.snapshot.number, drain_settings=drain_settings))
            problems = self._obeyed()
            return bad(*problems) if problems else good(changed=pending.changed)
        answer = self._open(pending.generation, drain_settings)
        if pending.borrowed:
            self._lenders.taken(pending.snapshot.number)
        return answer

    def _open(self, generation: int, drain_settings: DrainSettings) -> Answer:
        self.retired = False
        accepting, held = self._outcomes[generation].accepting, set(self.listeners)
        self.feed(events.Commit(drain_settings))
        if not accepting.wait(_COMMIT_PATIENCE):
            return bad(f"{self.program}: generation {generation} does not accept with all its workers yet")
        if held - set(self.listeners):
            self._settle()
        return good(changed=True, generation=generation)

    def _obeyed(self) -> tuple[AnswerProblem, ...]:
        """Return, once every worker has answered to a live change, what those say that did not take it."""
        deadline = time.monotonic() + _OBEY_PATIENCE
        while any(not each.refusal for each in self.rollout.not_applied):
            self._answered.clear()
            if not self._answered.wait(max(0.0, deadline - time.monotonic())):
                break
        problems = tuple(map(self._disobedience, self.rollout.not_applied))
        if problems:
            self.failure = ProgramFailure(since=time.time(), problems=problems)
        return problems

    def _disobedience(self, worker: TrackedWorker) -> AnswerProblem:
        reason = worker.refusal or "it does not answer"
        place = f"worker {worker.id.generation}.{worker.id.index}"
        return AnswerProblem(
            message=f"{self.program}: {place} goes on with snapshot {worker.applied}: {reason}"
        )

    def _note_obedience(self) -> None:
        """Forget a refusal once it has been made good: the worker was told again, or replaced."""
        self._answered.set()
        if self.failure and self.current and not self.rollout.not_applied:
            self.failure = None

    def _obey_log(self, snapshot: Snapshot) -> None:
        self.log = log.obey(self.program, snapshot.log)
        self.crew.log = self.log

    def retire(self, *, within: float) -> None:
        """Stop serving: every generation drains, nothing listens any more."""
        self.retired = True
        self._drop()
        self.feed(events.Retire(within=within))
        self._close_unused()

    def _close_unused(self) -> None:
        for address in self.listeners.keep_only(self._wanted() | set(self._awaited())):
            self.log.info("listener-closed", bind=str(address))

    def _wanted(self) -> set[Address]:
        """Return what generations that do not drain listen on."""
        return {
            address
            for number, service in self.services.items()
            if number in self.rollout.generations
            and self.rollout.generations[number].state is not GenerationState.DRAINING
            for _, address in service
        }

    # What closes, and what another group gets

    def _drain_order(self, worker: WorkerId, within: float) -> Question:
        """Order to drain, and to accept for a moment, or until another group does, on what closes."""
        served = {address for _, address in self.services.get(worker.generation, ())}
        closing = set[Address]() if self.stopping else served - self._wanted()
        linger = _HAND_OVER if closing & set(self._awaited()) else _LINGER
        values = {
            "deadline": time.time() + within,
            "linger": [(each.host, each.port) for each in closing],
            "linger_s": linger,
        }
        return Question(command="drain", values=values)

    def _awaited(self) -> list[Address]:
        """Return what we hold and another group has now, whose program does not accept on it yet."""
        if self.current is None or self.stopping or self._taken >= self.current.number:
            return []
        others = (group for group in self.current.groups if group.name != self.group)
        binds = [bind for group in others for each in group.frontends for bind in each.binds]
        closing = [each for each in self.listeners if each not in self._wanted()]
        return [each for each in closing if any(overlap(bind, each) for bind in binds)]

    def lend(self, call: Call) -> WithDescriptors:
        """Give copies of what is listened on at a port; needs no turn, as both may be in one."""
        found = self.listeners.at(call.question.integer("port"))
        return WithDescriptors(answer=good(lent=len(found)), descriptors=tuple(found.values()))

    def taken(self, call: Call) -> Answer:
        """Let go of what another group's program accepts on by now."""
        self._let_go(call.question.integer("snapshot"))
        return good()

    def _let_go(self, snapshot: int) -> None:
        self._taken = max(self._taken, snapshot)
        if self.current is None or self._taken < self.current.number:
            return  # we come to that snapshot later
        for generation in self.rollout.generations.values():
            for worker in generation.workers.values():
                if worker.state is WorkerState.DRAINING:
                    self.crew.order(worker.id, Question(command="let-go"))
        self._close_unused()
        self.moved.set()

    def _settle(self) -> None:
        if awaited := self._awaited():
            number = self.current.number if self.current else 0
            self.log.info("listeners-kept", binds=[str(each) for each in awaited], seconds=_HAND_OVER)
            gevent.spawn_later(_HAND_OVER, self._let_go, number)
            return
        self.crew.settle(patience=_LET_GO)

    def _drop(self) -> None:
        pending, self.pending = self.pending, None
        if pending is None:
            return
        self.feed(events.Abort())
        if pending.generation is not None:
            self.crew.wait_gone(pending.generation, patience=_LET_GO)  # they hold what is closed here too
            self.services.pop(pending.generation, None)
            if outcome := self._outcomes.pop(pending.generation, None):
                outcome.ready.set("given up")
        self.listeners.release(pending.fresh & set(self.listeners))


def _bounded(seconds: float) -> float | None:
    return None if seconds >= NO_DEADLINE else round(seconds, 3)


def _drain_settings(snapshot: Snapshot) -> DrainSettings:
    return DrainSettings(drain=snapshot.drain, max_draining=snapshot.reload.max_draining)


def _service_of(living: Iterable[LivingWorker], silent: Iterable[SilentWorker]) -> ListeningFrontends:
    said = {(each.frontend, each.host, each.port) for worker in living for each in worker.status.listeners}
    for worker in silent:
        said |= {(each.frontend, each.host, each.port) for each in worker.orders.listeners}
    return tuple((frontend, Address(host, port)) for frontend, host, port in sorted(said))


def _service(group: Group, reserved: ReservedBinds) -> Iterator[tuple[str, Address]]:
    for frontend in group.frontends:
        addresses = (address for bind in frontend.binds for address in reserved.addresses[bind])
        for address in dict.fromkeys(addresses):
            yield frontend.name, address


def _bind_problems(group: Group, problems: Iterable[BindProblem]) -> Iterator[AnswerProblem]:
    for problem in problems:
        name = next(each.name for each in group.frontends if problem.bind in each.binds)
        yield AnswerProblem(message=str(problem), path=f"{group.name}.frontends.{name}.bind")
