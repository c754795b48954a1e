"""Workers that outlived their master: found by their control sockets, adopted, asked for their listeners.

They are not children of the new master, so the kernel does not report them to it. Their sockets may have been
removed, so /proc is searched as well: a worker recreates its socket within a second, and is waited for.
"""

import contextlib
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gevent

from appliance.core.rollout.events import Orphan
from appliance.core.rollout.states import WorkerId, WorkerState
from appliance.model.paths import Paths
from appliance.net.boards import ended_workers
from appliance.net.boards.board_content import content
from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.net.process.own_processes import own_processes
from appliance.wire.boards import worker_board
from appliance.wire.lines import status_answer, worker_arguments
from appliance.wire.lines.control import Answer, Question
from appliance.wire.lines.status_answer import StatusAnswerError
from appliance.wire.lines.worker_arguments import WorkerArguments, WorkerArgumentsError
from appliance.wire.lines.worker_status import WorkerStatus

ANSWER_TIMEOUT = 10.0
"""Seconds for a worker to answer its new master."""

_STDOUT: Final = 1
_LOOK_AGAIN: Final = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class LivingWorker:
    """A worker that answered, on a connection that it takes for its master's."""

    worker: WorkerId
    client: ControlClient
    status: WorkerStatus

    @property
    def orphan(self) -> Orphan:
        """Return the rollout's view of it."""
        return orphan(self.status, self.worker.index, now=time.time())


@dataclass(frozen=True, slots=True, kw_only=True)
class SilentWorker:
    """A worker that runs but does not answer: it hangs, or cannot create its socket."""

    worker: WorkerId
    pid: int
    orders: WorkerArguments
    state: WorkerState

    @property
    def orphan(self) -> Orphan:
        """Return the rollout's view of it; of its drain it is only known that it ends."""
        return Orphan(index=self.worker.index, snapshot=self.orders.snapshot, state=self.state, silent=True)


class WorkerUnusable(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """A worker answers, but not with what was asked."""


def orphan(status: WorkerStatus, index: int, *, now: float) -> Orphan:
    """Return the rollout's view of a worker that answered; `now` is Unix seconds."""
    left = max(0.0, status.drain_deadline - now)
    return Orphan(index=index, snapshot=status.snapshot, state=WorkerState(status.phase), drain_within=left)


def adopt(client: ControlClient, *, timeout: float = ANSWER_TIMEOUT) -> WorkerStatus:
    """Become the master of a worker, and its log. Raises ControlUnavailable and WorkerUnusable."""
    answer = client.ask(Question(command="adopt"), timeout=timeout, descriptors=(_STDOUT,))
    return _converted(answer)


def adopt_all(
    paths: Paths, program: str, *, known: Collection[WorkerId] = (), timeout: float = ANSWER_TIMEOUT
) -> tuple[list[LivingWorker], list[SilentWorker]]:
    """Adopt every living worker of a program that is not `known`, and remove what dead ones left behind.

    A worker that does not answer within `timeout` seconds is left alone: it takes no commands, but may hold
    sessions. A worker that was starting when its master died exits meanwhile.
    """
    # As of now: a worker that starts while others are waited for has its board before its socket.
    boards = {worker for worker, _ in _places(paths, program, "board") if worker not in known}
    deadline = time.monotonic() + timeout
    living: dict[WorkerId, LivingWorker] = {}
    while True:
        living |= _adopt_answering(paths, program, {*known, *living}, deadline - time.monotonic())
        silent = [each for each in _running(paths, program) if each.worker not in {*known, *living}]
        others = boards - living.keys() - {each.worker for each in silent}
        dead = {
            each for each in others if not paths.worker_control(program, each.generation, each.index).exists()
        }
        # A process that dies may not refuse connections yet: the next try removes its socket.
        if (not silent and dead == others) or time.monotonic() >= deadline:
            break
        gevent.sleep(_LOOK_AGAIN)
    for worker in dead:
        remove_files(paths, program, worker)
    return sorted(living.values(), key=_place), sorted(silent, key=_place)


def find(paths: Paths, program: str, worker: WorkerId) -> LivingWorker | None:
    """Adopt one worker; return None while it does not answer."""
    return _try(worker, paths.worker_control(program, worker.generation, worker.index), ANSWER_TIMEOUT)


def listeners_of(living: LivingWorker) -> tuple[int, ...]:
    """Return copies of a worker's listening sockets, which the caller owns; raises ControlUnavailable."""
    _, descriptors = living.client.ask_for_descriptors(Question(command="listeners"), timeout=5.0)
    return descriptors


def remove_files(paths: Paths, program: str, worker: WorkerId) -> None:
    """Remove the socket, the heartbeat and the board of a dead worker, once its counts are saved."""
    ended_workers.keep_counts(paths, program, worker)
    for path in (paths.worker_control, paths.worker_board, paths.worker_events, paths.worker_heartbeat):
        path(program, worker.generation, worker.index).unlink(missing_ok=True)


def _place(each: LivingWorker | SilentWorker) -> tuple[int, int]:
    return each.worker.generation, each.worker.index


def _adopt_answering(
    paths: Paths, program: str, known: Collection[WorkerId], timeout: float
) -> dict[WorkerId, LivingWorker]:
    sockets = {worker: path for worker, path in _places(paths, program, "control") if worker not in known}
    tries = [gevent.spawn(_try, worker, path, max(0.1, timeout)) for worker, path in sockets.items()]
    gevent.joinall(tries)
    return {each.value.worker: each.value for each in tries if each.value is not None}


def _running(paths: Paths, program: str) -> Iterator[SilentWorker]:
    for process in own_processes(paths.runtime):
        with contextlib.suppress(WorkerArgumentsError):
            orders = worker_arguments.decode(process.arguments)
            if orders.program == program:
                worker = WorkerId(orders.generation, orders.index)
                state = _state_on_board(paths, program, worker)
                yield SilentWorker(worker=worker, pid=process.pid, orders=orders, state=state)


def _state_on_board(paths: Paths, program: str, worker: WorkerId) -> WorkerState:
    """Return the state that a board shows; without a board a worker is assumed to accept."""
    path = paths.worker_board(program, worker.generation, worker.index)
    board = content(path, worker_board.decode)
    return WorkerState(board.phase.name.lower()) if board else WorkerState.ACCEPTING


def _try(worker: WorkerId, path: Path, timeout: float) -> LivingWorker | None:
    try:
        client = ControlClient(path)
    except ControlUnavailable as error:
        if isinstance(error.__cause__, ConnectionRefusedError):
            path.unlink(missing_ok=True)
        return None
    with contextlib.suppress(ControlUnavailable, WorkerUnusable):
        return LivingWorker(worker=worker, client=client, status=adopt(client, timeout=timeout))
    client.close()
    return None


def _places(paths: Paths, program: str, kind: str) -> Iterator[tuple[WorkerId, Path]]:
    for path in sorted(paths.runtime.glob(f"worker-{program}-*-*.{kind}")):
        generation, _, index = path.stem.removeprefix(f"worker-{program}-").partition("-")
        if generation.isdecimal() and index.isdecimal():
            yield WorkerId(int(generation), int(index)), path


def _converted(answer: Answer) -> WorkerStatus:
    if not answer.ok:
        raise WorkerUnusable(answer.reason)
    try:
        return status_answer.decode(answer.values, WorkerStatus)
    except StatusAnswerError as error:
        raise WorkerUnusable(str(error)) from error
