"""The places of a server's connections, and who gives way where all are taken.

Of the origin (a user, a network) that has most of those who may go, it is the one that has rested longest: so
whoever takes all places takes them from itself. A connection that is at work keeps its place.
"""

from collections import Counter
from collections.abc import Hashable
from typing import Generic, TypeVar

_Holder = TypeVar("_Holder", bound=Hashable)


class Places(Generic[_Holder]):
    """Who holds a place, by origin: at rest from the start on, or at work."""

    def __init__(self) -> None:
        self._origins: dict[_Holder, Hashable] = {}
        self._resting: dict[_Holder, None] = {}  # in order: who has rested longest is the first

    def __len__(self) -> int:
        return len(self._origins)

    def enter(self, holder: _Holder, origin: Hashable) -> None:
        """Give a place."""
        self._origins[holder] = origin
        self._resting[holder] = None

    def work(self, holder: _Holder) -> None:
        """Note that it must not go now."""
        self._resting.pop(holder, None)

    def rest(self, holder: _Holder) -> None:
        """Note that it may go, after all others that rest now."""
        if holder in self._origins:
            self._resting.pop(holder, None)
            self._resting[holder] = None

    def leave(self, holder: _Holder) -> None:
        """Take the place back; harmless where it has none."""
        self._origins.pop(holder, None)
        self._resting.pop(holder, None)

    def give_way(self) -> _Holder | None:
        """Take a place back, and return who had it; None where nobody may go."""
        counts = Counter(self._origins[each] for each in self._resting)
        if not counts:
            return None
        most = max(counts.values())
        leaver = next(each for each in self._resting if counts[self._origins[each]] == most)
        self.leave(leaver)
        return leaver
