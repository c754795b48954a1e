"""Numbers of generations, across restarts of the master: the lock file of a program keeps the last one.

A worker that was starting when its master was killed is invisible to the next master, and would share the
names of its socket and board with a worker of the same number.
"""

import contextlib
import os
import re
from pathlib import Path
from typing import Final

from appliance.net.files import lock_files

# At least one zero: a number that no master reaches is damage, and boards have 32 bits for it.
_LINE: Final = re.compile(rb"(0[0-9]{9})\n?", re.ASCII)


class AlreadyRunning(Exception):  # noqa: N818  # a state of the machine, not a mistake of ours
    """Another master serves this group."""


class GenerationNumbers:
    """Numbers never used twice, and the lock against a second master. Raises AlreadyRunning and OSError."""

    def __init__(self, path: Path) -> None:
        held = lock_files.hold(path)
        if held is None:
            raise AlreadyRunning(f"{path} is locked")
        self._descriptor = held
        line = _LINE.fullmatch(os.pread(held, 20, 0))
        self._last = int(line[1]) if line else 0

    def close(self) -> None:
        """Release the lock, so that another master may run."""
        os.close(self._descriptor)

    def seen(self, number: int) -> None:
        """Never return a number up to that of a generation that was taken over."""
        self._last = max(self._last, number)

    def next(self) -> int:
        """Return a number that no generation has had."""
        self._last += 1
        with contextlib.suppress(OSError):  # disk full: the next master sees what runs, and skips its numbers
            os.pwrite(self._descriptor, f"{self._last:010d}\n".encode(), 0)
        return self._last
