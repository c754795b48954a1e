"""The exits of processes, ours or others', noticed at once.

Each process is watched by a pidfd (pidfd_open(2)), which becomes readable at its exit, and which refers to
that process even if its number is reused.
"""

import os
from collections.abc import Iterable

from gevent import get_hub
from gevent.event import Event


class ProcessExits:
    """The watched processes that are alive."""

    def __init__(self) -> None:
        self._watched: dict[int, _ExitWatcher] = {}
        self._died = Event()

    def watch(self, pids: Iterable[int]) -> None:
        """Watch exactly these, if alive; raises OSError if no descriptor is left."""
        wanted = frozenset(pids)
        for pid in self._watched.keys() - wanted:
            self._watched.pop(pid).close()
        for pid in wanted - self._watched.keys():
            try:
                self._watched[pid] = _ExitWatcher(pid, self._died)
            except ProcessLookupError:
                continue

    def living(self) -> tuple[int, ...]:
        """Return the process ids of the live ones, in order."""
        for pid in [pid for pid, process in self._watched.items() if process.over]:
            self._watched.pop(pid).close()
        return tuple(sorted(self._watched))

    def wait(self, seconds: float) -> None:
        """Return after this many seconds, or as soon as one of them exits."""
        self._died.wait(seconds)
        self._died.clear()

    def close(self) -> None:
        """Stop watching."""
        self.watch(())


class _ExitWatcher:
    __slots__ = ("_died", "_pidfd", "_watcher", "over")

    def __init__(self, pid: int, died: Event) -> None:
        self._pidfd = os.pidfd_open(pid)
        self._died = died
        self.over = False
        self._watcher = get_hub().loop.io(self._pidfd, 1)
        self._watcher.start(self._end)

    def close(self) -> None:
        self._watcher.close()
        os.close(self._pidfd)

    def _end(self) -> None:
        self._watcher.stop()
        self.over = True
        self._died.set()
