"""The program `vrrp`: takes part in the virtual routers of the snapshot, in one loop that never waits.

No gevent, and nothing that may block: tracked checks and notify commands are a child's (`tracker`). Each
virtual router, or sync group of them, is a RouterGroup; an error in one of them is its own.
"""

import contextlib
import fcntl
import os
import signal
import sys
import time
from typing import IO, Final

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.net import log as logs
from appliance.net import privileges, realtime
from appliance.net.boards import BoardError, BoardReader
from appliance.net.control_loop import LoopControlServer
from appliance.net.loop import Loop
from appliance.programs.vrrp_commands import VrrpCommands
from appliance.programs.vrrp_program import PROGRAM, VrrpProgram
from appliance.wire.health_board import BoardFormatError
from appliance.wire.vrrp_board import VrrpBoard, decode

_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)
_HARMLESS: Final = (signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)  # keepalived knows them: habit sends them


def last_board(paths: Paths, log: FilteringBoundLogger) -> VrrpBoard | None:
    """Return what an earlier life published last, None where there is nothing to read."""
    try:
        with BoardReader(paths.vrrp_board) as board:
            payload = board.read()
        return decode(payload) if payload else None
    except (BoardError, BoardFormatError) as error:
        if paths.vrrp_board.exists():
            log.warning("board-unreadable", reason=str(error))
        return None


def main() -> int:
    """Run until TERM or INT, which hands everything over; 1 when another one has this runtime directory."""
    paths = Paths.from_environment(os.environ)
    log = logs.configure(PROGRAM, level="info", form="json")
    with (paths.runtime / f"{PROGRAM}.lock").open("w") as lock:
        if not _locked(lock):
            log.error("already-running", lock=lock.name)
            return 1
        loop = Loop()
        program = VrrpProgram(
            paths,
            log,
            loop,
            missing=privileges.missing(),
            realtime=realtime.apply(),
            before=last_board(paths, log),
        )
        control = LoopControlServer(
            loop,
            paths.control(PROGRAM),
            VrrpCommands(paths, program, loop).handlers,
            on_error=lambda command, error: program.reports.log.error(
                "command-failed", command=command, exc_info=error
            ),
        )
        punctuality = _punctuality(program, loop)
        loop.on_signals((*_SIGNALS, *_HARMLESS), lambda number: _signalled(program, punctuality, number))
        realtime.settle()
        loop.run()
        control.close()
        program.close()
    return 0


def _punctuality(program: VrrpProgram, loop: Loop) -> realtime.Punctuality:
    """Return what follows the program's scheduling, in its loop, its status and its log."""

    def changed(found: realtime.Realtime) -> None:
        program.realtime = found
        if found.scheduler:
            program.reports.log.info("realtime-again")
        else:
            program.reports.log.error("realtime-given-up", reason=found.refused[-1])

    made = realtime.Punctuality(program.realtime, changed)
    loop.add(made)
    return made


def _signalled(program: VrrpProgram, punctuality: realtime.Punctuality, number: int) -> None:
    if number == signal.SIGXCPU:  # its handler is realtime's own
        punctuality.lost(time.monotonic())
    elif number in _SIGNALS:
        program.stop(time.monotonic())
    elif number in _HARMLESS:
        program.reports.log.warning("signal-ignored", signal=signal.Signals(number).name)


def _locked(lock: IO[str]) -> bool:
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


if __name__ == "__main__":
    sys.exit(main())
