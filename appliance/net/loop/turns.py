"""Turns in a program with greenlets: one that has worked for a slice rests, and all others run.

A socket that is always ready never blocks its greenlet: no other greenlet runs then, no timer fires, and the
heartbeat stands still. `gevent.sleep(0)` does not help: greenlets that keep calling it alternate among
themselves, the kernel is polled late, and a greenlet that waits for an idle loop waits forever. Only a sleep
with a time lets the loop complete a turn.
"""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

import gevent
from gevent import get_hub
from gevent.event import Event

SLICE: Final = 0.002
"""Seconds of work between two turns of the loop."""

_REST: Final = 0.001  # seconds until the next slice: libev asks the kernel before it fires the timer
_LOOK: Final = 0.01  # seconds between two looks whether something is pending


class FirstCome:
    """The waiting greenlets, the first of which has its turn."""

    def __init__(self) -> None:
        self._waiting: deque[Event] = deque()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for earlier greenlets, and keep later ones waiting."""
        mine = Event()
        self._waiting.append(mine)
        try:
            if self._waiting[0] is not mine:
                mine.wait()
            yield
        finally:
            self._waiting.remove(mine)
            if self._waiting:
                self._waiting[0].set()


class Turns:
    """The time that greenlets share, one slice per turn; `rest` blocks the caller for these seconds."""

    def __init__(self, rest: Callable[[float], None] = gevent.sleep) -> None:
        self._rest = rest
        self._loop = get_hub().loop
        self._turn = -1
        self._until = 0.0
        self._waiting = FirstCome()

    def give(self) -> None:
        """Let the others run if the slice is over. Call it before each small piece of work.

        After a wait for the loop, a greenlet is in another turn, and begins a new slice or uses the rest of
        another's: all share one slice.
        """
        if not self._waiting and self._has_time():
            return
        with self._waiting.turn():  # else the same one would be the first in each turn
            while not self._has_time():
                self._rest(_REST)

    def _has_time(self) -> bool:
        now, turn = time.monotonic(), self._loop.iteration
        if turn != self._turn:
            self._turn, self._until = turn, now + SLICE
        return now < self._until


def until_next(seconds: float) -> float:
    """Return the seconds until the clock is a multiple of `seconds`: all that is due then wakes us once."""
    return seconds - time.monotonic() % seconds


def wait_while(pending: Callable[[], object], *, within: float) -> None:
    """Wait while something is pending, at most `within` seconds; others have their turns."""
    with gevent.Timeout(within, False):  # noqa: FBT003  # its only form
        while pending():
            gevent.sleep(_LOOK)
