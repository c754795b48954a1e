"""A list that changes is believed when it has rested: API servers that flap make one change and not ten.

k3s waits a second too: an API server that restarts adds itself, goes and adds itself again
(pkg/agent/tunnel).
"""

from typing import Final, Generic, TypeVar

Value = TypeVar("Value")

REST: Final = 1.0
"""Seconds that a list has to rest."""

PATIENCE: Final = 10.0
"""Seconds after which one that never rests is believed as it is."""


class Settling(Generic[Value]):
    """The last value of something, and since when. Times are monotonic seconds."""

    def __init__(self, value: Value | None = None) -> None:
        self.settled = value
        self._latest = value
        self._begun: float | None = None
        self._rests_at = 0.0

    @property
    def deadline(self) -> float | None:
        """Return when the latest value is believed, None where it is already."""
        if self._begun is None:
            return None
        return min(self._rests_at, self._begun + PATIENCE)

    def observe(self, value: Value, now: float) -> None:
        """Take a value; one that is settled already ends what was on its way."""
        if value == self._latest:
            return
        self._latest = value
        if value == self.settled:
            self._begun = None
            return
        self._begun = now if self._begun is None else self._begun
        self._rests_at = now + REST

    def settle_at_once(self) -> None:
        """Believe the latest value now."""
        self.settled, self._begun = self._latest, None

    def settle(self, now: float) -> bool:
        """Believe the latest value if it is time to; return whether that is another one."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return False
        self.settle_at_once()
        return True
