"""Frames on their way to an interface that may not take all of them at once: the rest goes a little later.

A driver's queue that is full, or a socket's buffer, is no error but a matter of milliseconds; what waits is
bounded, and so is for how long.
"""

import errno
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final, Protocol

MOST: Final = 4096
"""Frames that wait at most; what is beyond is given up."""

PATIENCE: Final = 2.0
"""Seconds after which what still waits is given up."""

# The queue has room in between for what is more urgent: the advertisements.
_PAUSE: Final = 0.01
_BATCH: Final = 32
_FULL: Final = frozenset({errno.ENOBUFS, errno.EAGAIN})


class Sends(Protocol):
    """What takes a frame, or raises OSError."""

    def send(self, frame: bytes) -> None:
        """Send one frame."""
        ...


class FrameQueue:
    """Sends frames in order. `deadline` is when to `tick`, None while nothing waits."""

    def __init__(self, sender: Sends) -> None:
        self._sender = sender
        self._waiting = deque[tuple[bytes, float]]()  # each with the time until which it may wait
        self.deadline: float | None = None

    def put(self, frames: Iterable[bytes], now: float) -> int:
        """Send these, after what still waits; return how many went at once. Raises as `tick`."""
        until = now + PATIENCE
        self._waiting.extend((each, until) for each in islice(frames, MOST - len(self._waiting)))
        return self._send(MOST, now) if self.deadline is None else 0

    def tick(self, now: float) -> int:
        """Send some of what waits, if there is room; return how many went.

        Raises OSError when the interface does not take them at all; then nothing waits. The same when some
        were not taken in time; those that came later wait on.
        """
        return self._send(_BATCH, now)

    def _send(self, most: int, now: float) -> int:
        sent = 0
        try:
            while self._waiting and sent < most:
                self._sender.send(self._waiting[0][0])
                self._waiting.popleft()
                sent += 1
        except OSError as error:
            if error.errno not in _FULL:
                self.clear()
                raise
            if self._give_up(now):
                raise
        finally:
            self.deadline = now + _PAUSE if self._waiting else None
        return sent

    def _give_up(self, now: float) -> bool:
        """Drop what has waited too long; return whether there was any."""
        before = len(self._waiting)
        while self._waiting and now >= self._waiting[0][1]:
            self._waiting.popleft()
        return len(self._waiting) < before

    def clear(self) -> None:
        """Give up what waits: it is not true any more."""
        self._waiting.clear()
        self.deadline = None
