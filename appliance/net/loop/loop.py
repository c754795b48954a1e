"""One loop for a program that must not be late: descriptors, deadlines and signals, and nothing besides.

What can be read is read before anything that is due is done, so that a process which was stopped, or not
scheduled for a while, knows what has happened meanwhile before it acts on a deadline that has passed. What is
prompt is done first, and of the rest as much as fits into a short turn: many that are due at once do not
delay those whose peers wait for a sign of life. What a turn has no time for is done first in the next one.
"""

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Final

from appliance.net.loop.schedule import Schedule, Timed
from appliance.net.loop.timer import Timer

_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
_OVERSLEPT: Final = 0.001  # seconds: from here on the sockets are looked at again before anything due is done
_TURN: Final = 0.002  # seconds after which what is due and not prompt is left to the next turn
_SIGNALS: Final = 64

Ready = Callable[[], None]


@dataclass(slots=True, eq=False)
class _WatchedDescriptor:
    """Callbacks of one descriptor, emptied when it is forgotten: its event may have been fetched already."""

    read: Ready | None = None
    write: Ready | None = None

    @property
    def events(self) -> int:
        return (_READ if self.read else 0) | (_WRITE if self.write else 0)


class Loop:
    """Calls whoever has something to read, to write or to do; callbacks must not block and must not raise."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._watched: dict[int, _WatchedDescriptor] = {}
        self._timer = Timer()
        self._timed: dict[Timed, Callable[[], bool]] = {}
        self._asked: set[Timed] = set()
        self._schedule = Schedule()
        self._left: list[Timed] = []  # due in the last turn, which had no time for them
        self._running = False
        self.read(self._timer.fileno(), self._timer.clear)

    def read(self, descriptor: int, ready: Ready | None) -> None:
        """Call `ready` whenever the descriptor can be read; None ends that, for one not watched as well."""
        watched = self._watched.setdefault(descriptor, _WatchedDescriptor())
        before, watched.read = watched.events, ready
        self._settle(descriptor, watched, before)

    def write(self, descriptor: int, ready: Ready | None) -> None:
        """Call `ready` whenever the descriptor can be written; None ends that."""
        watched = self._watched.setdefault(descriptor, _WatchedDescriptor())
        before, watched.write = watched.events, ready
        self._settle(descriptor, watched, before)

    def forget(self, descriptor: int) -> None:
        """Do not watch a descriptor any more, which is about to be closed."""
        self.read(descriptor, None)
        self.write(descriptor, None)

    def add(self, timed: Timed, *, prompt: Callable[[], bool] = lambda: False) -> None:
        """Wake `timed` at its deadlines; before all others when it is `prompt`, which is to be short work."""
        self._timed[timed] = prompt
        self._asked.add(timed)

    def add_one_of_many(
        self, timed: Timed, *, prompt: Callable[[], bool] = lambda: False
    ) -> Callable[[], None]:
        """Do the same for one that is not asked for its deadline each turn.

        What is returned is to be called whenever its deadline may have moved.
        """
        self._timed[timed] = prompt
        self._schedule.add(timed)
        return lambda: self._schedule.moved(timed)

    def remove(self, timed: Timed) -> None:
        """Do not wake `timed` any more; harmless when it was not added."""
        self._timed.pop(timed, None)
        self._asked.discard(timed)
        self._schedule.remove(timed)

    def on_signals(self, numbers: Iterable[signal.Signals], call: Callable[[int], None]) -> None:
        """Call `call` with the number of each signal that arrives, from the loop and not from the handler.

        Those that were blocked until now are not any more, so that what has waited since the start arrives.
        """
        numbers = tuple(numbers)
        reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in numbers:
            signal.signal(number, _note)

        def arrived() -> None:
            for number in os.read(reading, _SIGNALS):
                call(number)

        self.read(reading, arrived)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)

    def run(self) -> None:
        """Serve until `stop`."""
        self._running = True
        while self._running:
            self.turn()

    def stop(self) -> None:
        """Let `run` return after what is being done."""
        self._running = False

    def turn(self) -> None:
        """Wait for the next thing, read what can be read, then do what is due."""
        earliest = self._earliest()
        self._timer.arm(earliest)
        self._serve(None)
        now = time.monotonic()
        due = {each: at for each in self._asked if (at := each.deadline) is not None and at <= now}
        due |= self._schedule.due(now)
        if earliest is not None and now - earliest > _OVERSLEPT:
            self._serve(0)
        for each in due:
            if each in self._timed and self._timed[each]():
                self._wake(each)
        self._wake_in_order(due)

    def close(self) -> None:
        """Give the loop's own descriptors back."""
        self._selector.close()
        self._timer.close()

    def _earliest(self) -> float | None:
        deadlines = [at for each in self._asked if (at := each.deadline) is not None]
        if (at := self._schedule.earliest()) is not None:
            deadlines.append(at)
        return min(deadlines, default=None)

    def _serve(self, timeout: float | None) -> None:
        for key, events in self._selector.select(timeout):
            watched: _WatchedDescriptor = key.data
            if events & _READ and watched.read is not None:
                watched.read()
            if events & _WRITE and watched.write is not None:
                watched.write()

    def _wake_in_order(self, due: dict[Timed, float]) -> None:
        """Wake those that the last turn has left, then the others by deadline, until the turn is over."""
        queue = [*self._left, *sorted(due.keys() - self._left, key=due.__getitem__)]
        self._left = []
        begun = time.monotonic()
        for place, each in enumerate(queue, start=1):
            self._wake(each)
            if time.monotonic() - begun > _TURN:
                self._left = queue[place:]
                break

    def _wake(self, timed: Timed) -> None:
        """Have it do what is due: what was read, or another one's doing, may have moved its deadline."""
        now = time.monotonic()
        if timed in self._timed and (at := timed.deadline) is not None and at <= now:
            timed.tick(now)

    def _settle(self, descriptor: int, watched: _WatchedDescriptor, before: int) -> None:
        """Tell the kernel what changed."""
        events = watched.events
        if events == before and events:
            return
        if not events:
            del self._watched[descriptor]
            if before:
                self._selector.unregister(descriptor)
        elif before:
            self._selector.modify(descriptor, events, watched)
        else:
            self._selector.register(descriptor, events, watched)


def _note(_: int, __: FrameType | None) -> None:
    """Do nothing: the number has gone to the wakeup descriptor already."""
