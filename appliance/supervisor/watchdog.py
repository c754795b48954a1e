"""supervisord's watchdog: checks all heartbeats of one runtime directory, and kills processes that hang.

It is a part of supervisord, not a separate program: supervisord knows its children, restarts killed ones, and
is itself watched by systemd (supervisor/service_manager). Workers are children of proxy masters, the tracker
is a child of vrrp: their parents notice the death and replace them.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.program_table import PROGRAMS
from appliance.core.watchdog import LOOK, HeartbeatReading, HungProcess, Watchdog
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import WATCHDOG, SnapshotError
from appliance.net.boards import heartbeats
from appliance.net.files import snapshots
from appliance.net.process.process_stat import waits_for_processor

_SUFFIX: Final = ".heartbeat"
_NOT_CHILDREN: Final = (
    *{each.heartbeat for program in PROGRAMS for each in program.children},
    *{program.tends for program in PROGRAMS if program.tends is not None},
)


class HeartbeatWatch:
    """The watchdog of one runtime directory; a process may hang for `period` seconds (`watchdog`)."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self.period = WATCHDOG
        self._paths = paths
        self._log = log
        self._watchdog = Watchdog(waits_for_processor)
        self._look_at = 0.0
        self._accepted: tuple[int, int] | None = None
        self._unprepared: set[str] = set()

    def prepare(self, program: str) -> None:
        """Create the heartbeat of a program that is about to start, and expect it to beat.

        If the file cannot be created, the program cannot beat either, and is not watched.
        """
        try:
            heartbeats.prepare(self._paths.heartbeat(program))
        except OSError as error:
            if program not in self._unprepared:
                self._log.warning("heartbeat-unseen", name=program, reason=error.strerror)
            self._unprepared.add(program)
        else:
            self._unprepared.discard(program)

    def _make_room(self, program: str) -> None:
        """Create the heartbeat of a running program; if that fails, the program is not watched."""
        try:
            heartbeats.make_room(self._paths.heartbeat(program))
        except OSError:
            self._unprepared.add(program)
        else:
            self._unprepared.discard(program)

    def look(self, programs: Mapping[str, int], now: float) -> tuple[HungProcess, ...]:
        """Kill the processes that hang and return them; `programs` has the pids of those that should run.

        Call it often: it checks once a second and does nothing in between. `now` is monotonic seconds.
        """
        if now < self._look_at:
            return ()
        self._look_at = now + LOOK
        self._follow_configuration()
        readings = {each.name: each for each in self._readings(programs)}
        hung = self._watchdog.look(readings.values(), now=now, period=self.period)
        for each in hung:
            self._log.error("program-hung", name=each.name, pid=each.pid, silent=round(each.silent, 1))
            _kill(each.pid)
        return hung

    def _follow_configuration(self) -> None:
        """Read the period of the accepted configuration, if that has been replaced."""
        try:
            status = self._paths.accepted.stat()
            if self._accepted != (status.st_ino, status.st_mtime_ns):
                self._accepted = (status.st_ino, status.st_mtime_ns)
                accepted = snapshots.read(self._paths.accepted)
                self.period = accepted.watchdog if accepted else self.period
        except (OSError, SnapshotError):
            return  # it has been moved away, or is damaged: the last period stays

    def _readings(self, programs: Mapping[str, int]) -> Iterator[HeartbeatReading]:
        for name, pid in programs.items():
            yield from self._program(name, pid, heartbeats.read(self._paths.heartbeat(name)))
        for path in self._paths.runtime.glob(f"*{_SUFFIX}"):
            name = path.name.removesuffix(_SUFFIX)
            if name.startswith(_NOT_CHILDREN) and (found := heartbeats.read(path)) and found.is_alive:
                yield HeartbeatReading(name=name, pid=found.pid, beat=found.beat, begun=found.beat > 0)

    def _program(
        self, name: str, pid: int, found: heartbeats.ProcessHeartbeat | None
    ) -> Iterator[HeartbeatReading]:
        if found is None:  # removed, perhaps with its directory: a hanging program cannot create it again
            self._make_room(name)
        if found is not None and found.pid == pid:
            yield HeartbeatReading(name=name, pid=pid, beat=found.beat, begun=found.beat > 0)
        elif name not in self._unprepared:
            yield HeartbeatReading(name=name, pid=pid, beat=0, begun=False)


def _kill(pid: int) -> None:
    """Send SIGKILL to a process.

    Between pidfd_open(2) and the signal its number cannot pass to another process, as the descriptor stands
    for the process itself.
    """
    with contextlib.suppress(OSError):
        held = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(held, signal.SIGKILL)
        finally:
            os.close(held)
