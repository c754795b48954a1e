"""A process that outlives this program, and is found again by its control socket: BIRD, conntrackd.

It cannot beat a heartbeat, so this program beats one for it whenever it answers. If it hangs, or nobody is
left who tends it, supervisord's watchdog kills it.
"""

import contextlib
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from appliance.model.capability import Capability
from appliance.net.boards.heartbeats import Heartbeat
from appliance.net.privileges import capabilities
from appliance.net.privileges.peer_credentials import listening_process
from appliance.net.process.process_stat import process_stat

PATHS: Final = "/usr/sbin:/usr/local/sbin:/usr/bin:/sbin:/bin"
"""Where such programs are."""


class TendedProcess:
    """One such process, whether this run of the program has started it or an earlier one."""

    def __init__(self, *, heartbeat: Path, control: Path) -> None:
        self.control = control
        self._path = heartbeat
        self._heartbeat: Heartbeat | None = None
        self._pid = 0

    def found(self) -> int:
        """Return the process that listens on the control socket, 0 if none does; attend to it."""
        pid = listening_process(self.control) or 0
        if pid and pid != self._pid:
            self._attend(pid)
        return pid

    def start(self, words: list[str], needed: Collection[Capability], *, output: str = os.devnull) -> int:
        """Start it, and return its process id; raises OSError."""
        outputs = [(os.POSIX_SPAWN_OPEN, each, output, os.O_RDWR | os.O_APPEND, 0) for each in (1, 2)]
        with capabilities.passed_on(needed):
            started = os.posix_spawn(
                words[0],
                words,
                {"PATH": PATHS},
                file_actions=[(os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDWR, 0), *outputs],
                setsid=True,
                setsigdef=[signal.SIGTERM, signal.SIGINT, signal.SIGPIPE],
            )
        self._attend(started)
        return started

    def beat(self) -> None:
        """Beat its heartbeat: it has answered."""
        if self._heartbeat is not None:
            self._heartbeat.beat(time.monotonic())

    def end(self) -> bool:
        """Ask it to end; return whether there was anything to end."""
        pid = listening_process(self.control) or 0
        if not pid and self._heartbeat is None:
            return False
        with contextlib.suppress(ProcessLookupError):
            if pid:
                os.kill(pid, signal.SIGTERM)
        self.leave()
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        return True

    def leave(self) -> None:
        """Leave it as it is, to the next run."""
        heartbeat, self._heartbeat, self._pid = self._heartbeat, None, 0
        if heartbeat is not None:
            heartbeat.close()

    def _attend(self, pid: int) -> None:
        self.leave()
        self._pid = pid
        self._heartbeat = Heartbeat(self._path, pid=pid)


def runs(pid: int) -> bool:
    """Return whether a process runs; a child of ours that has ended is reaped."""
    with contextlib.suppress(ChildProcessError):  # an earlier run has started it
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    try:
        return process_stat(pid).state not in "ZX"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Kill a process, if it still runs, and reap a child of ours."""
    if runs(pid):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
