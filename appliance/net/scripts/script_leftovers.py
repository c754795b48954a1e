"""Kills the leftover processes of a killed tracker's scripts: only their first process dies with it.

Scripts have a mark in their environment: the runtime directory, and the leader of their process group. A
process with the mark that is still in that group is killed. A daemon that a script started in another group
survives.
"""

import contextlib
import os
import signal
from pathlib import Path
from typing import Final

MARK: Final = "APPLIANCE_SCRIPT"


def mark(runtime: Path, leader: int) -> dict[str, str]:
    """Return the environment variable that marks the processes of a script."""
    return {MARK: f"{runtime}:{leader}"}


def end_leftovers(runtime: Path) -> int:
    """Kill leftover processes of an earlier tracker's scripts in this runtime directory; return how many."""
    return sum(_end(int(each.name), runtime) for each in Path("/proc").iterdir() if each.name.isdigit())


def _end(pid: int, runtime: Path) -> bool:
    with contextlib.suppress(OSError, ValueError):  # it has exited, or is not ours
        pidfd = os.pidfd_open(pid)
        try:
            leader = _leader(pid, runtime)
            if leader is None or os.getpgid(pid) != leader:
                return False
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)
        return True
    return False


def _leader(pid: int, runtime: Path) -> int | None:
    """Return the leader of the script that a process belongs to, None for any other process."""
    start = f"{MARK}={runtime}:".encode()
    words = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    return next((int(word[len(start) :]) for word in words if word.startswith(start)), None)
