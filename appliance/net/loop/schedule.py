"""The deadlines of many: the earliest is found without asking every one of them each time."""

import heapq
from itertools import count
from typing import Final, Protocol


class Timed(Protocol):
    """Something that is to be woken at its own deadline, monotonic seconds; None is never.

    Its turn comes whatever the deadlines of the others say: one that is always due, or due since long ago, is
    woken again after everybody else who was due when it was woken. Work of many parts does one for each tick.
    """

    @property
    def deadline(self) -> float | None:
        """Return when to be woken."""
        ...

    def tick(self, now: float) -> None:
        """Do what is due at `now`."""
        ...


_NEVER: Final = None

_PASSED_OVER: Final = 4
"""Entries for each member beyond which those that have moved on are cleared away.

A deadline that is put off again and again, by adverts that come in floods, leaves an entry each time.
"""


class Schedule:
    """Those that tell when their deadline has moved: they are asked for it then, and not before."""

    def __init__(self) -> None:
        self._at: dict[Timed, float | None] = {}
        self._heap: list[tuple[float, int, Timed]] = []
        self._moved: set[Timed] = set()
        self._serial = count()

    def add(self, timed: Timed) -> None:
        """Take one more."""
        self._at[timed] = _NEVER
        self._moved.add(timed)

    def remove(self, timed: Timed) -> None:
        """Forget one; harmless when it is not here."""
        self._at.pop(timed, None)
        self._moved.discard(timed)

    def moved(self, timed: Timed) -> None:
        """Ask for its deadline again."""
        if timed in self._at:
            self._moved.add(timed)

    def earliest(self) -> float | None:
        """Return the earliest deadline, None for none."""
        self._settle()
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> dict[Timed, float]:
        """Return those whose deadline has come; they are asked again afterwards."""
        found: dict[Timed, float] = {}
        while (earliest := self.earliest()) is not None and earliest <= now:
            timed = heapq.heappop(self._heap)[2]
            found[timed] = earliest
            self._at[timed] = _NEVER
        self._moved.update(found)
        return found

    def _settle(self) -> None:
        """Put in order what has moved; where it was before is passed over when its time comes."""
        for timed in self._moved:
            at = timed.deadline
            if at != self._at[timed]:
                self._at[timed] = at
                if at is not None:
                    heapq.heappush(self._heap, (at, next(self._serial), timed))
        self._moved.clear()
        if len(self._heap) > _PASSED_OVER * len(self._at):
            self._clear_away()

    def _clear_away(self) -> None:
        present = ((at, timed) for timed, at in self._at.items() if at is not None)
        self._heap = [(at, next(self._serial), timed) for at, timed in present]
        heapq.heapify(self._heap)
