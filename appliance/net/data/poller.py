"""One epoll set for all sessions of a worker, behind a single watcher of gevent's hub.

Edge-triggered, and each descriptor is registered once for its whole life: HAProxy's `epoll_ctl` calls for a
connection are three, libev's were five. Nothing is armed and disarmed: who cannot go on remembers what is
left to do, and the kernel says when that has changed (epoll(7), "Level-triggered and edge-triggered").
"""

import select
from typing import Final

from gevent import get_hub

from appliance.net.data.poll_events import ALL

_BATCH: Final = 256
"""Events taken at a time: the rest of the loop, which accepts and answers the master, comes between."""


class Pollable:
    """What a descriptor belongs to. `turn` is the poller's when it was registered."""

    __slots__ = ("turn",)

    turn: int

    def on_events(self, events: int) -> None:
        """Do what the new state of the descriptor allows; raises nothing."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Do what `later` was asked for; raises nothing."""
        raise NotImplementedError


class Poller:
    """Tells sides of the events of their descriptors.

    A descriptor that is closed leaves the epoll set by itself. Its number may come back in the same turn,
    with an event of the former one still to be told: `turn` shows that the new one was not there yet when
    the kernel was asked.
    """

    __slots__ = ("_again", "_busy", "_epoll", "_sides", "_watcher", "loop", "turn")

    def __init__(self) -> None:
        self.loop = get_hub().loop
        self.turn = 0
        self._epoll = select.epoll()
        self._sides: list[Pollable | None] = []
        self._busy: list[Pollable] = []
        self._again = False
        self._watcher = self.loop.io(self._epoll.fileno(), 1)
        self._watcher.start(self._on_ready)

    def register(self, fd: int, side: Pollable) -> None:
        """Tell `side` of the events of a descriptor from now on, first of the state that it has."""
        sides = self._sides
        if fd >= len(sides):
            sides.extend([None] * (fd + 1 - len(sides)))
        sides[fd] = side
        side.turn = self.turn
        self._epoll.register(fd, ALL)

    def forget(self, fd: int) -> None:
        """Tell nobody of a descriptor that is about to be closed."""
        self._sides[fd] = None

    def later(self, side: Pollable) -> None:
        """Let a side go on when the others have had their turn."""
        self._busy.append(side)
        if not self._again:
            self._again = True
            self.loop.run_callback(self._go_on)

    def close(self) -> None:
        """Close the set; no descriptor of a session is left."""
        self._watcher.close()
        self._epoll.close()

    def _on_ready(self) -> None:
        self.turn = turn = self.turn + 1
        sides = self._sides
        for fd, events in self._epoll.poll(0, _BATCH):
            side = sides[fd]
            if side is not None and side.turn != turn:
                side.on_events(events)

    def _go_on(self) -> None:
        self._again = False
        busy, self._busy = self._busy, []
        for side in busy:
            side.go_on()
