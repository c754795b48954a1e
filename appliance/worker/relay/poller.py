"""One epoll set for all sessions and listeners of a worker.

Edge-triggered, and each connection is registered once for its whole life: HAProxy's `epoll_ctl` calls for a
connection are three, libev's were five. Nothing is armed and disarmed: who cannot go on remembers what is
left to do, and the kernel says when that has changed (epoll(7), "Level-triggered and edge-triggered").

It begins behind a watcher of gevent's hub. After `lead` it is the other way round: the process sleeps in
`wait`, and gevent's loop is one of the descriptors. That is a system call less for each wake-up, and only so
does the kernel wake one worker for a connection: to an epoll set that is watched by another one
EPOLLEXCLUSIVE means nothing (ep_poll_callback).
"""

import select
from collections.abc import Callable
from time import monotonic
from typing import Final

from gevent import get_hub

from appliance.worker.relay.poll_events import ALL, READABLE

_BATCH: Final = 256
"""Events taken at a time: what was put off, and the rest of the process, come between."""


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


class _Hub(Pollable):
    """Notes that gevent's loop has something to do."""

    __slots__ = ("ready",)

    def __init__(self) -> None:
        self.ready = False

    def on_events(self, events: int) -> None:
        """Note it."""
        del events
        self.ready = True


class Poller:
    """Tells sides and acceptors of the events of their descriptors.

    A connection that is closed leaves the epoll set by itself. Its number may come back in the same turn,
    with an event of the former one still to be told: `turn` shows that the new one was not there yet when
    the kernel was asked.
    """

    __slots__ = ("_asked", "_busy", "_epoll", "_hub", "_leads", "_sides", "_soon", "_watcher", "loop", "turn")

    def __init__(self) -> None:
        self.loop = get_hub().loop
        self.turn = 0
        self._epoll = select.epoll()
        self._sides: list[Pollable | None] = []
        self._busy: list[Pollable] = []
        self._soon: list[Callable[[], None]] = []
        self._asked = False
        self._hub = _Hub()
        self._leads = False
        self._watcher = self.loop.io(self._epoll.fileno(), 1)
        self._watcher.start(self._turn)

    def register(self, fd: int, side: Pollable, events: int = ALL) -> None:
        """Tell `side` of the events of a descriptor from now on, first of the state that it has."""
        sides = self._sides
        if fd >= len(sides):
            sides.extend([None] * (fd + 1 - len(sides)))
        sides[fd] = side
        side.turn = self.turn
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        """Tell of other events of a descriptor from now on, first of the state that it has."""
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Tell nobody of a connection that is about to be closed."""
        self._sides[fd] = None

    def unregister(self, fd: int) -> None:
        """Watch a descriptor no more that stays open, here or in another process."""
        self._sides[fd] = None
        self._epoll.unregister(fd)

    def later(self, side: Pollable) -> None:
        """Let a side go on when the others have had their turn."""
        self._busy.append(side)
        self._ask()

    def soon(self, callback: Callable[[], None]) -> None:
        """Call this when the others have had their turn."""
        self._soon.append(callback)
        self._ask()

    def lead(self) -> None:
        """Look at gevent's loop from now on, where it has looked at this set until now.

        Nothing may be registered yet. With another set: libev leaves a descriptor in its own one until it
        hears of it, and two sets that look at each other are refused (ELOOP).
        """
        self.close()
        self._epoll = select.epoll()
        self._leads = True
        self.register(self.loop.fileno(), self._hub, READABLE)

    def wait(self, until: float) -> bool:
        """Tell of events, and do what was put off, until gevent's loop has something to do, or this moment.

        Only after `lead`. The moment is of the monotonic clock. Returns whether gevent's loop has something.
        """
        hub, left, found = self._hub, until - monotonic(), False
        hub.ready = False
        while True:
            # More has often come meanwhile, and to fall asleep and be woken costs more than a look.
            found = self._turn(0.0 if found or self._asked else max(0.0, left))
            if self._asked:
                self._go_on()
            left = until - monotonic()
            if hub.ready or left <= 0.0:
                return hub.ready

    def close(self) -> None:
        """Close the set; no descriptor of a session is left."""
        self._watcher.close()
        self._epoll.close()

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            if not self._leads:
                self.loop.run_callback(self._go_on)

    def _turn(self, seconds: float = 0.0) -> bool:
        """Tell of the events of so many seconds; return whether there were any."""
        self.turn = turn = self.turn + 1
        sides = self._sides
        ready = self._epoll.poll(seconds, _BATCH)
        for fd, events in ready:
            side = sides[fd]
            if side is not None and side.turn != turn:
                side.on_events(events)
        return bool(ready)

    def _go_on(self) -> None:
        self._asked = False
        busy, self._busy = self._busy, []
        for side in busy:
            side.go_on()
        soon, self._soon = self._soon, []
        for callback in soon:
            callback()
