"""How many lines of one kind are logged: endless repetitions are counted, and not written.

A kind is an event's name with the names of its subjects: two servers that go down are two kinds. Values that
a stranger chooses (its address, what it sent) are not part of a kind, or a stranger could make any number of
kinds and fill the disk.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

BURST: Final = 20
"""Lines of one kind that are written per interval: a server that flaps as fast as it can has fewer."""

INTERVAL: Final = 60.0
"""Seconds until a kind that was over its burst is written again."""

MOST_KINDS: Final = 16_384
"""Kinds that are limited separately; beyond that number, the further ones of an event share one limit."""

_NAMES: Final = (  # names from a configuration or a file system: nobody outside can add to them
    "name",
    "router",
    "pool",
    "server",
    "frontend",
    "bind",
    "group",
    "track",
    "program",
    "interface",
    "address",
    "path",
    "file",
    "config",
    "board",
    "of",
    # A few words each, by which an operator tells two problems of the same subject apart.
    "state",
    "kind",
    "cause",
    "doing",
)
_LONGEST_NAME: Final = 300

Kind = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OmittedLines:
    """Lines of one kind that were not written: their common fields, and how many."""

    kind: Kind
    count: int


@dataclass(slots=True, kw_only=True)
class _Interval:
    ends: float
    written: int = 0
    left_out: int = 0


class LogRateLimit:
    """Decides for each line whether it is written; `now` is in seconds of one monotonic clock.

    `burst` is how many lines of a kind are written in `interval` seconds, `kinds` how many kinds are kept
    apart.
    """

    def __init__(self, *, burst: int = BURST, interval: float = INTERVAL, kinds: int = MOST_KINDS) -> None:
        self.deadline: float | None = None
        """When `due` first has something to return; None while no line was left out."""
        self._burst = burst
        self._interval = interval
        self._most = kinds
        self._intervals: dict[Kind, _Interval] = {}  # in the order in which they end

    def admits(self, event: str, fields: Mapping[str, object], now: float) -> bool:
        """Return whether a line may be written; one that may not is counted.

        Call `due` with the same `now` before: an interval that is over must not swallow another line.
        """
        found = self._interval_of(event, fields, now)
        if found.written < self._burst:
            found.written += 1
            return True
        found.left_out += 1
        self.deadline = found.ends if self.deadline is None else min(self.deadline, found.ends)
        return False

    def due(self, now: float) -> list[OmittedLines]:
        """Return the lines left out in intervals that are now over, and forget those intervals."""
        omitted = []
        while self._intervals:
            kind, first = next(iter(self._intervals.items()))
            if first.ends > now:
                break
            del self._intervals[kind]
            if first.left_out:
                omitted.append(OmittedLines(kind=kind, count=first.left_out))
        if omitted:
            self.deadline = min(
                (each.ends for each in self._intervals.values() if each.left_out), default=None
            )
        return omitted

    def _interval_of(self, event: str, fields: Mapping[str, object], now: float) -> _Interval:
        kind = _kind(event, fields)
        if kind not in self._intervals and len(self._intervals) >= self._most:
            kind = _kind(event, {})
        return self._intervals.setdefault(kind, _Interval(ends=now + self._interval))


def _kind(event: str, fields: Mapping[str, object]) -> Kind:
    named = ((name, str(fields[name])[:_LONGEST_NAME]) for name in _NAMES if name in fields)
    return (("event", event), *named)
