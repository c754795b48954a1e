"""The program `vrrp`: takes part in the virtual routers of the snapshot, in one loop that never waits.

It uses no gevent and does nothing that may block: an advert more than two intervals late makes the peers
claim the addresses (RFC 9568 section 6.1). Tracked checks and notify commands run in a child process
(`tracker`). Each virtual router, or sync group of them, is a `RouterGroup`; a bug in one does not affect the
others.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import IO, Final

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.net.boards.board_content import content
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.boards.heartbeats import PAUSE, Heartbeat
from appliance.net.control.loop_control_server import LoopControlServer
from appliance.net.files import state_files
from appliance.net.files.lock_files import try_lock
from appliance.net.logging.line_limiter import limiter
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.netlink import vrrp_leftovers
from appliance.net.privileges import capabilities
from appliance.net.process import realtime
from appliance.net.process.leftovers import Leftovers
from appliance.net.starting.accepted_log import AcceptedLog
from appliance.vrrp.commands import VrrpCommands
from appliance.vrrp.service import VrrpService
from appliance.vrrp.takeover.predecessor import Predecessor, PredecessorLeavingError
from appliance.vrrp.takeover.resumed_state import EarlierRun
from appliance.vrrp.takeover.take_over import TakeOver
from appliance.wire.boards.vrrp_board import decode

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_KILLED: Final = 2.0  # seconds for a killed process to be gone
_LOOK_AGAIN: Final = 0.005
# keepalived reloads at HUP and writes its state at USR1 and USR2: operators send them by habit.
_IGNORED: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)


def main() -> int:
    """Run until TERM or INT, which hands everything over; return 1 if the runtime directory is unusable."""
    capabilities.keep_from_children(but=capabilities.OTHER_USERS)
    paths = Paths.from_environment(os.environ)
    log = AcceptedLog(VRRP, paths).logger
    place = paths.runtime / f"{VRRP}.lock"
    try:
        state_files.clear_way(place)
        place.touch(mode=0o600)
        place.chmod(0o600)  # a process that can open it can lock it, and prevent the next vrrp from starting
        lock = place.open("w")
    except OSError as error:
        return _given_up(paths, log, error)
    with lock:
        try:
            predecessor = _predecessor(paths, log, lock)
        except PredecessorLeavingError:
            log.error("already-running", lock=lock.name)  # noqa: TRY400  # a fact, no bug
            return 1
        try:
            last = content(paths.vrrp_board, decode, log)
            board = BoardWriter(paths.vrrp_board)
        except OSError as error:
            return _given_up(paths, log, error)
        before = EarlierRun(board=last, predecessor=predecessor)
        return _run(paths, log, before, board, lock)


def _predecessor(paths: Paths, log: FilteringBoundLogger, lock: IO[str]) -> Predecessor | None:
    """Return the `vrrp` running in this runtime directory; None if there is none, and the lock is ours.

    Raises PredecessorLeavingError if another one runs whose place must not be taken.
    """
    met = None if try_lock(lock) else Predecessor.meet(paths, log)
    Leftovers(paths, log).kill_vrrps(but=met.pid if met else 0)
    if met is None:
        _wait_for(lock)
    return met


def _wait_for(lock: IO[str]) -> None:
    until = time.monotonic() + _KILLED
    while not try_lock(lock):
        if time.monotonic() > until:
            raise PredecessorLeavingError
        time.sleep(_LOOK_AGAIN)


def _given_up(paths: Paths, log: FilteringBoundLogger, error: OSError) -> int:
    """Log why the program cannot run, and remove an earlier run's addresses: no program advertises them."""
    where = str(error.filename or paths.runtime)
    log.error("cannot-start", path=where, reason=error.strerror or str(error))
    vrrp_leftovers.remove_all(paths, log)
    return 1


def _run(
    paths: Paths, log: FilteringBoundLogger, before: EarlierRun, board: BoardWriter, lock: IO[str]
) -> int:
    loop = Loop()
    closer = Closer()
    applied = realtime.apply()
    closer.schedule_as_caller()
    program = VrrpService(
        paths,
        log,
        loop,
        realtime=applied,
        before=before,
        board=board,
        closer=closer,
    )
    try:
        control = LoopControlServer(
            loop,
            paths.control(VRRP),
            VrrpCommands(paths, program, loop).handlers,
            on_error=lambda command, error: program.reports.log.error(
                "command-failed", command=command, exc_info=error
            ),
            for_readers={"status"},
        )
    except OSError as error:
        program.close()
        error.filename = str(paths.control(VRRP))  # not the temporary name from before it listens
        return _given_up(paths, log, error)
    heart = HeartbeatTimer(paths.heartbeat(VRRP))
    if heart.trouble:
        log.warning("heartbeat-unseen", reason=heart.trouble)
    loop.add(heart)
    punctuality = _punctuality(program, loop)
    loop.add(limiter())
    loop.on_signals((*_SIGNALS, *_IGNORED), lambda number: _signalled(program, punctuality, number))
    if before.predecessor is not None:
        loop.add(TakeOver(before.predecessor, lock, on_end=program.predecessor_ended))
    realtime.settle()
    loop.run()
    if program.taken_over:
        program.reports.log.info("relieved")
        return 0  # everything else is the successor's by now, the names of board and socket too
    control.close()
    program.close()
    return 0


class HeartbeatTimer:
    """Writes a heartbeat from the loop, as often as it is read: one store in memory, no system call."""

    def __init__(self, path: Path) -> None:
        self.deadline: float | None = 0.0
        self._heartbeat = Heartbeat(path)
        self.trouble = self._heartbeat.trouble

    def tick(self, now: float) -> None:
        """Write the heartbeat, and plan the next one."""
        self._heartbeat.beat(now)
        self.deadline = now + PAUSE


def _punctuality(program: VrrpService, loop: Loop) -> realtime.Punctuality:
    """Return the watch on real-time scheduling, which reports its loss in status and log.

    The kernel sends SIGXCPU to a real-time process that has not slept for longer than RLIMIT_RTTIME.
    """

    def changed(found: realtime.Realtime) -> None:
        program.realtime = found
        if found.scheduler:
            program.reports.log.info("realtime-again")
        else:
            program.reports.log.error("realtime-given-up", reason=found.refused[-1])

    made = realtime.Punctuality(program.realtime, changed)
    loop.add(made)
    return made


def _signalled(program: VrrpService, punctuality: realtime.Punctuality, number: int) -> None:
    if number == signal.SIGXCPU:  # its handler is realtime's own
        punctuality.lost(time.monotonic())
    elif number in _SIGNALS:
        program.stop(time.monotonic())
    elif number in _IGNORED:
        program.reports.log.warning("signal-ignored", signal=signal.Signals(number).name)


if __name__ == "__main__":
    sys.exit(main())
