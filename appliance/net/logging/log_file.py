"""A file for log lines, opened again by its path after logrotate has renamed it.

Each write checks the path: workers outlive masters, so no process could notify all writers of a rotation.
From the first line after it, the new file is used. If there is no file, a rotation may be in progress, and
logrotate's `create` fails if the file already exists. So lines go into the old file for a second; then the
file is created.
"""

import contextlib
import errno
import os
import stat
import time
from typing import Final

_ROTATION: Final = 1.0  # seconds
_FLAGS: Final = (
    os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY
)  # O_NONBLOCK: opening a pipe without a reader fails instead of waiting
_MODE: Final = 0o640


class LogFile:
    """An open log file; raises OSError if it cannot be opened."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._torn = False
        self._gone_at: float | None = None
        self._descriptor, self._identity = _opened(path)

    def write(self, data: bytes) -> None:
        """Append data in one call, so that lines of processes do not mix; raises OSError for a part of it."""
        self._follow(time.monotonic())
        if self._torn:
            data = b"\n" + data  # end a truncated line, so that the next one is separate
        written = os.write(self._descriptor, data)
        self._torn = written < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, f"{written} of {len(data)} bytes written")

    def reopen(self) -> None:
        """Open the path again, creating the file if there is none; keep the old one if that fails."""
        with contextlib.suppress(OSError):
            descriptor, self._identity = _opened(self.path)
            os.close(self._descriptor)
            self._descriptor, self._gone_at, self._torn = descriptor, None, False

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)

    def _follow(self, now: float) -> None:
        try:
            found = os.stat(self.path)  # noqa: PTH116  # at each line: no Path to be made for it
        except FileNotFoundError:
            self._miss(now)
            return
        except OSError:
            return
        self._gone_at = None
        if (found.st_dev, found.st_ino) != self._identity:
            self.reopen()

    def _miss(self, now: float) -> None:
        if self._gone_at is None:
            self._gone_at = now
        elif now >= self._gone_at + _ROTATION:
            self.reopen()


def objection(path: str) -> str | None:
    """Return why this process cannot append to a file, None if it can."""
    try:
        descriptor, _ = _opened(path)
    except OSError as error:
        return error.strerror or str(error)
    os.close(descriptor)
    return None


def _opened(path: str) -> tuple[int, tuple[int, int]]:
    descriptor = os.open(path, _FLAGS, _MODE)
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a regular file", path)
    return descriptor, (found.st_dev, found.st_ino)
