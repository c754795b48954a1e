"""Processes whose death is to be noticed at once, each held by its pidfd, ours or anybody's."""

import os
from collections.abc import Iterable

from gevent import get_hub
from gevent.event import Event


class ProcessExits:
    """The living ones among the processes that are held."""

    def __init__(self) -> None:
        self._held: dict[int, _Life] = {}
        self._died = Event()

    def hold(self, pids: Iterable[int]) -> None:
        """Hold exactly these, as far as they live."""
        wanted = frozenset(pids)
        for pid in self._held.keys() - wanted:
            self._held.pop(pid).close()
        for pid in wanted - self._held.keys():
            try:
                self._held[pid] = _Life(pid, self._died)
            except ProcessLookupError:
                continue

    def living(self) -> tuple[int, ...]:
        """Return who lives, by number."""
        for pid in [pid for pid, life in self._held.items() if life.over]:
            self._held.pop(pid).close()
        return tuple(sorted(self._held))

    def wait(self, seconds: float) -> None:
        """Return after this time, or as soon as one of them dies."""
        self._died.wait(seconds)
        self._died.clear()

    def close(self) -> None:
        """Hold nobody any more."""
        self.hold(())


class _Life:
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
