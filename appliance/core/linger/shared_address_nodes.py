"""Which other nodes may have a connection of a shared address, and whether all of them are known.

All nodes serve a shared address, so any of them may have a connection. A packet of no local connection is
forwarded to each node that lives. Only if all of them deny the connection, or there is none, may the packet
be answered with a reset, and only after every configured peer had the time to be heard.

A node is dead for this purpose after a second: the clients of its connections wait for a reset. A machine
whose `linger` restarts or hangs is not dead, as its kernel still answers for its address.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.linger.nodes import SILENT, Keeper, SharingNode
from appliance.core.linger.served_addresses import ServedAddress
from appliance.core.linger.silent_nodes import ALONE

LEARNING: Final = 2.0
"""Seconds to wait for further news after news of an address: several reports of each node."""

DEAD: Final = 1.0
"""Seconds without a report, nor another sign of life, after which a node's connections are reset."""

DOUBTFUL: Final = 0.5
"""Seconds without a report after which a node is asked for a sign of life."""

MOST_OTHERS: Final = 15
"""Other nodes to which a packet is forwarded at most: as many as a report answers."""


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Company:
    """`others` are for each shared address the nodes that may have its connections, sorted.

    `settled` is whether no other node can have them. `doubtful` nodes should be asked for a sign of life.
    """

    others: Mapping[str, tuple[str, ...]]
    settled: bool
    doubtful: tuple[str, ...]

    @property
    def alone(self) -> frozenset[str]:
        """Return the addresses whose unknown packets belong to no node at all."""
        return frozenset(address for address, nodes in self.others.items() if self.settled and not nodes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Exchange:
    """How this node exchanges reports of one family: with which `peers` and `macs` of its own.

    `since` is when it began, None if it cannot. `awake` is when this node last went on after it could not
    receive: it was held up, or the device to the others was gone.
    """

    peers: Collection[str]
    macs: Collection[bytes]
    since: float | None
    awake: float


def company(
    nodes: Iterable[SharingNode],
    addresses: Iterable[str],
    exchange: Exchange,
    *,
    seen: Mapping[str, float],
    now: float,
) -> Company:
    """Return what to make of the other nodes; `seen` is when the kernel of each last showed to live."""
    peers, awake, since = exchange.peers, exchange.awake, exchange.since
    known = [each for each in nodes if each.node in peers]
    living = [each for each in known if _lives(each, seen.get(each.node, awake), awake, now)]
    understanding = [each for each in living if not each.heard.isdisjoint(exchange.macs)]
    new = [each for each in living if each not in understanding and now - each.since < ALONE]
    asked = (*understanding, *new)
    waited = since is not None and now - since >= ALONE and now - awake >= DEAD
    all_heard = since is not None and {each.node for each in understanding}.issuperset(peers)
    return Company(
        others={
            address: tuple(sorted(each.node for each in asked if address in each.addresses))[:MOST_OTHERS]
            for address in addresses
        },
        settled=(waited or all_heard) and not new and len(asked) <= MOST_OTHERS,
        doubtful=tuple(each.node for each in known if DOUBTFUL <= now - each.at < SILENT),
    )


def _lives(each: SharingNode, seen: float, awake: float, now: float) -> bool:
    if now - each.at >= SILENT:
        return False
    return now - max(each.at, seen, awake) < DEAD
