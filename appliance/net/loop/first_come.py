"""One greenlet after the other, in order of arrival: gevent's semaphore favours one that asks again."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from gevent.event import Event


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
