"""A timer of the kernel that a selector can wait for (timerfd_create(2)).

An advertisement is due to the fraction of a millisecond, and epoll_wait(2) rounds its timeout up to whole
ones.
"""

import contextlib
import ctypes
import os
import time
from typing import Final

_ABSOLUTE: Final = 1  # TFD_TIMER_ABSTIME
_AT_ONCE: Final = 1e-9  # a time of 0 would disarm


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


_libc: Final = ctypes.CDLL(None, use_errno=True)


class Timer:
    """A descriptor that can be read from a moment on, in seconds of time.monotonic()."""

    def __init__(self) -> None:
        self._descriptor: int = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._setting = _Setting()
        self._reference = ctypes.byref(self._setting)
        self._armed: float | None = None

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._descriptor

    def arm(self, at: float | None) -> None:
        """Make it readable from `at` on, None for never, in place of the moment that was set before."""
        if at == self._armed:
            return
        self._armed = at
        nanoseconds = 0 if at is None else int(max(at, _AT_ONCE) * 1e9)
        value = self._setting.value
        value.seconds, value.nanoseconds = divmod(nanoseconds, 1_000_000_000)
        _libc.timerfd_settime(self._descriptor, _ABSOLUTE, self._reference, None)

    def clear(self) -> None:
        """Read it after it has run out, so that it is not readable any more."""
        self._armed = None
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, 8)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)
