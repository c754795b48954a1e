"""Ctrl-C of a demo, and how long its processes have to end."""

import signal
from typing import Final

import gevent
from gevent.event import Event

END_SECONDS: Final = 40.0
"""Seconds for an appliance: above the drain time of the demo's configuration and the steps after it."""

KILL_SECONDS: Final = 10.0
"""Seconds for what was ordered to end at once."""

ORPHAN_SECONDS: Final = 3.0
"""Seconds for processes that are left when their supervisord has ended."""


class StopSignal:
    """Ctrl-C or TERM from the operator: the first stops in order, the second at once."""

    def __init__(self) -> None:
        self.asked = Event()
        self.at_once = Event()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            gevent.signal_handler(number, self._note)

    def _note(self) -> None:
        (self.at_once if self.asked.is_set() else self.asked).set()
