"""One epoll set for all sessions and listeners of a worker.

It is edge-triggered, and each connection is registered once for its whole life: HAProxy makes three
`epoll_ctl` calls for a connection, libev made five. Nothing is armed and disarmed: a side that cannot
continue remembers what is left to do, and the kernel reports the change (epoll(7), "Level-triggered and
edge-triggered").

It begins behind a watcher of gevent's hub. `lead` reverses that: the process sleeps in `wait`, and gevent's
loop is one of the descriptors. This saves a system call per wake-up, and is the only way to make the kernel
wake just one worker for a connection: EPOLLEXCLUSIVE has no effect in an epoll set that another one watches
(ep_poll_callback).
"""

import select
from collections.abc import Callable
from time import monotonic
from typing import Final

from gevent import get_hub

from appliance.worker.relay.poll_events import ALL, READABLE

_BATCH: Final = 256
"""Events taken at a time: delayed work, and the rest of the process, run in between."""


class Pollable:
    """The owner of a descriptor. `turn` is the poller's when it was registered."""

    __slots__ = ("turn",)

    turn: int

    def on_events(self, events: int) -> None:
        """Do what the new state of the descriptor allows; raises nothing."""
        raise NotImplementedError

    def go_on(self) -> None:
        """Do the work requested by `later`; raises nothing."""
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
    """Passes events to the sides and acceptors that own the descriptors.

    A closed connection leaves the epoll set automatically. Its number may be reused in the same turn, while
    an event of the former connection is still pending: `turn` shows that the new one did not exist when the
    kernel was asked. `events` counts all events so far.
    """

    __slots__ = (
        "_asked",
        "_busy",
        "_epoll",
        "_hub",
        "_leads",
        "_sides",
        "_soon",
        "_watcher",
        "events",
        "loop",
        "turn",
    )

    def __init__(self) -> None:
        self.loop = get_hub().loop
        self.turn = self.events = 0
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
        """Pass the events of a descriptor to `side` from now on, beginning with its present state."""
        sides = self._sides
        if fd >= len(sides):
            sides.extend([None] * (fd + 1 - len(sides)))
        sides[fd] = side
        side.turn = self.turn
        self._epoll.register(fd, events)

    def change(self, fd: int, events: int) -> None:
        """Ask for other events of a descriptor from now on, beginning with its present state."""
        self._epoll.modify(fd, events)

    def forget(self, fd: int) -> None:
        """Drop the pending events of a connection that is about to be closed."""
        self._sides[fd] = None

    def unregister(self, fd: int) -> None:
        """Stop watching a descriptor that stays open, here or in another process."""
        self._sides[fd] = None
        self._epoll.unregister(fd)

    def later(self, side: Pollable) -> None:
        """Let a side continue when the others have had their turn."""
        self._busy.append(side)
        self._ask()

    def soon(self, callback: Callable[[], None]) -> None:
        """Call this when the others have had their turn."""
        self._soon.append(callback)
        self._ask()

    def lead(self) -> None:
        """Watch gevent's loop from now on, which has watched this set until now.

        Nothing may be registered yet. It uses a new set: libev removes a descriptor from its own set only
        when it gets an event of it, and two sets that watch each other are refused (ELOOP).
        """
        self.close()
        self._epoll = select.epoll()
        self._leads = True
        self.register(self.loop.fileno(), self._hub, READABLE)

    def wait(self, until: float) -> bool:
        """Pass on events, and do delayed work, until gevent's loop has something to do, or this moment.

        Only after `lead`. The moment is of the monotonic clock. Return whether gevent's loop has something.
        """
        hub, left, found = self._hub, until - monotonic(), False
        hub.ready = False
        while True:
            # More events have often arrived meanwhile, and sleeping and waking up costs more than asking for
            # them.
            found = self._turn(0.0 if found or self._asked else max(0.0, left))
            if self._asked:
                self._go_on()
            left = until - monotonic()
            if hub.ready or left <= 0.0:
                return hub.ready

    def fileno(self) -> int:
        """Return the descriptor of the set, which is readable while there are events."""
        return self._epoll.fileno()

    def close(self) -> None:
        """Close the set; no session has a descriptor in it."""
        self._watcher.close()
        self._epoll.close()

    def _ask(self) -> None:
        if not self._asked:
            self._asked = True
            if not self._leads:
                self.loop.run_callback(self._go_on)

    def _turn(self, seconds: float = 0.0) -> bool:
        """Wait up to `seconds` for events and pass them on; return whether there were any."""
        self.turn = turn = self.turn + 1
        sides = self._sides
        ready = self._epoll.poll(seconds, _BATCH)
        self.events += len(ready)
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
