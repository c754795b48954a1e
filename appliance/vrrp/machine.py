"""What all virtual routers of the program share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from appliance.model.virtual_router import VirtualRouter
from appliance.net.interfaces.addresses import Addresses
from appliance.net.interfaces.links import Links
from appliance.net.interfaces.neighbours import Neighbours
from appliance.net.interfaces.netlink import Requests
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.vrrp.address_asking import AddressAsking
from appliance.vrrp.address_seat import AddressSeat
from appliance.vrrp.peer_returns import PeerReturns


class Holder(Protocol):
    """Who has the addresses of a virtual router on the interface of its seat."""

    router: VirtualRouter
    seat: AddressSeat | None

    def release(self) -> None:
        """Remove them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """What all virtual routers of the program share. `missing` are the capabilities that it lacks.

    `holders` are those that have addresses on an interface: one may leave what another one has taken over.
    `routers` returns the configuration of all of them.
    """

    loop: Loop
    links: Links
    addresses: Addresses
    requests: Requests
    neighbours: Neighbours
    closer: Closer
    asking: AddressAsking
    returns: PeerReturns
    log: FilteringBoundLogger
    missing: tuple[str, ...]
    routers: Callable[[], Iterable[VirtualRouter]] = tuple
    holders: set[Holder] = field(default_factory=set)
