"""For which addresses this node knows where the connections are: only there an unknown packet is reset."""

from collections.abc import Iterable
from typing import Final

from appliance.core.linger.nodes import Keeper
from appliance.core.linger.served_addresses import ServedAddress

LEARNING: Final = 2.0
"""Seconds to wait for further news after news of an address: several reports of each node."""


class Settled:
    """Tracks when there was news of each address: a node newly serves it or has newly left it."""

    def __init__(self) -> None:
        self._known: frozenset[tuple[str, str, bool]] = frozenset()
        self._news: dict[str, float] = {}

    def at(self, now: float, *, keepers: Iterable[Keeper], ours: Iterable[ServedAddress]) -> frozenset[str]:
        """Return the addresses without recent news that at least one node serves or has left.

        `keepers` are the other nodes' and `ours` this node's own.
        """
        known = frozenset(
            (*((each.address, each.node, each.active) for each in keepers),
             *((each.address, "", each.active) for each in ours))
        )  # fmt: skip
        self._news.update((address, now) for address, _, _ in known - self._known)
        self._known = known
        return frozenset(address for address, _, _ in known if now - self._news[address] >= LEARNING)
