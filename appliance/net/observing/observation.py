"""Collects the data of a status from one runtime directory, as far as available.

Every question has a short timeout and all are asked at once, so hanging programs cost one wait in total.
"""

import contextlib
import errno
import os
import pkgutil
import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import gevent

from appliance.core.program_table import BY_NAME
from appliance.core.status.observations import (
    Observations,
    SupervisedProgram,
    SupervisordNotAsked,
)
from appliance.core.status.status import DegradedStart, ProgramState
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.boards import ended_workers, heartbeats
from appliance.net.boards.board_content import content
from appliance.net.boards.worker_boards import worker_board_paths
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.files import (
    guest_report_file,
    kept_counts,
    program_failures,
    snapshots,
    state_files,
    take_over_note,
)
from appliance.net.files.degraded import read_degraded
from appliance.net.netlink.connection_room import connection_room
from appliance.net.supervision.supervisor_rpc import ProcessInfo, SupervisorClient, SupervisorUnavailable
from appliance.wire.boards import health_board, vrrp_board, worker_board
from appliance.wire.boards.ended_workers import EndedWorkers, identity, with_ended
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines.control import Answer, Question
from appliance.wire.lines.status_answer import StatusAnswer, StatusAnswerError, decode

TIMEOUT: Final = 2.0
_DOWN: Final = frozenset({"BACKOFF", "EXITED", "FATAL", "UNKNOWN"})


def observe(paths: Paths, *, timeout: float = TIMEOUT) -> Observations:
    """Return everything available; programs that do not answer in `timeout` seconds are left out."""
    programs: dict[str, Answer] = {}
    supervised: list[tuple[SupervisedProgram, ...] | SupervisordNotAsked | str] = []

    def ask_supervisord() -> None:
        supervised.append(_supervised(paths.supervisor_socket, timeout))

    def ask_program(path: Path) -> None:
        with contextlib.suppress(ControlUnavailable):
            programs[path.stem] = ask(path, Question(command="status"), timeout=timeout)

    questions: list[Callable[[], None]] = [ask_supervisord]
    questions += [partial(ask_program, path) for path in program_sockets(paths)]
    gevent.joinall([gevent.spawn(question) for question in questions], raise_error=True)
    boards = observe_boards(paths)
    return replace(
        boards,
        supervised=supervised[0],
        answers={name: each for name, answer in sorted(programs.items()) if (each := _status(name, answer))},
        failures={name: each.reason for name, each in program_failures.read_all(paths.runtime)},
        degraded=_degraded(paths),
        guest=guest_report_file.read(paths),
        set_aside=tuple(
            str(each) for root in (paths.runtime, paths.state) for each in state_files.found_aside(root)
        ),
        accepted_at=_accepted_at(paths),
        starts=kept_counts.read(paths.program_starts),
        vrrp_board=content(paths.vrrp_board, vrrp_board.decode),
        take_overs=take_over_note.read(paths),
        connection_room=connection_room() if _tracks(boards.snapshot) else None,
    )


def _tracks(snapshot: Snapshot | str) -> bool:
    """Return whether a configuration has the kernel track connections."""
    return isinstance(snapshot, Snapshot) and bool(snapshot.linger or snapshot.forwarded)


def observe_boards(paths: Paths) -> Observations:
    """Return the contents of shared files, without asking any program."""
    living, ended = counted_by_workers(paths)
    return Observations(
        snapshot=_snapshot(paths),
        supervised=SupervisordNotAsked.NOT_WANTED,
        answers={},
        health=content(paths.health_board, health_board.decode),
        workers=living,
        ended=ended,
        failures={},
        degraded=None,
    )


def counted_by_workers(paths: Paths) -> tuple[tuple[WorkerBoard, ...], Mapping[str, EndedWorkers]]:
    """Return the boards of live workers, and by program the sums of exited ones.

    Each worker is in one of the two. One may exit between the reads, so the boards are read first: a board
    that is gone by then was already read, and the sums show that they include it.
    """
    boards = tuple(_boards(paths.runtime))
    programs = {each.program for each, _ in boards} | set(_with_sums(paths.runtime))
    ended = {program: ended_workers.load(paths, program) for program in sorted(programs)}
    living = []
    for board, alive in boards:
        if identity(board) in ended[board.program].recent:
            continue
        if alive:
            living.append(board)
        else:
            ended[board.program] = with_ended(ended[board.program], board)
    return tuple(living), ended


def _boards(runtime: Path) -> Iterator[tuple[WorkerBoard, bool]]:
    """Yield the board of every worker, and whether it is alive."""
    for path in worker_board_paths(runtime):
        board = content(path, worker_board.decode)
        if board is not None:
            yield board, _alive(board.pid, path)


def _with_sums(runtime: Path) -> Iterator[str]:
    suffix = Paths(runtime=runtime).ended_workers("").name
    return (path.name.removesuffix(suffix) for path in runtime.glob(f"*{suffix}"))


def _alive(pid: int, board: Path) -> bool:
    """Return whether the worker of a board is alive; its heartbeat says when that process started.

    Without a heartbeat its control socket decides, but that wakes the worker up.
    """
    beat = heartbeats.read(board.with_suffix(".heartbeat"))
    if beat is not None and beat.pid == pid:
        return beat.is_alive
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # another user's process
    # The number may belong to another process by now: if the socket refuses, there is no worker.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as probe:
        try:
            probe.connect(str(board.with_suffix(".control")))
        except ConnectionRefusedError:
            return False
        except OSError:
            return True
    return True


def program_sockets(paths: Paths) -> list[Path]:
    """Return the control sockets of the programs, but not of workers."""
    return [path for path in paths.runtime.glob("[!.]*.control") if not path.name.startswith("worker-")]


def _status(program: str, answer: Answer) -> StatusAnswer | None:
    """Return a status in the type of its program, if valid."""
    if not answer.ok:
        return StatusAnswer()
    own = pkgutil.resolve_name(BY_NAME[program].status) if program in BY_NAME else StatusAnswer
    kinds: tuple[type[StatusAnswer], ...] = (own, StatusAnswer)
    for kind in kinds:
        with contextlib.suppress(StatusAnswerError):
            return decode(answer.values, kind)
    return None


def _supervised(path: Path, timeout: float) -> tuple[SupervisedProgram, ...] | SupervisordNotAsked | str:
    try:
        return tuple(map(_process, SupervisorClient(path, timeout=timeout).processes()))
    except SupervisorUnavailable as error:
        return SupervisordNotAsked.PERMISSION if isinstance(error.__cause__, PermissionError) else str(error)


def _process(info: ProcessInfo) -> SupervisedProgram:
    running = info.state in {"RUNNING", "STARTING"}
    return SupervisedProgram(
        name=info.name,
        state=ProgramState(info.state.lower()),
        pid=info.pid,
        started_at=info.started_at if running else None,
        reason=_why(info),
    )


def _why(info: ProcessInfo) -> str | None:
    if info.state not in _DOWN:
        return None
    return info.spawn_error or f"exit status {info.exit_status}"


def _snapshot(paths: Paths) -> Snapshot | str:
    try:
        return snapshots.for_readers(paths) or f"{paths.accepted}: {os.strerror(errno.ENOENT)}"
    except SnapshotError as error:
        return str(error)


def _accepted_at(paths: Paths) -> float | None:
    """Return when the snapshot was accepted, from the file that all readers may read."""
    for path in (paths.accepted, paths.accepted_for_readers):
        with contextlib.suppress(OSError):
            return path.stat().st_mtime
    return None


def _degraded(paths: Paths) -> DegradedStart | None:
    note = read_degraded(paths)
    return DegradedStart(since=note.since, errors=note.problems) if note else None
