"""Ends a take-over: the predecessor gets the command to exit as soon as this program's loop runs."""

from collections.abc import Callable
from typing import IO, Final

from appliance.net.files.lock_files import try_lock
from appliance.vrrp.takeover.predecessor import Predecessor

_LOOK_AGAIN: Final = 0.005  # seconds
_PATIENCE: Final = 1.0  # seconds from the command to the kill


class TakeOver:
    """Ends `predecessor`, and calls `on_end` when it is gone, that is when the program's `lock` is free.

    It is woken by the loop: before the loop's first turn this program sends no adverts.
    """

    def __init__(self, predecessor: Predecessor, lock: IO[str], *, on_end: Callable[[], None]) -> None:
        self.deadline: float | None = 0.0
        self._predecessor = predecessor
        self._lock = lock
        self._on_end = on_end
        self._kill_at: float | None = None

    def tick(self, now: float) -> None:
        """Send it the command to exit, check whether it is gone, or kill it."""
        if self._kill_at is None:
            self._predecessor.end()
            self._kill_at = now + _PATIENCE
        if try_lock(self._lock):
            self.deadline = None
            self._predecessor.close()
            self._on_end()
            return
        if now >= self._kill_at:
            self._predecessor.kill(f"still there {_PATIENCE:g} s after it was relieved")
            self._kill_at = now + _PATIENCE
        self.deadline = now + _LOOK_AGAIN
