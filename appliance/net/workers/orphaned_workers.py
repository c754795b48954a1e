"""Workers that outlived their master: found by their control sockets, adopted, asked for their listeners."""

import contextlib
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

import gevent
import msgspec

from appliance.core.generations import WorkerId
from appliance.model.paths import Paths
from appliance.net.control.sockets import ControlClient, ControlUnavailable
from appliance.wire.control import Answer, Question

PATIENCE = 10.0
"""Seconds for a worker to answer its new master."""

_STDOUT = 1


class WorkerListener(msgspec.Struct, frozen=True, kw_only=True):
    """A listener as a worker names it."""

    frontend: str
    host: str
    port: int


class WorkerStatus(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of itself, as far as a master needs it. `drain_deadline` is unix seconds."""

    pid: int
    phase: str
    workers: int
    snapshot: int
    drain_deadline: float | None = None
    listeners: tuple[WorkerListener, ...] = ()

    @property
    def drain_within(self) -> float | None:
        """Return how many seconds it may drain, None for one that accepts."""
        if self.phase != "draining":
            return None
        return max(0.0, (self.drain_deadline or 0.0) - time.time())


@dataclass(frozen=True, slots=True, kw_only=True)
class Living:
    """A worker that answered, on a connection that it takes for its master's."""

    worker: WorkerId
    client: ControlClient
    status: WorkerStatus


class WorkerUnusable(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """A worker answers, but not with what was asked."""


def adopt(client: ControlClient, *, patience: float = PATIENCE) -> WorkerStatus:
    """Become the master of a worker, which logs to our standard output from now on.

    Raises ControlUnavailable and WorkerUnusable.
    """
    answer = client.ask(Question(command="adopt"), timeout=patience, descriptors=(_STDOUT,))
    return _converted(answer)


def adopt_all(
    paths: Paths, program: str, *, known: Collection[WorkerId] = (), patience: float = PATIENCE
) -> list[Living]:
    """Adopt every living worker of a program that is not `known`, and remove what dead ones left behind.

    One that listens and does not answer within `patience` seconds is left alone: it can be told nothing,
    but it may hold sessions.
    """
    sockets = {worker: path for worker, path in _places(paths, program, "control") if worker not in known}
    # As of now: a worker that starts while others are waited for has its board before its socket.
    boards = [(worker, path) for worker, path in _places(paths, program, "board") if worker not in known]
    tries = [gevent.spawn(_try, worker, path, patience) for worker, path in sockets.items()]
    gevent.joinall(tries)
    living = [each.value for each in tries if each.value is not None]
    for worker, path in boards:
        if not paths.worker_control(program, worker.generation, worker.index).exists():
            path.unlink(missing_ok=True)
    return sorted(living, key=lambda each: (each.worker.generation, each.worker.index))


def listeners_of(living: Living) -> tuple[int, ...]:
    """Return copies of a worker's listening sockets, now the caller's; raises ControlUnavailable."""
    _, descriptors = living.client.ask_for_descriptors(Question(command="listeners"), timeout=5.0)
    return descriptors


def remove_files(paths: Paths, program: str, worker: WorkerId) -> None:
    """Remove the socket and the board of a dead worker."""
    for path in (paths.worker_control, paths.worker_board):
        path(program, worker.generation, worker.index).unlink(missing_ok=True)


def _try(worker: WorkerId, path: Path, patience: float) -> Living | None:
    try:
        client = ControlClient(path)
    except ControlUnavailable as error:
        if isinstance(error.__cause__, ConnectionRefusedError):
            path.unlink(missing_ok=True)
        return None
    with contextlib.suppress(ControlUnavailable, WorkerUnusable):
        return Living(worker=worker, client=client, status=adopt(client, patience=patience))
    client.close()
    return None


def _places(paths: Paths, program: str, kind: str) -> Iterator[tuple[WorkerId, Path]]:
    for path in sorted(paths.runtime.glob(f"worker-{program}-*-*.{kind}")):
        generation, _, index = path.stem.removeprefix(f"worker-{program}-").partition("-")
        if generation.isdecimal() and index.isdecimal():
            yield WorkerId(int(generation), int(index)), path


def _converted(answer: Answer) -> WorkerStatus:
    if not answer.ok:
        raise WorkerUnusable("; ".join(problem.message for problem in answer.errors))
    try:
        return msgspec.convert(dict(answer.values), WorkerStatus)
    except msgspec.ValidationError as error:
        raise WorkerUnusable(str(error)) from error
