"""The deadlines of many objects: the earliest is found without querying all of them each turn."""

import heapq
from itertools import count
from typing import Final, Protocol


class Timed(Protocol):
    """Something whose `tick` is called at its own deadline, monotonic seconds; None is never.

    None can starve the others: one that is always due is called again only after all others that were due
    with it. Long work is done in parts, one per tick.
    """

    @property
    def deadline(self) -> float | None:
        """Return when `tick` is to be called."""
        ...

    def tick(self, now: float) -> None:
        """Do the work due at `now`."""
        ...


_NEVER: Final = None

_MOST_ENTRIES: Final = 4
"""Entries of the heap per member above which outdated ones are removed.

Each move of a deadline, as in a flood of advertisements, leaves an outdated entry.
"""


class Schedule:
    """The deadlines of objects that report moves: only then is the deadline queried."""

    def __init__(self) -> None:
        self._at: dict[Timed, float | None] = {}
        self._heap: list[tuple[float, int, Timed]] = []
        self._moved: set[Timed] = set()
        self._serial = count()

    def add(self, timed: Timed) -> None:
        """Add an object; its deadline is queried next time."""
        self._at[timed] = _NEVER
        self._moved.add(timed)

    def remove(self, timed: Timed) -> None:
        """Remove an object; harmless if it was not added."""
        self._at.pop(timed, None)
        self._moved.discard(timed)

    def moved(self, timed: Timed) -> None:
        """Note that the deadline of an object may have moved."""
        if timed in self._at:
            self._moved.add(timed)

    def earliest(self) -> float | None:
        """Return the earliest deadline, None for none."""
        self._settle()
        while self._heap and self._at.get(self._heap[0][2]) != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now: float) -> dict[Timed, float]:
        """Return the objects whose deadline has come; their next one is queried afterwards."""
        found: dict[Timed, float] = {}
        while (earliest := self.earliest()) is not None and earliest <= now:
            timed = heapq.heappop(self._heap)[2]
            found[timed] = earliest
            self._at[timed] = _NEVER
        self._moved.update(found)
        return found

    def _settle(self) -> None:
        """Query the moved deadlines, and add entries for them; `earliest` skips outdated ones."""
        for timed in self._moved:
            at = timed.deadline
            if at != self._at[timed]:
                self._at[timed] = at
                if at is not None:
                    heapq.heappush(self._heap, (at, next(self._serial), timed))
        self._moved.clear()
        if len(self._heap) > _MOST_ENTRIES * len(self._at):
            self._drop_outdated()

    def _drop_outdated(self) -> None:
        present = ((at, timed) for timed, at in self._at.items() if at is not None)
        self._heap = [(at, next(self._serial), timed) for at, timed in present]
        heapq.heapify(self._heap)
