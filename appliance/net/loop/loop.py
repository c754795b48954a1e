"""One loop for a program that must not be late: descriptors, deadlines and signals only.

Each turn reads all readable descriptors before it does due work: a process that was stopped, or not scheduled
for a while, learns what happened meanwhile before it acts on a missed deadline. Otherwise a backup that slept
would take over from an active router whose advertisements wait in its receive buffer. Then it calls those
whose `prompt` is true, and as many others as fit into a short turn, so that many due at once do not delay
advertisements. The remaining ones come first in the next turn.
"""

import contextlib
import ctypes
import os
import selectors
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import FrameType
from typing import Final

from appliance.net.loop.schedule import Schedule, Timed

_ABSOLUTE: Final = 1  # TFD_TIMER_ABSTIME
_AT_ONCE: Final = 1e-9  # a time of 0 would disarm


class _Timespec(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


class _Setting(ctypes.Structure):
    _fields_ = (("interval", _Timespec), ("value", _Timespec))


_libc: Final = ctypes.CDLL(None, use_errno=True)


class Timer:
    """A descriptor that becomes readable at a given time, in seconds of time.monotonic()."""

    def __init__(self) -> None:
        self._descriptor: int = _libc.timerfd_create(time.CLOCK_MONOTONIC, os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "timerfd_create")
        self._setting = _Setting()
        self._reference = ctypes.byref(self._setting)
        self._armed: float | None = None

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._descriptor

    def arm(self, at: float | None) -> None:
        """Make it readable from `at` on, None for never; replaces the earlier time."""
        if at == self._armed:
            return
        self._armed = at
        nanoseconds = 0 if at is None else int(max(at, _AT_ONCE) * 1e9)
        value = self._setting.value
        value.seconds, value.nanoseconds = divmod(nanoseconds, 1_000_000_000)
        _libc.timerfd_settime(self._descriptor, _ABSOLUTE, self._reference, None)

    def clear(self) -> None:
        """Read it after expiry, so that it is no longer readable."""
        self._armed = None
        with contextlib.suppress(BlockingIOError):
            os.read(self._descriptor, 8)

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)


_READ: Final = selectors.EVENT_READ
_WRITE: Final = selectors.EVENT_WRITE
_OVERSLEPT: Final = 0.001  # seconds after its deadline from which a turn reads sockets again before it acts
_TURN: Final = 0.002  # seconds after which work that is due and not prompt is left to the next turn
_SIGNALS: Final = 64  # bytes, each one signal

Ready = Callable[[], None]


@dataclass(slots=True, eq=False)
class _WatchedDescriptor:
    """Callbacks of one descriptor, emptied when it is removed: its event may already have been fetched."""

    read: Ready | None = None
    write: Ready | None = None

    @property
    def events(self) -> int:
        return (_READ if self.read else 0) | (_WRITE if self.write else 0)


class Loop:
    """Calls back when there is something to read, write or do; callbacks must not block or raise."""

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
        """Call `ready` whenever the descriptor can be read; None ends that, and is harmless otherwise."""
        watched = self._watched.setdefault(descriptor, _WatchedDescriptor())
        before, watched.read = watched.events, ready
        self._settle(descriptor, watched, before)

    def write(self, descriptor: int, ready: Ready | None) -> None:
        """Call `ready` whenever the descriptor can be written; None ends that."""
        watched = self._watched.setdefault(descriptor, _WatchedDescriptor())
        before, watched.write = watched.events, ready
        self._settle(descriptor, watched, before)

    def forget(self, descriptor: int) -> None:
        """Stop watching a descriptor before it is closed: epoll would keep a copy of it (epoll(7))."""
        self.read(descriptor, None)
        self.write(descriptor, None)

    def add(self, timed: Timed, *, prompt: Callable[[], bool] = lambda: False) -> None:
        """Call `timed.tick` at its deadlines, before all others if `prompt()` is true: for short work."""
        self._timed[timed] = prompt
        self._asked.add(timed)

    def add_one_of_many(
        self, timed: Timed, *, prompt: Callable[[], bool] = lambda: False
    ) -> Callable[[], None]:
        """Add one not queried each turn; return what to call whenever its deadline may have moved."""
        self._timed[timed] = prompt
        self._schedule.add(timed)
        return lambda: self._schedule.moved(timed)

    def remove(self, timed: Timed) -> None:
        """Stop calling `timed.tick`; harmless when it was not added."""
        self._timed.pop(timed, None)
        self._asked.discard(timed)
        self._schedule.remove(timed)

    def on_signals(self, numbers: Iterable[signal.Signals], call: Callable[[int], None]) -> None:
        """Call `call` with the number of each signal that arrives, from the loop, not from the handler.

        The interpreter writes the number of each signal into the wake-up descriptor (signal.set_wakeup_fd),
        which the loop reads. Blocked signals are unblocked, so that those pending since the start arrive.
        signalfd(2) would need them blocked permanently, and children inherit that.
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
        """Run until `stop` is called."""
        self._running = True
        while self._running:
            self.turn()

    def stop(self) -> None:
        """Let `run` return after this turn."""
        self._running = False

    def turn(self) -> None:
        """Wait for the next event or deadline, read readable descriptors, then do due work."""
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
        """Close the loop's own descriptors."""
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
        """Call those left by the last turn, then the others by deadline, until the turn is over."""
        queue = [*self._left, *sorted(due.keys() - self._left, key=due.__getitem__)]
        self._left = []
        begun = time.monotonic()
        for place, each in enumerate(queue, start=1):
            self._wake(each)
            if time.monotonic() - begun > _TURN:
                self._left = queue[place:]
                break

    def _wake(self, timed: Timed) -> None:
        """Call one if still due: a read, or another call, may have moved its deadline."""
        now = time.monotonic()
        if timed in self._timed and (at := timed.deadline) is not None and at <= now:
            timed.tick(now)

    def _settle(self, descriptor: int, watched: _WatchedDescriptor, before: int) -> None:
        """Register the watched events with the selector."""
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
    """Do nothing: the interpreter has already written the number to the wake-up descriptor."""
