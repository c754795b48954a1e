"""What those who may only look have of a program of greenlets, all of them together: places and time.

Their questions are answered one at a time, and after each there is a rest of several times as long as it
took: whoever asks without end has a part of the program's time, and the owner and its own work have the rest.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import gevent
from gevent import Greenlet

from appliance.net.control import permissions
from appliance.net.control.places import Places
from appliance.net.loop.first_come import FirstCome

_LOOK: Final = 0.001  # seconds from one new connection to the next while all places are taken
_REST: Final = 4.0  # times as long as a question took
_LONGEST: Final = 0.1  # seconds of a question that count: it may have waited for somebody else


class ReaderShare:
    """The connections of readers, each with the greenlet that serves it."""

    def __init__(self) -> None:
        self._places: Places[Greenlet] = Places()
        self._waiting = FirstCome()
        self._next_at = 0.0

    def enter(self, serving: Greenlet, user: int) -> bool:
        """Give a connection a place, another one's where there is none left; say whether it has one."""
        if self._is_full:
            gevent.sleep(_LOOK)  # those who have gone leave, those who have asked are served
        if self._is_full:
            leaver = self._places.give_way()
            if leaver is None:
                return False
            leaver.kill(block=False)
        self._places.enter(serving, user)
        return True

    @property
    def _is_full(self) -> bool:
        return len(self._places) >= permissions.MOST_READERS

    def leave(self, serving: Greenlet) -> None:
        """Take the place back."""
        self._places.leave(serving)

    @contextmanager
    def question(self, serving: Greenlet) -> Iterator[None]:
        """Wait until a question may be answered, and keep others from being answered meanwhile."""
        self._places.rest(serving)  # who asks has not rested long
        with self._waiting.turn():
            gevent.sleep(max(0.0, self._next_at - time.monotonic()))
            begun = time.monotonic()
            self._places.work(serving)
            try:
                yield
            finally:
                self._places.rest(serving)
                now = time.monotonic()
                self._next_at = now + _REST * min(now - begun, _LONGEST)
