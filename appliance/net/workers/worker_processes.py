"""The workers of a master: their processes, the control connections to them, and orders under way.

Nothing here decides. Orders to one worker are carried out in the order in which they were given; what
comes of them, and every death, is reported as an event of the rollout.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

import gevent
from gevent.event import AsyncResult
from gevent.queue import Queue
from structlog.typing import FilteringBoundLogger

from appliance.core.rollout.events import (
    Accepted,
    Event,
    Exited,
    OrphanAnswered,
    Ready,
    SnapshotApplied,
    SnapshotRefused,
)
from appliance.core.rollout.states import WorkerId
from appliance.model.paths import Paths
from appliance.net.control.sockets import ControlClient, ControlUnavailable
from appliance.net.workers import child_processes
from appliance.net.workers.orphaned_workers import (
    LivingWorker,
    SilentWorker,
    WorkerUnusable,
    adopt,
    find,
    remove_files,
)
from appliance.wire.lines.control import Answer, AnswerProblem, Question
from appliance.wire.lines.worker_arguments import InheritedListener, WorkerArguments, encode

_PATIENCE: Final = 30.0  # seconds; a worker that does not answer its control socket for so long serves nobody
_LOOK_AGAIN: Final = 0.5  # seconds between two tries to reach one that is silent

Report = Callable[[Event], None]
Then = Callable[[Answer], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """What a new worker is told on its command line."""

    group: str
    workers: int
    snapshot: int
    listeners: tuple[InheritedListener, ...]


@dataclass(slots=True, eq=False)
class _HeldWorker:
    """One worker. `client` is None until it is ready."""

    process: child_processes.WorkerProcess
    client: ControlClient | None = None
    orders: "Queue[tuple[Question, Then]]" = field(default_factory=Queue)
    greenlets: list[gevent.Greenlet] = field(default_factory=list)


class WorkerProcesses:
    """All workers of one program that have a process."""

    def __init__(
        self,
        paths: Paths,
        program: str,
        *,
        module: Sequence[str],
        report: Report,
        fault: Callable[[gevent.Greenlet], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.log = log
        self._fault = fault
        self._paths = paths
        self._program = program
        self._module = tuple(module)
        self._report = report
        self._hands: dict[WorkerId, _HeldWorker] = {}

    def __len__(self) -> int:
        return len(self._hands)

    @property
    def workers(self) -> frozenset[WorkerId]:
        """The places that have a process."""
        return frozenset(self._hands)

    def pid(self, worker: WorkerId) -> int | None:
        """Return the process id of a worker, None while it has none."""
        hand = self._hands.get(worker)
        return hand.process.pid if hand else None

    def spawn(self, worker: WorkerId, job: WorkerStart) -> None:
        """Start a worker; the event Ready or Exited follows."""
        try:
            process, ready = child_processes.spawn(
                self._module,
                lambda ready_fd: encode(self._orders(worker, job, ready_fd)),
                listeners=[listener.fd for listener in job.listeners],
                environment={**os.environ, **self._paths.environment()},
            )
        except OSError as error:
            self._go(self._report, Exited(worker, f"could not be started: {error}"))
            return
        self._watch(worker, _HeldWorker(process=process)).greenlets.append(
            self._go(self._greet, worker, ready)
        )

    def adopt(self, living: LivingWorker) -> None:
        """Take a worker that has answered already; its death is reported as that of one of ours."""
        try:
            process = child_processes.WorkerProcess(living.status.pid)
        except ProcessLookupError:
            living.client.close()
            self._go(self._report, Exited(living.worker, "gone"))
            return
        hand = self._watch(living.worker, _HeldWorker(process=process, client=living.client))
        hand.greenlets.append(self._go(self._work, living.worker, hand))

    def follow(self, silent: SilentWorker) -> None:
        """Take a worker that does not answer: the event OrphanAnswered follows when it does, or Exited."""
        try:
            process = child_processes.WorkerProcess(silent.pid)
        except ProcessLookupError:
            self._go(self._report, Exited(silent.worker, "gone"))
            return
        hand = self._watch(silent.worker, _HeldWorker(process=process))
        hand.greenlets.append(self._go(self._reach, silent.worker, hand))

    def accept(self, worker: WorkerId) -> None:
        """Tell a worker to accept; the event Accepted follows."""
        self.order(worker, Question(command="accept"), lambda _: self._report(Accepted(worker)))

    def apply(self, worker: WorkerId, snapshot: int) -> None:
        """Tell a worker to obey a snapshot; the event SnapshotApplied or SnapshotRefused follows."""

        def refused(answer: Answer) -> None:
            self._report(SnapshotRefused(worker, snapshot, _reason(answer)))

        question = Question(command="apply", values={"snapshot": snapshot})
        self.order(worker, question, lambda _: self._report(SnapshotApplied(worker, snapshot)), refused)

    def check(self, snapshot: int, workers: Iterable[WorkerId], *, patience: float) -> dict[WorkerId, str]:
        """Ask workers whether they could obey a snapshot; return what those say that could not.

        One that dies meanwhile is none of them, as another takes its place.
        """
        question = Question(command="check", values={"snapshot": snapshot})
        asked: dict[WorkerId, AsyncResult[Answer | None]] = {}
        for worker in workers:
            if hand := self._hands.get(worker):
                asked[worker] = result = AsyncResult()
                self.order(worker, question, result.set, result.set)
                hand.greenlets[0].link(lambda _, told=result: told.set(None))
        gevent.wait(list(asked.values()), timeout=patience)
        silent = Answer(ok=False, errors=(AnswerProblem(message="it does not answer"),))
        answers = {worker: result.value if result.ready() else silent for worker, result in asked.items()}
        return {worker: _reason(answer) for worker, answer in answers.items() if answer and not answer.ok}

    def order(
        self, worker: WorkerId, question: Question, then: Then = lambda _: None, refused: Then | None = None
    ) -> None:
        """Tell a worker something; `then` is called when it said that it did it, `refused` when it did not.

        Neither is called for one that dies meanwhile.
        """
        if hand := self._hands.get(worker):
            say = partial(self._log_refusal, worker, question) if refused is None else refused
            hand.orders.put((question, lambda answer: then(answer) if answer.ok else say(answer)))

    def kill(self, worker: WorkerId) -> None:
        """End a worker at once; the event Exited follows."""
        if hand := self._hands.get(worker):
            hand.process.kill()

    def dismiss(self, question: Question, workers: Iterable[WorkerId], *, patience: float) -> None:
        """Tell several workers a last word, on their way to being left, within `patience` seconds."""
        tellings = [gevent.spawn(self._tell, worker, question) for worker in workers]
        gevent.joinall(tellings, timeout=patience)

    def settle(self, *, patience: float) -> None:
        """Return when every worker has closed what it was ordered to so far."""
        self.dismiss(Question(command="settle"), tuple(self._hands), patience=patience)

    def wait_gone(self, generation: int, *, patience: float) -> None:
        """Return when no process of a generation is left."""
        watches = [
            hand.greenlets[0] for worker, hand in self._hands.items() if worker.generation == generation
        ]
        gevent.joinall(watches, timeout=patience)

    def end(self, *, patience: float) -> None:
        """End every worker, by the command `stop` and after `patience` seconds by KILL, and reap them."""
        workers = tuple(self._hands)
        self.dismiss(Question(command="stop"), workers, patience=patience)
        watches = [hand.greenlets[0] for hand in self._hands.values()]
        gevent.joinall(watches, timeout=patience)
        for worker in workers:
            self.kill(worker)
        gevent.joinall(watches, timeout=patience)

    def _orders(self, worker: WorkerId, job: WorkerStart, ready_fd: int) -> WorkerArguments:
        return WorkerArguments(
            program=self._program,
            group=job.group,
            generation=worker.generation,
            index=worker.index,
            workers=job.workers,
            snapshot=job.snapshot,
            listeners=job.listeners,
            ready_fd=ready_fd,
        )

    def _go(self, run: Callable[..., None], *arguments: object) -> gevent.Greenlet:
        """Start a greenlet whose failure is a bug, and reported as one."""
        greenlet = gevent.spawn(run, *arguments)
        greenlet.link_exception(self._fault)
        return greenlet

    def _watch(self, worker: WorkerId, hand: _HeldWorker) -> _HeldWorker:
        self._hands[worker] = hand
        hand.greenlets.append(self._go(self._bury, worker, hand))
        return hand

    def _bury(self, worker: WorkerId, hand: _HeldWorker) -> None:
        detail = hand.process.wait()
        del self._hands[worker]
        gevent.killall(hand.greenlets[1:])
        if hand.client:
            hand.client.close()
        remove_files(self._paths, self._program, worker)
        self._report(Exited(worker, detail))

    def _greet(self, worker: WorkerId, ready: int) -> None:
        """Wait until a worker is ready, become its master, and pass orders on from then."""
        hand = self._hands[worker]
        if not child_processes.wait_ready(ready):
            hand.process.kill()  # it gave up, and might be long about ending
            return
        try:
            path = self._paths.worker_control(self._program, worker.generation, worker.index)
            hand.client = ControlClient(path)
            adopt(hand.client)
        except (ControlUnavailable, WorkerUnusable) as error:
            self._give_up(worker, hand, str(error))
            return
        hand.process.pass_errors_on()  # from now on it has our standard output for that
        self._report(Ready(worker))
        self._work(worker, hand)

    def _reach(self, worker: WorkerId, hand: _HeldWorker) -> None:
        """Try to become the master of a silent worker, for as long as it is let live."""
        while (living := find(self._paths, self._program, worker)) is None:
            gevent.sleep(_LOOK_AGAIN)
        hand.client = living.client
        self._report(OrphanAnswered(generation=worker.generation, orphan=living.orphan))
        self._work(worker, hand)

    def _work(self, worker: WorkerId, hand: _HeldWorker) -> None:
        while True:
            question, then = hand.orders.get()
            try:
                answer = self._ask(hand, question)
            except ControlUnavailable as error:
                self._give_up(worker, hand, str(error))
                return
            then(answer)

    def _ask(self, hand: _HeldWorker, question: Question) -> Answer:
        if hand.client is None:
            raise ControlUnavailable("it was never ready")
        return hand.client.ask(question, timeout=_PATIENCE)

    def _tell(self, worker: WorkerId, question: Question) -> None:
        hand = self._hands.get(worker)
        if hand is None or hand.client is None:
            return
        try:
            hand.client.ask(question, timeout=_PATIENCE)
        except ControlUnavailable:
            return  # gone already, which is as good

    def _give_up(self, worker: WorkerId, hand: _HeldWorker, reason: str) -> None:
        """End a worker that cannot be told anything any more; one that dies anyway is not worth a line."""
        if gevent.wait([hand.greenlets[0]], timeout=0.2):
            return
        self.log.error("worker-unreachable", generation=worker.generation, worker=worker.index, reason=reason)
        hand.process.kill()

    def _log_refusal(self, worker: WorkerId, question: Question, answer: Answer) -> None:
        self.log.error(
            "worker-refused",
            generation=worker.generation,
            worker=worker.index,
            command=question.command,
            reason=_reason(answer),
        )


def _reason(answer: Answer) -> str:
    return "; ".join(problem.message for problem in answer.errors)
