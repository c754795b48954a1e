"""Tracks whether a process with a name runs, as keepalived's track_process does: the whole name must match.

Running ones are watched by pidfd, so that their exit is noticed at once and nothing is searched while they
live. If none is known, each check searches /proc.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import gevent

from appliance.net.process.process_exits import ProcessExits
from appliance.net.process.process_stat import process_stat
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown

_PROC: Final = Path("/proc")
_AT_A_TIME: Final = 100
_ZOMBIES: Final = frozenset("ZX")


class ProcessTrack(TrackCheck):
    """The check of processes whose name (comm) or program (the last part of argv[0]) is `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._exits = ProcessExits()

    def look(self) -> LookResult:
        """Return whether one runs; raises TrackUnknown."""
        found = [pid for pid in self._exits.living() if _matches(pid, self._name)]
        try:
            self._exits.watch(found or [pid for pid in _pids() if _matches(pid, self._name)])
        except OSError as error:
            raise TrackUnknown(f"no process can be held: {error.strerror}") from error
        living = self._exits.living()
        if not living:
            return LookResult(up=False, detail=f"no process {self._name}")
        return LookResult(up=True, detail=f"process {', '.join(map(str, living))}")

    def wait(self, seconds: float) -> None:
        """Wait this many seconds, or until one of the processes exits."""
        self._exits.wait(seconds)

    def close(self) -> None:
        """Stop watching processes."""
        self._exits.close()


def _pids() -> Iterator[int]:
    """Yield every process id; lets other greenlets run in between, as there may be thousands."""
    numbers = [int(each.name) for each in _PROC.iterdir() if each.name.isdigit()]
    for count, pid in enumerate(numbers, 1):
        if count % _AT_A_TIME == 0:
            gevent.sleep(0)
        yield pid


def _matches(pid: int, name: str) -> bool:
    try:
        found = process_stat(pid)
        if found.state in _ZOMBIES:
            return False
        if found.name == name.encode():
            return True
        program = (_PROC / str(pid) / "cmdline").read_bytes().partition(b"\0")[0]
    except OSError:  # it exited meanwhile
        return False
    return program.rpartition(b"/")[2] == name.encode()
