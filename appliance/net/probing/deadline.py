"""The time limits of one check: a deadline for all of it, and an earlier one for its connect.

These are HAProxy's `timeout check` and `timeout connect`. A check blocks only its greenlet; when its time is
up, OutOfTime is thrown into that greenlet. A timer fires only when the loop runs, and a reader that always
has more to read never yields: so reading from a peer regularly lets the loop run (`net.probing.peer`).
"""

import time
from typing import Final, Self

from gevent import getcurrent
from gevent.hub import get_hub

_STALLED: Final = 0.1
"""Delay of a timer, in seconds, from which the process counts as not running, rather than busy."""


class OutOfTime(BaseException):
    """Thrown into the greenlet of a check whose time is up; `except Exception` does not catch it."""


class Deadline:
    """A context manager: seconds until `connected` must be called, and those of the whole check."""

    __slots__ = ("_checking", "_due", "_end", "_given", "_timer", "_whole")

    def __init__(self, *, connect: float, whole: float) -> None:
        now = time.monotonic()
        self._whole = whole
        self._end = now + whole
        self._due = now + min(connect, whole)
        self._given = False
        self._checking = getcurrent()
        self._timer = get_hub().loop.timer(max(self._due - now, 0.0))

    def __enter__(self) -> Self:
        self._timer.start(self._expire, update=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.close()

    def connected(self) -> None:
        """Give the rest of the check all remaining time.

        The timer is not restarted: if it fires early, `_expire` waits for the rest.
        """
        self._due = self._end

    def connecting(self, seconds: float) -> None:
        """Limit another connect to these seconds of the remaining time: `connected` was called before."""
        now = time.monotonic()
        self._due = min(now + seconds, self._end)
        self._again(max(self._due - now, 0.0))

    def _expire(self) -> None:
        """End the check, unless this process was not running when the time was up.

        The answer may have come meanwhile: a busy machine must not take servers down. The lost time is given
        back once, at most the whole time again, so that the check ends.
        """
        now = time.monotonic()
        late = now - self._due
        if late > _STALLED and not self._given:
            self._given = True
            self._due = self._end = now + min(late, self._whole)
        if now < self._due:
            self._again(self._due - now)
        else:
            self._checking.throw(OutOfTime)

    def _again(self, seconds: float) -> None:
        self._timer.close()
        self._timer = get_hub().loop.timer(seconds)
        self._timer.start(self._expire, update=True)
