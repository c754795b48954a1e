"""A file that log lines are appended to, and found again by its path when logrotate has put it aside.

Each line looks at the path, as workers outlive masters and nobody can tell all writers at one moment: what is
there is written to, from the first line after the rotation on. Where nothing is there a rotation may be under
way, and logrotate's `create` takes a file that is made in its place for a fault. So lines go on into the old
one for a moment; then it is made anew, or at once by `reopen`, which is supervisord's answer to USR2.
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
)  # O_NONBLOCK: of a pipe that nobody reads, to say that it is none of ours
_MODE: Final = 0o640


class LogFile:
    """An open log file; raises OSError where it cannot be had."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._torn = False
        self._gone_at: float | None = None
        self._descriptor, self._identity = _opened(path)

    def write(self, data: bytes) -> None:
        """Append data in one call; raises OSError when not all of it could be."""
        self._follow(time.monotonic())
        if self._torn:
            data = b"\n" + data  # what follows a line that was cut is a line of its own again
        written = os.write(self._descriptor, data)
        self._torn = written < len(data)
        if self._torn:
            raise OSError(errno.ENOSPC, f"{written} of {len(data)} bytes written")

    def reopen(self) -> None:
        """Write to what is at the path, made where nothing is; to the old file where that cannot be."""
        with contextlib.suppress(OSError):
            descriptor, self._identity = _opened(self.path)
            os.close(self._descriptor)
            self._descriptor, self._gone_at, self._torn = descriptor, None, False

    def close(self) -> None:
        """Let go of it."""
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
    """Return why this process cannot append to a file, None where it can."""
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
