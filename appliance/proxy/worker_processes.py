"""The workers of a master: their processes, the control connections to them, and pending orders.

Nothing is decided here. Each worker has a queue of orders, so that they arrive in the order in which they
were given, and a hanging worker delays no other. Its answers and its death are reported as events of the
rollout; after `Exited` nothing of that process is reported any more.
"""

import os
from collections.abc import Callable, Collection, Iterable, Sequence
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
from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.proxy import child_processes
from appliance.proxy.nursery import Nursery
from appliance.proxy.orphaned_workers import (
    LivingWorker,
    SilentWorker,
    WorkerUnusable,
    adopt,
    find,
    remove_files,
)
from appliance.wire.lines.control import Answer, AnswerProblem, Question
from appliance.wire.lines.worker_arguments import InheritedListener, WorkerArguments, encode

# Seconds. A worker has one loop for its control socket and its traffic: one that does not answer for so long
# serves nobody.
_ANSWER_TIMEOUT: Final = 30.0
_LOOK_AGAIN: Final = 0.5  # seconds between two attempts to reach a silent worker

Report = Callable[[Event], None]
Then = Callable[[Answer], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStart:
    """The command-line arguments of a new worker."""

    group: str
    workers: int
    snapshot: int
    listeners: tuple[InheritedListener, ...]


@dataclass(slots=True, eq=False)
class _HeldWorker:
    """One worker with a process. `client` is None until it is ready.

    The first of `greenlets` waits for its death, and then ends the others.
    """

    process: child_processes.WorkerProcess
    client: ControlClient | None = None
    orders: "Queue[tuple[Question, Then]]" = field(default_factory=Queue)
    greenlets: list[gevent.Greenlet] = field(default_factory=list)


class WorkerProcesses:
    """All workers of one program that have a process.

    `report` is called with the events, `fault` with the greenlets that a bug has ended.
    """

    def __init__(
        self,
        paths: Paths,
        program: str,
        *,
        module: Sequence[str],
        nursery: Nursery | None = None,
        report: Report,
        fault: Callable[[gevent.Greenlet], None],
        log: FilteringBoundLogger,
    ) -> None:
        self.log = log
        self._fault = fault
        self._paths = paths
        self._program = program
        self._module = tuple(module)
        self._nursery = nursery
        self._report = report
        self._held: dict[WorkerId, _HeldWorker] = {}

    def __len__(self) -> int:
        return len(self._held)

    @property
    def workers(self) -> frozenset[WorkerId]:
        """The positions that have a process."""
        return frozenset(self._held)

    def pid(self, worker: WorkerId) -> int | None:
        """Return the process id of a worker, None while it has none."""
        held = self._held.get(worker)
        return held.process.pid if held else None

    def spawn(self, worker: WorkerId, start: WorkerStart) -> None:
        """Start a worker; the event Ready or Exited follows."""
        try:
            process, ready = child_processes.spawn(
                self._module,
                lambda ready_fd: encode(self._arguments(worker, start, ready_fd)),
                listeners=[listener.fd for listener in start.listeners],
                environment={**os.environ, **self._paths.environment()},
                nursery=self._nursery,
            )
        except OSError as error:
            self._run(self._report, Exited(worker, f"could not be started: {error}"))
            return
        self._watch(worker, _HeldWorker(process=process)).greenlets.append(
            self._run(self._become_master, worker, ready)
        )

    def adopt(self, living: LivingWorker) -> None:
        """Become the master of a worker that has answered already; the event Exited follows when it dies."""
        try:
            process = child_processes.WorkerProcess(living.status.pid)
        except ProcessLookupError:
            living.client.close()
            self._gone(living.worker)
            return
        held = self._watch(living.worker, _HeldWorker(process=process, client=living.client))
        held.greenlets.append(self._run(self._send_orders, living.worker, held))

    def adopt_silent(self, silent: SilentWorker) -> None:
        """Watch a worker that does not answer: the event OrphanAnswered follows when it does, or Exited."""
        try:
            process = child_processes.WorkerProcess(silent.pid)
        except ProcessLookupError:
            self._gone(silent.worker)
            return
        held = self._watch(silent.worker, _HeldWorker(process=process))
        held.greenlets.append(self._run(self._wait_answer, silent.worker, held))

    def accept(self, worker: WorkerId) -> None:
        """Order a worker to accept; the event Accepted follows."""
        self.order(worker, Question(command="accept"), lambda _: self._report(Accepted(worker)))

    def apply(self, worker: WorkerId, snapshot: int) -> None:
        """Order a worker to apply a snapshot; the event SnapshotApplied or SnapshotRefused follows."""

        def refused(answer: Answer) -> None:
            self._report(SnapshotRefused(worker, snapshot, answer.reason))

        question = Question(command="apply", values={"snapshot": snapshot})
        self.order(worker, question, lambda _: self._report(SnapshotApplied(worker, snapshot)), refused)

    def check(self, snapshot: int, workers: Iterable[WorkerId], *, timeout: float) -> dict[WorkerId, str]:
        """Ask workers whether they could apply a snapshot; return the reasons of those that could not.

        A worker that dies meanwhile is not among them, as another one replaces it.
        """
        question = Question(command="check", values={"snapshot": snapshot})
        asked: dict[WorkerId, AsyncResult[Answer | None]] = {}
        for worker in workers:
            if held := self._held.get(worker):
                asked[worker] = result = AsyncResult()
                self.order(worker, question, result.set, result.set)
                held.greenlets[0].link(lambda _, done=result: done.set(None))
        gevent.wait(list(asked.values()), timeout=timeout)
        silent = Answer(ok=False, errors=(AnswerProblem(message="it does not answer"),))
        answers = {worker: result.value if result.ready() else silent for worker, result in asked.items()}
        return {worker: answer.reason for worker, answer in answers.items() if answer and not answer.ok}

    def order(
        self, worker: WorkerId, question: Question, then: Then = lambda _: None, refused: Then | None = None
    ) -> None:
        """Send a worker an order; call `then` when it succeeds, `refused` when not, neither if it dies."""
        if held := self._held.get(worker):
            say = partial(self._log_refusal, worker, question) if refused is None else refused
            held.orders.put((question, lambda answer: then(answer) if answer.ok else say(answer)))

    def kill(self, worker: WorkerId) -> None:
        """End a worker at once; the event Exited follows."""
        if held := self._held.get(worker):
            held.process.kill()

    def tell_now(self, question: Question, workers: Iterable[WorkerId], *, timeout: float) -> None:
        """Send an order to workers past their queues; return when all have answered, or after `timeout`."""
        asked = [gevent.spawn(self._tell_one, worker, question) for worker in workers]
        gevent.joinall(asked, timeout=timeout)

    def settle(self, *, timeout: float) -> None:
        """Return when every worker has closed the listening sockets that it was ordered to close so far."""
        self.tell_now(Question(command="settle"), tuple(self._held), timeout=timeout)

    def wait_gone(self, generations: Collection[int], *, timeout: float) -> None:
        """Return when no process of these generations is left, or after `timeout` seconds."""
        watches = [
            held.greenlets[0] for worker, held in self._held.items() if worker.generation in generations
        ]
        gevent.joinall(watches, timeout=timeout)

    def end(self, *, timeout: float) -> None:
        """End every worker, by the command `stop` and after `timeout` seconds by SIGKILL, and reap them."""
        workers = tuple(self._held)
        self.tell_now(Question(command="stop"), workers, timeout=timeout)
        watches = [held.greenlets[0] for held in self._held.values()]
        gevent.joinall(watches, timeout=timeout)
        for worker in workers:
            self.kill(worker)
        gevent.joinall(watches, timeout=timeout)

    def _arguments(self, worker: WorkerId, start: WorkerStart, ready_fd: int) -> WorkerArguments:
        return WorkerArguments(
            program=self._program,
            group=start.group,
            generation=worker.generation,
            index=worker.index,
            workers=start.workers,
            snapshot=start.snapshot,
            listeners=start.listeners,
            ready_fd=ready_fd,
        )

    def _run(self, run: Callable[..., None], *arguments: object) -> gevent.Greenlet:
        """Start a greenlet whose failure is reported as a bug."""
        greenlet = gevent.spawn(run, *arguments)
        greenlet.link_exception(self._fault)
        return greenlet

    def _watch(self, worker: WorkerId, held: _HeldWorker) -> _HeldWorker:
        self._held[worker] = held
        held.greenlets.append(self._run(self._reap, worker, held))
        return held

    def _reap(self, worker: WorkerId, held: _HeldWorker) -> None:
        detail = held.process.wait()
        del self._held[worker]
        gevent.killall(held.greenlets[1:])
        if held.client:
            held.client.close()
        remove_files(self._paths, self._program, worker)
        self._report(Exited(worker, detail))

    def _gone(self, worker: WorkerId) -> None:
        """Save the counts of a worker that died while it was adopted: the next one has another board."""
        remove_files(self._paths, self._program, worker)
        self._run(self._report, Exited(worker, "gone"))

    def _become_master(self, worker: WorkerId, ready: int) -> None:
        """Wait until a worker is ready, become its master, and then pass orders on."""
        held = self._held[worker]
        if not child_processes.wait_ready(ready):
            held.process.kill()  # it gave up, and might take long to exit
            return
        try:
            path = self._paths.worker_control(self._program, worker.generation, worker.index)
            held.client = ControlClient(path)
            adopt(held.client)
        except (ControlUnavailable, WorkerUnusable) as error:
            self._give_up(worker, held, str(error))
            return
        held.process.pass_errors_on()  # from now on it uses our standard output for that
        self._report(Ready(worker))
        self._send_orders(worker, held)

    def _wait_answer(self, worker: WorkerId, held: _HeldWorker) -> None:
        """Try to become the master of a silent worker, until it answers or exits."""
        while (living := find(self._paths, self._program, worker)) is None:
            gevent.sleep(_LOOK_AGAIN)
        held.client = living.client
        self._report(OrphanAnswered(generation=worker.generation, orphan=living.orphan))
        self._send_orders(worker, held)

    def _send_orders(self, worker: WorkerId, held: _HeldWorker) -> None:
        while True:
            question, then = held.orders.get()
            try:
                answer = self._ask(held, question)
            except ControlUnavailable as error:
                self._give_up(worker, held, str(error))
                return
            then(answer)

    def _ask(self, held: _HeldWorker, question: Question) -> Answer:
        if held.client is None:
            raise ControlUnavailable("it was never ready")
        return held.client.ask(question, timeout=_ANSWER_TIMEOUT)

    def _tell_one(self, worker: WorkerId, question: Question) -> None:
        held = self._held.get(worker)
        if held is None or held.client is None:
            return
        try:
            held.client.ask(question, timeout=_ANSWER_TIMEOUT)
        except ControlUnavailable:
            return  # already gone, which is just as good

    def _give_up(self, worker: WorkerId, held: _HeldWorker, reason: str) -> None:
        """Kill a worker that no longer answers; do not log one that dies at that moment."""
        if gevent.wait([held.greenlets[0]], timeout=0.2):
            return
        self.log.error("worker-unreachable", generation=worker.generation, worker=worker.index, reason=reason)
        held.process.kill()

    def _log_refusal(self, worker: WorkerId, question: Question, answer: Answer) -> None:
        self.log.error(
            "worker-refused",
            generation=worker.generation,
            worker=worker.index,
            command=question.command,
            reason=answer.reason,
        )
