"""Tracks a program: a proxy has a worker that accepts, `announce` serves each shared IP, others answer."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import gevent
import msgspec

from appliance.core.announce.announce_or_withdraw import SharedState
from appliance.model.paths import Paths
from appliance.model.program_names import ANNOUNCE
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.worker_boards import worker_boards
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.process.process_exits import ProcessExits
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown, raise_if_stalled
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.control import Question

STARTING: Final = 4.0
"""Seconds until a program's first answer: it starts together with the tracker.

A virtual router waits longer than this for its first verdicts (core/tracking/first_verdicts), and one taken
over while active keeps its addresses meanwhile.
"""

_AGAIN: Final = 0.1
_WORKER: Final = b"appliance.programs.worker"


def program_track(program: str, paths: Paths, *, timeout: float) -> TrackCheck:
    """Return the check of a program."""
    if program.startswith("proxy-"):
        return ProxyTrack(program, paths)
    if program == ANNOUNCE:
        return AnnounceTrack(program, paths, timeout=timeout)
    return AnsweringTrack(program, paths, timeout=timeout)


class ProxyTrack(TrackCheck):
    """The check of a proxy, by its workers' boards (shared memory): they also serve without their master."""

    def __init__(self, program: str, paths: Paths) -> None:
        self._program = program
        self._runtime = paths.runtime
        self._exits = ProcessExits()

    def look(self) -> LookResult:
        """Return whether a living worker accepts; raises TrackUnknown."""
        mine = {each.pid: each.phase for each in worker_boards(self._runtime, self._program)}
        try:
            self._exits.watch(pid for pid in mine if _is_worker(pid))
        except OSError as error:
            raise TrackUnknown(f"no process can be held: {error.strerror}") from error
        phases = [mine[pid] for pid in self._exits.living()]
        accepting = phases.count(WorkerPhase.ACCEPTING)
        if accepting:
            return LookResult(up=True, detail=f"workers that accept: {accepting}")
        return LookResult(
            up=False, detail=f"none of {len(phases)} workers accepts" if phases else "no worker runs"
        )

    def wait(self, seconds: float) -> None:
        """Wait this many seconds, or until a worker exits."""
        self._exits.wait(seconds)

    def close(self) -> None:
        """Stop watching workers."""
        self._exits.close()


class AnsweringTrack(TrackCheck):
    """The check of any other program: it is asked for its status.

    The first check waits for a starting program, as the first result alone decides, whatever `fall`:
    otherwise a restarted appliance would give away the addresses that it kept.
    """

    def __init__(self, program: str, paths: Paths, *, timeout: float) -> None:
        self._path = paths.control(program)
        self._timeout = timeout
        self._starts_until = time.monotonic() + STARTING

    def look(self) -> LookResult:
        """Return whether it answers in time and reports no trouble; raises TrackUnknown."""
        while not (seen := self._ask()).up and time.monotonic() < self._starts_until:
            gevent.sleep(_AGAIN)
        self._starts_until = 0.0
        return seen

    def _ask(self) -> LookResult:
        started, late = time.monotonic(), gevent.Timeout(self._timeout)
        try:
            with late:
                answer = ask(self._path, Question(command="status"), timeout=self._timeout)
        except ControlUnavailable as error:
            return LookResult(up=False, detail=str(error))
        except gevent.Timeout as error:
            if error is not late:
                raise
            raise_if_stalled(started, self._timeout)
            return LookResult(up=False, detail=f"no answer within {self._timeout:g} s")
        if not answer.ok:
            return LookResult(up=False, detail=answer.reason)
        if trouble := answer.values.get("trouble"):  # of `forward`: why the rules are not as they should be
            return LookResult(up=False, detail=str(trouble))
        return self._judged(answer.values)

    def _judged(self, _: Mapping[str, object]) -> LookResult:
        """Return the result of a status without trouble."""
        return LookResult(up=True, detail="it answers")


class AnnounceTrack(AnsweringTrack):
    """The check of `announce`: virtual IPs that are next hops of shared ones follow their states."""

    def _judged(self, status: Mapping[str, object]) -> LookResult:
        for each in msgspec.convert(status, AnnounceStatus, strict=False).addresses:
            if each.state != SharedState.SERVING:
                return LookResult(up=False, detail=f"{each.name} is {each.state}: {each.reason}")
        return LookResult(up=True, detail="every shared IP is served")


def _is_worker(pid: int) -> bool:
    """Return whether a process is a worker: a killed one leaves its board, and its number is reused."""
    try:
        return _WORKER in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
