"""Tracks a program of this appliance: a proxy is up while a worker accepts, others while they answer."""

import time
from pathlib import Path
from typing import Final

import gevent

from appliance.model.paths import Paths
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.boards import BoardError, BoardReader
from appliance.net.control import sockets
from appliance.net.control.sockets import ControlUnavailable
from appliance.net.process.process_lives import ProcessExits
from appliance.net.tracking.tracked_check import Seen, TrackCheck, Unseen, judge_timeout
from appliance.wire.boards import worker_board
from appliance.wire.boards.health_board import BoardFormatError
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines.control import Question

_WORKER: Final = b"appliance.programs.worker"


def program_track(program: str, paths: Paths, *, timeout: float) -> TrackCheck:
    """Return the check of a program."""
    if program.startswith("proxy-"):
        return ProxyTrack(program, paths)
    return AnsweringTrack(program, paths, timeout=timeout)


class ProxyTrack:
    """A proxy, by its workers' boards: they serve also while their master is away."""

    def __init__(self, program: str, paths: Paths) -> None:
        self._program = program
        self._runtime = paths.runtime
        self._lives = ProcessExits()

    def look(self) -> Seen:
        """Return whether a living worker accepts; raises Unseen."""
        boards = [board for path in self._paths() if (board := _read(path))]
        mine = {each.pid: each.phase for each in boards if each.program == self._program}
        try:
            self._lives.hold(pid for pid in mine if _is_worker(pid))
        except OSError as error:
            raise Unseen(f"no process can be held: {error.strerror}") from error
        phases = [mine[pid] for pid in self._lives.living()]
        accepting = phases.count(WorkerPhase.ACCEPTING)
        if accepting:
            return Seen(up=True, detail=f"workers that accept: {accepting}")
        return Seen(up=False, detail=f"none of {len(phases)} workers accepts" if phases else "no worker runs")

    def wait(self, seconds: float) -> None:
        """Wait, not longer than the workers live."""
        self._lives.wait(seconds)

    def close(self) -> None:
        """Hold no worker any more."""
        self._lives.close()

    def _paths(self) -> list[Path]:
        return sorted(self._runtime.glob(f"worker-{self._program}-*-*.board"))


class AnsweringTrack:
    """A program that is asked for its status."""

    def __init__(self, program: str, paths: Paths, *, timeout: float) -> None:
        self._path = paths.control(program)
        self._timeout = timeout

    def look(self) -> Seen:
        """Return whether it answers in time; raises Unseen."""
        started, late = time.monotonic(), gevent.Timeout(self._timeout)
        try:
            with late:
                answer = sockets.ask(self._path, Question(command="status"), timeout=self._timeout)
        except ControlUnavailable as error:
            return Seen(up=False, detail=str(error))
        except gevent.Timeout as error:
            if error is not late:
                raise
            judge_timeout(started, self._timeout)
            return Seen(up=False, detail=f"no answer within {self._timeout:g} s")
        if not answer.ok:
            return Seen(up=False, detail="; ".join(each.message for each in answer.errors))
        return Seen(up=True, detail="it answers")

    def wait(self, seconds: float) -> None:
        """Wait: nothing announces itself."""
        gevent.sleep(seconds)

    def close(self) -> None:
        """Do nothing: no connection is kept."""


def _read(path: Path) -> WorkerBoard | None:
    """Return a worker's board; one that goes away or is damaged is as good as none."""
    try:
        with BoardReader(path) as board:
            return worker_board.decode(board.read())
    except (BoardError, BoardFormatError):
        return None


def _is_worker(pid: int) -> bool:
    """Return whether this is a worker: a killed one leaves its board, and its number may be used again."""
    try:
        return _WORKER in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
