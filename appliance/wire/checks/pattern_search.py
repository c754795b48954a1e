"""Searches a stream for a regular expression in one pass, whatever the sizes of its pieces.

All states of `model.byte_pattern` that a byte leads to are one set, and the step from a set by a byte is
computed once: most bytes cost one look-up, and the worst ones as many steps as the expression has states. The
server chooses the bytes, so each answer has a budget of such steps.
"""

from collections.abc import Iterable
from typing import Final

from appliance.model.byte_pattern import AtEnd, AtStart, BytePattern, Fork, Found, OneOf

_MOST_SETS: Final = 500
"""Cached sets: an expression can have very many, and a server could provoke all of them."""

_MOST_WORK: Final = 200_000
"""States examined for one answer, apart from look-ups: a tenth of a second."""


class _Set:
    """The possible states after some bytes. `ends` is whether there is a match if the stream ends here."""

    __slots__ = ("ends", "found", "leads", "ways")

    def __init__(self, ways: frozenset[OneOf], *, found: bool, ends: bool) -> None:
        self.ways = ways
        self.found = found
        self.ends = ends
        self.leads: dict[int, _Set] = {}


class PatternSearch:
    """The search in one answer; `feed` gives it the next bytes. `work` is its cost so far, in states."""

    def __init__(self, pattern: BytePattern) -> None:
        self._pattern = pattern
        self.work = 0
        self._known: dict[tuple[frozenset[OneOf], bool, bool], _Set] = {}
        self._again = self._closed([pattern.first], at_start=False)
        self._start = self._closed([pattern.first], at_start=True)
        self.restart()

    def restart(self, most_work: int = _MOST_WORK) -> None:
        """Start the search in another text with a new budget; computed steps are kept."""
        self._most_work = most_work
        self._before = self._now = self._start
        self._last = -1
        self.work = 0

    @property
    def found(self) -> bool:
        """Whether the text received so far has a match, as if it ended here."""
        if self._now.found or self._now.ends:
            return True
        return self._last == ord("\n") and self._before.ends  # `$` also matches before a last line break

    @property
    def given_up(self) -> bool:
        """Whether the budget was used up: nothing was found, and the search has stopped."""
        return self.work > self._most_work and not self._now.found

    def feed(self, data: bytes) -> None:
        """Search the next bytes."""
        for byte in data:
            if self._now.found or self.work > self._most_work:
                return
            self._before, self._last = self._now, byte
            self._now = self._now.leads.get(byte) or self._lead(byte)

    def _lead(self, byte: int) -> _Set:
        """Compute the set that a byte leads to from the present one, and cache it."""
        if len(self._known) > _MOST_SETS:
            self._known.clear()
            self._start.leads.clear()
            self._again.leads.clear()
            self._now = _Set(self._now.ways, found=self._now.found, ends=self._now.ends)
        taken = [each.then for each in self._now.ways if each.bytes >> byte & 1]
        there = self._closed(taken, at_start=False)
        ways = there.ways | self._again.ways  # a match may start at every byte
        found, ends = there.found or self._again.found, there.ends or self._again.ends
        known = self._known.setdefault((ways, found, ends), _Set(ways, found=found, ends=ends))
        self._now.leads[byte] = known
        return known

    def _closed(self, states: Iterable[int], *, at_start: bool) -> _Set:
        """Return the set of all states that these lead to without a byte."""
        ways, ends = self._reached(states, at_start=at_start)
        after, _ = self._reached(ends, at_start=at_start, at_end=True)
        found = Found() in ways
        takes = frozenset(each for each in ways if isinstance(each, OneOf))
        return _Set(takes, found=found, ends=found or Found() in after)

    def _reached(
        self, states: Iterable[int], *, at_start: bool, at_end: bool = False
    ) -> tuple[set[OneOf | Found], list[int]]:
        """Return the states that take a byte or are final, and where to continue if the text ends here."""
        open_, seen = list(states), set[int]()
        reached: set[OneOf | Found] = set()
        ends: list[int] = []
        while open_:
            at = open_.pop()
            if at in seen:
                continue
            seen.add(at)
            match self._pattern.states[at]:
                case Fork(ways):
                    open_.extend(ways)
                case AtStart(then):
                    open_.extend([then] if at_start else [])
                case AtEnd(then):
                    (open_ if at_end else ends).append(then)
                case state:
                    reached.add(state)
        self.work += len(seen)
        return reached, ends
