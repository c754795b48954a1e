"""The open descriptors of another process, and its limit (proc(5): /proc/PID/fd, /proc/PID/limits)."""

from pathlib import Path
from typing import Final

_LIMIT: Final = "Max open files"


def open_of(pid: int, *, proc: Path = Path("/proc")) -> tuple[int, int] | None:
    """Return the number of open descriptors and the limit; None if the process is gone or another user's."""
    directory = proc / str(pid) / "fd"
    try:
        # Since Linux 6.2 the size of the directory is their number; before it is 0, and they are counted.
        count = directory.stat().st_size or sum(1 for _ in directory.iterdir())
        lines = (proc / str(pid) / "limits").read_text().splitlines()
    except OSError:
        return None
    soft = [line.removeprefix(_LIMIT).split()[0] for line in lines if line.startswith(_LIMIT)]
    return (count, int(soft[0])) if soft and soft[0].isdecimal() else None
