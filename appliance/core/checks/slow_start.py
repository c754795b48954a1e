"""Slow start: a server that was away gets its traffic back little by little (HAProxy's `slowstart`).

A server that has just come back has cold caches, and everybody's connections at once could take it down
again. OpenShift asks for 60 s, because the API server of a rebooted master answers /readyz with 200 some 20
to 30 s before the network of its node works.

The weight grows in equal steps. HAProxy does the same; its steps are those of the weight.
"""

from typing import Final

STEPS: Final = 20
"""Steps of slow start: the first one is a twentieth of the weight, never nothing."""


class SlowStart:
    """How much of its weight one server has by now. `next_step` is when it gets more, None is never."""

    __slots__ = ("_step", "next_step")

    def __init__(self) -> None:
        self._step = STEPS
        self.next_step: float | None = None

    def share_of(self, weight: float) -> float:
        """Return as much of a weight as the server has now."""
        return weight * self._step / STEPS

    def begin(self, now: float, *, seconds: float, step: int = 1) -> None:
        """Begin at a step; `seconds` is how long it takes from nothing to the whole weight."""
        self._step = max(step, 1)
        self.next_step = now + seconds / STEPS if self._step < STEPS else None

    def end(self) -> None:
        """Give the server its whole weight at once."""
        self._step = STEPS
        self.next_step = None

    def advance(self, now: float, *, seconds: float) -> bool:
        """Take the steps that are due; True when the weight has changed."""
        before = self._step
        while self.next_step is not None and now >= self.next_step:
            self._step += 1
            self.next_step += seconds / STEPS
            if self._step == STEPS:
                self.next_step = None
        return self._step != before
