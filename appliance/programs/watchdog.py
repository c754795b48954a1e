"""supervisord's watchdog: looks at all heartbeats of one runtime directory, and kills whoever hangs.

It is a part of supervisord, not a program beside it: supervisord knows its children, restarts what is killed,
and is itself watched by systemd (net/process/service_manager). Workers and the tracker are others' children,
who notice the death and replace them.
"""

import contextlib
import os
import signal
from collections.abc import Iterator, Mapping
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.watchdog import LOOK, HeartbeatReading, HungProcess, Watchdog
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import WATCHDOG, SnapshotError
from appliance.net.boards import heartbeats
from appliance.net.files import snapshots

_SUFFIX: Final = ".heartbeat"
_OTHERS: Final = ("worker-", "tracker")  # who are no children of supervisord's


class HeartbeatWatch:
    """The watchdog of one runtime directory; `period` is seconds, of the configuration that is accepted."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger) -> None:
        self.period = WATCHDOG
        self._paths = paths
        self._log = log
        self._watchdog = Watchdog()
        self._look_at = 0.0
        self._accepted: tuple[int, int] | None = None
        self._unprepared: set[str] = set()

    def prepare(self, program: str) -> None:
        """Expect beats of a program that is about to start; where it has no place for them, none are."""
        try:
            heartbeats.prepare(self._paths.heartbeat(program))
        except OSError as error:
            if program not in self._unprepared:
                self._log.warning("heartbeat-unseen", name=program, reason=error.strerror)
            self._unprepared.add(program)
        else:
            self._unprepared.discard(program)

    def _make_room(self, program: str) -> None:
        """Have a place for the beats of a program that runs; where there is none, none are expected."""
        try:
            heartbeats.make_room(self._paths.heartbeat(program))
        except OSError:
            self._unprepared.add(program)
        else:
            self._unprepared.discard(program)

    def look(self, programs: Mapping[str, int], now: float) -> tuple[HungProcess, ...]:
        """Kill who hangs and return who it was; `programs` are process ids of those that should run.

        To be called often: between looks it does nothing.
        """
        if now < self._look_at:
            return ()
        self._look_at = now + LOOK
        self._follow()
        pulses = {each.name: each for each in self._pulses(programs)}
        hung = self._watchdog.look(pulses.values(), now=now, period=self.period)
        for each in hung:
            self._log.error("program-hung", name=each.name, pid=each.pid, silent=round(each.silent, 1))
            _kill(each.pid)
        return hung

    def _follow(self) -> None:
        """Take the period of the accepted configuration, when there is another one."""
        try:
            status = self._paths.accepted.stat()
            if self._accepted != (status.st_ino, status.st_mtime_ns):
                self._accepted = (status.st_ino, status.st_mtime_ns)
                accepted = snapshots.read(self._paths.accepted)
                self.period = accepted.watchdog if accepted else self.period
        except (OSError, SnapshotError):
            return  # it has been moved away, or is damaged: what held before goes on

    def _pulses(self, programs: Mapping[str, int]) -> Iterator[HeartbeatReading]:
        for name, pid in programs.items():
            yield from self._program(name, pid, heartbeats.read(self._paths.heartbeat(name)))
        for path in self._paths.runtime.glob(f"*{_SUFFIX}"):
            name = path.name.removesuffix(_SUFFIX)
            if name.startswith(_OTHERS) and (life := heartbeats.read(path)) and life.is_lived:
                yield HeartbeatReading(name=name, pid=life.pid, beat=life.beat, begun=life.beat > 0)

    def _program(
        self, name: str, pid: int, life: heartbeats.ProcessHeartbeat | None
    ) -> Iterator[HeartbeatReading]:
        if life is None:  # removed, with its directory perhaps: one that hangs cannot make it again
            self._make_room(name)
        if life is not None and life.pid == pid:
            yield HeartbeatReading(name=name, pid=pid, beat=life.beat, begun=life.beat > 0)
        elif name not in self._unprepared:
            yield HeartbeatReading(name=name, pid=pid, beat=0, begun=False)


def _kill(pid: int) -> None:
    """KILL a process; its number cannot have become another one's meanwhile."""
    with contextlib.suppress(OSError):
        held = os.pidfd_open(pid)
        try:
            signal.pidfd_send_signal(held, signal.SIGKILL)
        finally:
            os.close(held)
