"""The events that wait for one recipient: how many, how often to send, and the count of dropped ones.

Messages are limited to one in `PAUSE` seconds with at most `BATCH` events. Above `MOST` waiting events the
oldest are dropped and counted, and the count goes with the next message. A failed message is tried again
after pauses that double, and dropped after `TRIES`: a recipient that was away for an hour needs the present
status, and not that of an hour ago.
"""

from collections import deque
from dataclasses import dataclass
from typing import Final

from appliance.model.operator_events import OperatorEvent

MOST: Final = 200
BATCH: Final = 20
PAUSE: Final = 1.0
FIRST_RETRY: Final = 2.0
LONGEST_RETRY: Final = 300.0
TRIES: Final = 16
"""With those pauses: about two and a half hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One message: events, oldest first, and how many were dropped before them."""

    events: tuple[OperatorEvent, ...]
    left_out: int


class NotifyQueue:
    """The queue of one target; `now` is monotonic seconds."""

    def __init__(self) -> None:
        self._waiting: deque[OperatorEvent] = deque()
        self._left_out = 0
        self._failed = 0
        self._next_at = float("-inf")

    @property
    def deadline(self) -> float | None:
        """When a message is due; None while nothing waits."""
        return self._next_at if self._waiting else None

    def add(self, event: OperatorEvent) -> None:
        """Queue an event."""
        self._waiting.append(event)
        if len(self._waiting) > MOST:
            self._waiting.popleft()
            self._left_out += 1

    def due(self, now: float) -> Batch | None:
        """Return the message to send now, or None. `delivered` or `failed` follows."""
        if not self._waiting or now < self._next_at:
            return None
        events = tuple(self._waiting)[:BATCH]
        return Batch(events=events, left_out=self._left_out)

    def delivered(self, batch: Batch, now: float) -> None:
        """Forget a delivered message, including those of its events that were dropped meanwhile."""
        dropped = len(batch.events) - self._forget(batch)
        self._left_out -= batch.left_out + dropped
        self._failed, self._next_at = 0, now + PAUSE

    def failed(self, batch: Batch, now: float) -> bool:
        """Plan the next try of a message; return whether it was the first failure in a row."""
        self._failed += 1
        if self._failed % TRIES == 0:
            self._left_out += self._forget(batch)
        pause = FIRST_RETRY * 2.0 ** min(self._failed - 1, 10)
        self._next_at = now + min(pause, LONGEST_RETRY)
        return self._failed == 1

    def _forget(self, batch: Batch) -> int:
        """Drop the events of a batch that are still there: the oldest may have been dropped meanwhile."""
        gone = set(map(id, batch.events))
        before = len(self._waiting)
        while self._waiting and id(self._waiting[0]) in gone:
            self._waiting.popleft()
        return before - len(self._waiting)
