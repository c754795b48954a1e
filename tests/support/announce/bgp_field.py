"""Nodes that share addresses and announce them by BGP to a real router, with a client beyond it."""

from collections.abc import Callable
from typing import Self

from support.announce.routers import Router
from support.announce.shared_node import NODES_ASN, neighbors
from support.linger.shared_field import SHARED, SHARED6, SharedField


class BgpField(SharedField):
    """As `SharedField`, but the router gets its routes from the nodes."""

    def __init__(self, count: int, kind: Callable[..., Router]) -> None:
        super().__init__(count)
        with self._stack:
            addresses = [
                address for each in self.machines.values() for address in (each.address, each.address6)
            ]
            self.speaker = self._stack.enter_context(kind(self.router, addresses, asn=NODES_ASN))
            self._stack = self._stack.pop_all()

    def __enter__(self) -> Self:
        super().__enter__()
        self.wait_for(*self.machines)
        return self

    def config(self, name: str, *more: str) -> dict[str, object]:
        """Return a node's configuration, with the router as its neighbour."""
        routers = [self.router.address, self.router.address6]
        return {**super().config(name, *more), "bgp": {"asn": NODES_ASN, "neighbors": neighbors(routers)}}

    def wait_for(self, *names: str) -> None:
        """Wait until the router sends packets to exactly these nodes."""
        for address in (SHARED, SHARED6):
            self.speaker.wait_for(address, *(self.machines[each] for each in names), timeout=60.0)
