"""Locks that make a program the only one of its name in a runtime directory."""

import fcntl
import os
from pathlib import Path
from typing import IO

from appliance.net.files import state_files


def hold(path: Path) -> int | None:
    """Return a descriptor that holds a lock until closed, None if another process has it; raises OSError.

    Anything but a regular file at the path is renamed (state_files.clear_way), so that it does not prevent
    the lock.
    """
    state_files.clear_way(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    if try_lock(descriptor):
        return descriptor
    os.close(descriptor)
    return None


def try_lock(file: int | IO[str]) -> bool:
    """Lock an open file unless another process holds its lock; return whether we hold it now.

    The lock of flock(2) belongs to the open file: a copy of the descriptor inherited over exec keeps it, and
    it ends with the last copy. A lock of fcntl(2) would belong to the process, and end when it closes any
    descriptor of that file.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


class KeptLock:
    """The lock that this process holds, taken again if its file or directory is removed.

    Until then a second program could lock a new file of that name, and start. The holder of the lock creates
    this, with its `descriptor` if known.
    """

    def __init__(self, path: Path, descriptor: int | None = None) -> None:
        self.descriptor = descriptor
        self._path = path
        self._file = _identity(path)

    def keep(self) -> bool:
        """Lock the file that has the name now; False if another process holds it, else True."""
        found = _identity(self._path)
        if found is not None and found == self._file:
            return True
        try:
            descriptor = hold(self._path)  # children do not inherit it
        except OSError:
            return True  # the directory does not exist yet, or is full
        if descriptor is None:
            return False
        self.descriptor, self._file = descriptor, _identity(self._path)
        return True

    def leave(self) -> None:
        """Close our copy of the lock: a process with another copy holds it now."""
        if self.descriptor is not None:
            os.close(self.descriptor)
            self.descriptor = None


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
