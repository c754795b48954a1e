"""A file system's answer, obtained in a thread: one that hangs costs only the time-out."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import gevent
from gevent.event import AsyncResult

from appliance.net.loop import thread_pool
from appliance.net.tracking.track_check import TrackUnknown, raise_if_stalled

_Found = TypeVar("_Found")


class ThreadAnswer(Generic[_Found]):
    """Asks repeatedly; if a question hangs, the next `get` waits for the same one."""

    def __init__(self, ask: Callable[[str], _Found], path: str, *, timeout: float) -> None:
        self.timeout: Final = timeout
        self._ask = ask
        self._path = path
        self._asked: AsyncResult | None = None

    def get(self) -> _Found | None:
        """Return the answer, None without one within the time-out; raises TrackUnknown."""
        started = time.monotonic()
        try:
            asked = self._asked = self._asked or thread_pool.begin(self._ask, self._path)
        except OSError as error:
            raise TrackUnknown(f"it cannot be read: {error.strerror}") from error
        try:
            found: _Found = asked.get(timeout=self.timeout)
        except gevent.Timeout:
            raise_if_stalled(started, self.timeout)
            return None
        finally:
            if asked.ready():
                self._asked = None
        return found
