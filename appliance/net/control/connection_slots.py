"""The places of a server's connections, and which gives way if all are taken.

It is the connection idle longest, of the origin (a user, a network) with the most idle connections: so a
client that takes all places takes them from itself. A busy connection keeps its place.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

_Holder = TypeVar("_Holder", bound=Hashable)


class ConnectionSlots(Generic[_Holder]):
    """Holders of places, by origin: idle (as at the start) or busy."""

    def __init__(self) -> None:
        self._origins: dict[_Holder, Hashable] = {}
        self._resting: dict[_Holder, None] = {}  # in order: the one idle longest is first

    def __len__(self) -> int:
        return len(self._origins)

    def holders(self) -> tuple[_Holder, ...]:
        """Return all who have a place."""
        return tuple(self._origins)

    def enter(self, holder: _Holder, origin: Hashable) -> None:
        """Give a place."""
        self._origins[holder] = origin
        self._resting[holder] = None

    def work(self, holder: _Holder) -> None:
        """Mark a holder as busy: it does not give way now."""
        self._resting.pop(holder, None)

    def rest(self, holder: _Holder) -> None:
        """Mark a holder as idle: it gives way after all others that are idle now."""
        if holder in self._origins:
            self._resting.pop(holder, None)
            self._resting[holder] = None

    def leave(self, holder: _Holder) -> None:
        """Free the place; harmless without one."""
        self._origins.pop(holder, None)
        self._resting.pop(holder, None)

    def give_way(self) -> _Holder | None:
        """Free a place, and return its holder; None if all are busy."""
        counts = Counter(self._origins[each] for each in self._resting)
        if not counts:
            return None
        most = max(counts.values())
        leaver = next(each for each in self._resting if counts[self._origins[each]] == most)
        self.leave(leaver)
        return leaver
