"""Slow start: a server that was away gets its traffic back gradually (HAProxy's `slowstart`).

A server that has just come back has cold caches, and all connections at once could take it down again.
OpenShift asks for 60 s, because the API server of a rebooted master answers /readyz with 200 some 20 to 30 s
before the network of its node works. The weight grows in equal steps, as in HAProxy.
"""

from typing import Final

STEPS: Final = 20
"""Steps of slow start: the first one is a twentieth of the weight, never nothing."""


class SlowStart:
    """The present part of one server's weight. `next_step` is when it grows, None for never."""

    __slots__ = ("_step", "next_step")

    def __init__(self) -> None:
        self._step = STEPS
        self.next_step: float | None = None

    def share_of(self, weight: float) -> float:
        """Return the part of a weight that the server has now."""
        return weight * self._step / STEPS

    def begin(self, now: float, *, seconds: float, step: int = 1) -> None:
        """Begin at a step; `seconds` is the time from nothing to the full weight."""
        self._step = max(step, 1)
        self.next_step = now + seconds / STEPS if self._step < STEPS else None

    def end(self) -> None:
        """Give the server its full weight at once."""
        self._step = STEPS
        self.next_step = None

    def advance(self, now: float, *, seconds: float) -> bool:
        """Take the steps that are due; True if the weight has changed."""
        before = self._step
        while self.next_step is not None and now >= self.next_step:
            self._step += 1
            self.next_step += seconds / STEPS
            if self._step == STEPS:
                self.next_step = None
        return self._step != before
