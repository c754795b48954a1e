"""When clients are made to send, so that what nobody has any more ends at once."""

from collections.abc import Iterable
from itertools import islice
from typing import Final

from appliance.core.linger.strays import AT_ONCE
from appliance.wire.linger_strays import Ends

APART: Final = 0.6
"""Seconds between two for one connection: Linux answers one in half a second (tcp_invalid_ratelimit)."""

MOST: Final = 4096
"""Connections that wait for theirs."""


class Provocations:
    """The connections whose clients are to send, the first one first."""

    def __init__(self) -> None:
        self._last: dict[Ends, float] = {}  # the oldest first
        self._due: dict[Ends, float] = {}

    @property
    def pending(self) -> bool:
        """Whether some are still to be made."""
        return bool(self._due)

    def add(self, connections: Iterable[Ends], now: float) -> None:
        """Have the clients of connections send as soon as they would answer."""
        for each in connections:
            if len(self._due) < MOST:
                self._due.setdefault(each, max(now, self._last.get(each, float("-inf")) + APART))

    def due(self, now: float) -> list[Ends]:
        """Return those to make now, as many as one turn takes."""
        while self._last and now - next(iter(self._last.values())) > APART:
            del self._last[next(iter(self._last))]
        found = list(islice((each for each, at in self._due.items() if at <= now), AT_ONCE))
        for each in found:
            del self._due[each]
            self._last[each] = now
        return found
