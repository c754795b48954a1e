"""The pool of a client by the server name that it requests: the first matching route, as with HAProxy.

Names are looked up, so thousands of them cost no more than a few; only regular expressions are tried one by
one.
"""

from collections.abc import Iterable
from typing import Final

from appliance.model.byte_pattern import byte_pattern
from appliance.model.snapshot.frontends import SniRoute
from appliance.wire.checks.pattern_search import PatternSearch

_WILDCARD: Final = "*."
_MOST_WORK: Final = 10_000
"""States tried for one name, some 10 ms: the client chooses the name. Beyond that nothing matches."""


class SniRoutes:
    """The routes of a frontend, in their order."""

    def __init__(self, routes: Iterable[SniRoute]) -> None:
        self._pools: list[str] = []
        self._exact: dict[str, int] = {}
        self._suffixes: dict[str, int] = {}
        self._searches: list[tuple[int, PatternSearch]] = []
        for position, route in enumerate(routes):
            self._pools.append(route.pool)
            for name in route.names:
                known = self._suffixes if name.startswith(_WILDCARD) else self._exact
                known.setdefault(name.removeprefix(_WILDCARD), position)
            if route.regex:
                self._searches.append((position, PatternSearch(byte_pattern(route.regex, no_case=True))))

    def pool(self, name: str) -> str | None:
        """Return the pool of a name in lower case, None if no route matches."""
        first = min(self._named(name), default=len(self._pools))
        data, left = name.encode(), _MOST_WORK
        for position, search in self._searches:
            if position > first:
                break
            search.restart(left)
            search.feed(data)
            left -= search.work
            if search.found and not search.given_up:
                first = position
                break
        return self._pools[first] if first < len(self._pools) else None

    def _named(self, name: str) -> Iterable[int]:
        """Yield the positions of the routes that have this name, or a wildcard for it."""
        if name in self._exact:
            yield self._exact[name]
        at = name.find(".")
        while at >= 0:
            suffix = name[at + 1 :]
            if suffix in self._suffixes:
                yield self._suffixes[suffix]
            at = name.find(".", at + 1)
