"""The pool of a client by its address: the first route with a network that contains it.

Addresses are looked up by prefix length, so thousands of networks cost no more than a few.
"""

from collections.abc import Iterable

from appliance.core.balancing.access_lists import prefix
from appliance.model.snapshot.frontends import ClientRoute


class ClientRoutes:
    """The routes of a frontend, in their order."""

    def __init__(self, routes: Iterable[ClientRoute]) -> None:
        self._pools: list[str] = []
        tables: dict[tuple[int, int], dict[int, int]] = {}
        for position, route in enumerate(routes):
            self._pools.append(route.pool)
            for text in route.networks:
                size, shift, start = prefix(text)
                tables.setdefault((size, shift), {}).setdefault(start, position)
        self._tables = [(size, shift, positions) for (size, shift), positions in tables.items()]

    def pool(self, packed: bytes) -> str | None:
        """Return the pool of a client of this address, of 4 or 16 bytes; None if no route matches."""
        number, size, none = int.from_bytes(packed, "big"), len(packed), len(self._pools)
        found = (
            positions.get(number >> shift, none) for width, shift, positions in self._tables if width == size
        )
        first = min(found, default=none)
        return self._pools[first] if first < none else None
