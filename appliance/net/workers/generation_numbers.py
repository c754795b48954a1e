"""Numbers of generations, over the lives of masters: the lock file of a program remembers the last one.

A worker that was starting when its master was killed is not seen by the next one, and would share the names
of its socket and board with a worker of the same number.
"""

import contextlib
import fcntl
import os
from pathlib import Path


class AlreadyRunning(Exception):  # noqa: N818  # a state of the machine, not a mistake of ours
    """Another master serves this group."""


class Numbers:
    """Numbers never used twice. Holds the lock that keeps a second master of the program out.

    Raises AlreadyRunning and OSError.
    """

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._descriptor)
            raise AlreadyRunning(f"{path} is locked") from error
        self._last = 0
        with contextlib.suppress(ValueError):
            self._last = int(os.pread(self._descriptor, 20, 0))

    def close(self) -> None:
        """Let another master run."""
        os.close(self._descriptor)

    def seen(self, number: int) -> None:
        """Take note of a generation that is there already."""
        self._last = max(self._last, number)

    def next(self) -> int:
        """Return a number that no generation has had."""
        self._last += 1
        os.pwrite(self._descriptor, f"{self._last:010d}\n".encode(), 0)
        return self._last
