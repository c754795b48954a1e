"""Tracks whether a process of a name runs, as keepalived's track_process does: the name is matched whole.

Those that run are held, so that a death is seen at once and nothing is searched while they live. Where none
is known, /proc is searched at each look.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import gevent

from appliance.net.process.process_lives import ProcessExits
from appliance.net.tracking.tracked_check import Seen, Unseen

_PROC: Final = Path("/proc")
_AT_A_TIME: Final = 100
_ZOMBIES: Final = frozenset("ZX")


class ProcessTrack:
    """The processes whose name (comm) or whose program (the last part of argv[0]) is `name`."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lives = ProcessExits()

    def look(self) -> Seen:
        """Return whether one runs; raises Unseen."""
        found = [pid for pid in self._lives.living() if _matches(pid, self._name)]
        try:
            self._lives.hold(found or _search(self._name))
        except OSError as error:
            raise Unseen(f"no process can be held: {error.strerror}") from error
        living = self._lives.living()
        if not living:
            return Seen(up=False, detail=f"no process {self._name}")
        return Seen(up=True, detail=f"process {', '.join(map(str, living))}")

    def wait(self, seconds: float) -> None:
        """Wait, not longer than the processes live."""
        self._lives.wait(seconds)

    def close(self) -> None:
        """Hold nobody any more."""
        self._lives.close()


def _search(name: str) -> list[int]:
    return [pid for pid in _pids() if _matches(pid, name)]


def _pids() -> Iterator[int]:
    """Yield every process; others get their turn on the way, there may be thousands."""
    numbers = [int(each.name) for each in _PROC.iterdir() if each.name.isdigit()]
    for count, pid in enumerate(numbers, 1):
        if count % _AT_A_TIME == 0:
            gevent.sleep(0)
        yield pid


def _matches(pid: int, name: str) -> bool:
    here = _PROC / str(pid)
    try:
        # pid (comm) state ...: the name may hold anything, parentheses too (proc_pid_stat(5)).
        before, _, after = (here / "stat").read_bytes().rpartition(b")")
        if after.split(maxsplit=1)[0].decode() in _ZOMBIES:
            return False
        if before.partition(b"(")[2] == name.encode():
            return True
        program = (here / "cmdline").read_bytes().partition(b"\0")[0]
    except (OSError, IndexError):  # it ended while we looked
        return False
    return program.rpartition(b"/")[2] == name.encode()
