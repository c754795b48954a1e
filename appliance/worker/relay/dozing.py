"""The long sleep of a worker with nothing to do: it does not tick twenty times a second for nobody.

Its sessions may be open: what ends it are events, and the deadlines that a sweep has found (`all_sessions`).

Nothing is accepted in it: whatever happens ends it, and is dealt with after a tick, by a clock and verdicts
of `health` that are as new as ever.
"""

import math
import select
import time
from collections.abc import Callable
from typing import Final

LONGEST: Final = 1.0
"""Seconds of a sleep: what the heartbeat allows, and what gevent's timers may be late."""

_AFTER: Final = 1.0
"""Seconds without an event until the first one."""


class Dozing:
    """When a worker sleeps, until there is something at `descriptor`.

    Every `pause` seconds of a sleep it looks at what no event reports.
    """

    def __init__(self, descriptor: int, *, pause: float) -> None:
        self._poll = select.poll()
        self._poll.register(descriptor, select.POLLIN)
        self._pause = pause
        self._from = 0.0
        self._events = -1

    def note(self, events: int, now: float, *, busy: bool) -> None:
        """Note at a tick how many events there have been so far, and whether there is anything to do."""
        if busy or events != self._events:
            self._events = events
            self._from = now + _AFTER

    def is_due(self, now: float) -> bool:
        """Return whether there has been nothing to do for long enough."""
        return now >= self._from

    def sleep(self, until: float, ends: Callable[[], bool] | None) -> None:
        """Return at this moment, or as soon as anything happens.

        `ends` returns whether something has happened without an event; it is None if nothing can.
        """
        while (left := until - time.monotonic()) > 0:
            pause = left if ends is None else min(left, self._pause)
            if self._poll.poll(math.ceil(pause * 1000)):
                return
            if ends is not None and ends():
                self._from = time.monotonic() + _AFTER
                return
