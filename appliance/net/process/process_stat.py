"""Process data from /proc/PID/stat (proc_pid_stat(5)).

The second field is the name of the command in parentheses. It may contain any byte, even parentheses and
blanks, so the others are counted from the last closing one.
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
