"""The time of one check: one moment by which all of it has to be over, and an earlier one for its connect.

These are HAProxy's `timeout check` and `timeout connect`. A check blocks its greenlet only; when its time is
up, OutOfTime is thrown into that greenlet. A timer fires only when the loop runs, and a reader that always
has more to read never yields: so reading a peer lets the loop run again and again (`net.probing.peer`).
"""

import time
from typing import Final, Self

from gevent import getcurrent
from gevent.hub import get_hub

_STALLED: Final = 0.1
"""Seconds of delay of a timer from which on the whole process was not running, and not only busy."""


class OutOfTime(BaseException):
    """Thrown into the greenlet of a check whose time is up; no `except Exception` on the way may keep it."""


class Deadline:
    """The time of the check that the current greenlet makes: a context manager.

    `connect` is the seconds that may pass until `connected` is called, `whole` those of the whole check.
    """

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
        """Give the rest of the check all the time that is left.

        The timer is not started anew: when it fires early, `_expire` sees that and waits for the rest.
        """
        self._due = self._end

    def connecting(self, seconds: float) -> None:
        """Give a connect so many seconds, of what is left of the check: `connected` was called before."""
        now = time.monotonic()
        self._due = min(now + seconds, self._end)
        self._again(max(self._due - now, 0.0))

    def _expire(self) -> None:
        """End the check, unless it is this process that was not running when the time was up.

        The answer may have come meanwhile: a machine that was busy must not take servers down. The time that
        was lost is given back once, and at most the whole time again, so that the check does end.
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
