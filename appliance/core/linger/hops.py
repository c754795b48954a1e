"""Where packets go that belong to no connection of this node: to which other node, by what they report.

A packet that comes from a client goes to the node that serves the address, else to the one that left it last.
A packet that another node has led here goes only to one that left the address earlier than this node did, and
never back. So it goes from node to node backwards through the times of their service, and not in a circle:
not even while a node has not yet heard that another one serves the address now.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from appliance.core.linger.served_addresses import ServedAddress
from appliance.wire.linger_report import LingerReport

SILENT: Final = 6.0
"""Seconds without a report after which a node counts as gone: then clients are told so by a reset."""

DOUBTED: Final = 1.0
"""The same for a node whose virtual IP went to another because its advertisements did not come any more."""

REMEMBERED: Final = 60.0
"""Seconds for which the last sequence of a silent node is remembered, so that it cannot be replayed."""

MOST_NODES: Final = 64
"""Nodes that are remembered; all of them have the key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Keeper:
    """What another node said of one address: it serves it, or left it at `left_at`, with `connections`.

    `mac` is that of its packets, `heard` are those of the nodes that it has heard itself.
    """

    node: str
    mac: bytes
    address: str
    active: bool
    left_at: float
    connections: int
    heard: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Hops:
    """To which node packets of an address go: those of clients, and those that another node has led here.

    `led` is by the MAC of the one that has led it, and the address.
    """

    direct: Mapping[str, str]
    led: Mapping[tuple[bytes, str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heard:
    """The last report of one node on one interface; `silent` is after how many seconds the node is gone."""

    report: LingerReport
    at: float
    silent: float = SILENT


class Nodes:
    """The other nodes by address and interface, as their reports came in."""

    def __init__(self) -> None:
        self._heard: dict[tuple[str, int], Heard] = {}

    def hear(self, node: str, report: LingerReport, *, interface: int, now: float) -> bool:
        """Take a report that has the right key; False where it is not newer than the last one."""
        place = node, interface
        last = self._heard.get(place)
        if last is not None and now - last.at < REMEMBERED and report.sequence <= last.report.sequence:
            return False
        self._heard.pop(place, None)  # so that the node goes to the end: the first was heard longest ago
        self._heard[place] = Heard(report=report, at=now)
        if len(self._heard) > MOST_NODES:
            del self._heard[next(iter(self._heard))]
        return True

    def doubt(self, addresses: Iterable[str]) -> None:
        """Note that those who have reported these addresses are probably dead: until their next report."""
        lost = frozenset(addresses)
        for place, heard in self._heard.items():
            if any(each.address in lost for each in heard.report.addresses):
                self._heard[place] = replace(heard, silent=DOUBTED)

    def macs(self, now: float) -> frozenset[bytes]:
        """Return the MACs of the nodes that are there."""
        return frozenset(each.report.mac for _, _, each in self._living(now))

    def heard(self, interface: int, *, family: int, now: float) -> tuple[bytes, ...]:
        """Return the MACs of the nodes that were heard by one version of IP on one interface."""
        return tuple(
            each.report.mac
            for node, where, each in self._living(now)
            if where == interface and (":" in node) == (family == 6)
        )

    def keepers(self, interfaces: Mapping[str, int], now: float) -> tuple[Keeper, ...]:
        """Return who has what of these addresses, each on the interface of that index."""
        return tuple(
            Keeper(
                node=node,
                mac=heard.report.mac,
                address=each.address,
                active=each.active,
                left_at=heard.at - each.left,
                connections=each.connections,
                heard=frozenset(heard.report.heard),
            )
            for node, interface, heard in self._living(now)
            for each in heard.report.addresses
            if interfaces.get(each.address) == interface
        )

    def _living(self, now: float) -> list[tuple[str, int, Heard]]:
        return [(*place, each) for place, each in self._heard.items() if now - each.at < each.silent]


def hops(keepers: Iterable[Keeper], served: Mapping[str, ServedAddress], *, nodes: Iterable[bytes]) -> Hops:
    """Return where packets go; `served` are our own addresses, `nodes` the MACs of who may lead some here."""
    ordered = sorted(keepers, key=lambda each: (each.active, each.left_at, each.node))
    direct = {each.address: each.node for each in ordered}
    earlier = [each for each in ordered if _is_earlier(each, served.get(each.address))]
    led = {
        (sender, each.address): each.node
        for sender in sorted(nodes)
        for each in earlier
        if each.mac != sender
    }
    return Hops(direct=direct, led=led)


def _is_earlier(keeper: Keeper, ours: ServedAddress | None) -> bool:
    if keeper.active:
        return False
    return ours is None or ours.left_at is None or keeper.left_at < ours.left_at
