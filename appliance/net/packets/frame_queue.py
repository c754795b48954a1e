"""Frames that are queued while an interface's queue is full, and sent a little later.

ENOBUFS (the driver's queue is full) and EAGAIN (the socket's buffer is) pass within milliseconds: they are
errors only if they last. The number of queued frames and their waiting time are limited.
"""

import errno
from collections import deque
from collections.abc import Iterable
from itertools import islice
from typing import Final, Protocol

MOST: Final = 4096
"""Most queued frames; more are dropped."""

PATIENCE: Final = 2.0
"""Seconds after which a frame that still waits is dropped."""

# A batch, then a pause: in between the interface has room for the advertisements, which are more urgent.
_PAUSE: Final = 0.01
_BATCH: Final = 32
_FULL: Final = frozenset({errno.ENOBUFS, errno.EAGAIN})


class FrameSender(Protocol):
    """Something that sends a frame or raises OSError, such as FrameSocket."""

    def send(self, frame: bytes) -> None:
        """Send one frame."""
        ...


class FrameQueue:
    """Sends frames in order. `deadline` is when to `tick`, monotonic seconds, None without queued frames."""

    def __init__(self, sender: FrameSender) -> None:
        self._sender = sender
        self._waiting = deque[tuple[bytes, float]]()  # each with the time until which it may wait
        self.deadline: float | None = None

    def put(self, frames: Iterable[bytes], now: float) -> int:
        """Send these after the queued ones; return how many were sent at once. Raises OSError."""
        until = now + PATIENCE
        self._waiting.extend((each, until) for each in islice(frames, MOST - len(self._waiting)))
        return self._send(MOST, now) if self.deadline is None else 0

    def tick(self, now: float) -> int:
        """Send some of the queued frames, if there is room; return how many were sent.

        Raises OSError if the interface takes none at all; then all queued frames are dropped. Also raises it
        if some have waited too long; later ones stay.
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
            if self._drop_expired(now):
                raise
        finally:
            self.deadline = now + _PAUSE if self._waiting else None
        return sent

    def _drop_expired(self, now: float) -> bool:
        """Drop frames that have waited too long; return whether there were any."""
        before = len(self._waiting)
        while self._waiting and now >= self._waiting[0][1]:
            self._waiting.popleft()
        return len(self._waiting) < before

    def clear(self) -> None:
        """Drop all queued frames, as they are outdated."""
        self._waiting.clear()
        self.deadline = None
