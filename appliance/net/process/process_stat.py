"""Process data from /proc/PID/stat (proc_pid_stat(5)) and /proc/PID/schedstat.

The second field of the former is the name of the command in parentheses. It may contain any byte, even
parentheses and blanks, so the others are counted from the last closing one.
"""

import errno
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_PROC: Final = Path("/proc")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessStat:
    """Command name, state (`Z` and `X`: exited), parent, and start in the kernel's ticks since boot."""

    name: bytes
    state: str
    parent: int
    started: int


def process_stat(pid: int) -> ProcessStat:
    """Return the kernel's data of a process; raises OSError if it does not exist."""
    before, _, after = (_PROC / str(pid) / "stat").read_bytes().rpartition(b")")
    fields = after.split(maxsplit=20)
    try:
        # These are counted from the third field on: state is the third, parent the fourth, the start the
        # 22nd.
        return ProcessStat(
            name=before.partition(b"(")[2],
            state=fields[0].decode(),
            parent=int(fields[1]),
            started=int(fields[19]),
        )
    except (IndexError, ValueError) as error:
        raise ProcessLookupError(errno.ESRCH, "its status cannot be read") from error


def waits_for_processor(pid: int) -> float:
    """Return the seconds that the main thread of a process was ready to run and had no processor.

    A wait is counted when it ends. 0 if the kernel does not count them, or the process does not exist.
    Source: the kernel's Documentation/scheduler/sched-stats.rst, the second number.
    """
    try:
        return int((_PROC / str(pid) / "schedstat").read_bytes().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0
