"""A visit of gevent's loop by the greenlet that is the outermost loop of the process."""

import time
from typing import Final

from gevent import get_hub
from gevent.hub import Waiter

from appliance.net.loop.turns import SLICE

_LAST: Final = -2  # libev's EV_MINPRI: after all that has happened in a round of the loop


class HubVisit:
    """Runs gevent's loop until it is idle, and no longer than a slice.

    `gevent.idle()` returns only when nothing is left to do: never, if the sockets of a control server are
    ready in each round of the loop.
    """

    def __init__(self) -> None:
        loop = get_hub().loop
        self._idle = loop.idle()
        self._round = loop.check(priority=_LAST)

    def make(self) -> bool:
        """Return True once the loop is idle, or False at the end of the round in which the slice is over."""
        waiter, until = Waiter(), time.monotonic() + SLICE

        def look() -> None:
            if time.monotonic() >= until:
                waiter.switch(False)  # noqa: FBT003  # what `make` returns

        # At least one round: libev asks the kernel for descriptors added in this round only in the next one.
        self._idle.start(waiter.switch, True)  # noqa: FBT003  # the same
        self._round.start(look)
        try:
            return bool(waiter.get())
        finally:
            self._idle.stop()
            self._round.stop()
