"""The time of one check: one moment by which all of it has to be over, and an earlier one for its connect.

A check blocks its greenlet only; the end of its time is thrown into that. Reading a peer lets the loop run
again and again (`net.probing.peer`), so that no peer can keep the moment from coming.
"""

import time
from typing import Final, Self

from gevent import getcurrent
from gevent.hub import get_hub

_STALLED: Final = 0.1
"""Seconds by which a timer is late only when the whole process was."""


class OutOfTime(BaseException):
    """Thrown into the greenlet of a check whose time is up; no `except Exception` on the way may keep it."""


class Deadline:
    """The time of the check that the current greenlet makes: a context manager.

    Until `connected` is called only `connect` seconds may pass, and `whole` seconds in all.
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
        """Let the rest of the check have the rest of its time; the timer that runs finds that out."""
        self._due = self._end

    def _expire(self) -> None:
        """End the check, unless it is this process that was not running when the time was up.

        The answer may have come meanwhile: a machine that was busy must not take servers down. What was lost
        to it is given back once, and at most the whole time again, so that the check does end.
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
