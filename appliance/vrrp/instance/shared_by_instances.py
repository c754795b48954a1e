"""What all VRRP instances of the program share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.netlink.links import Links
from appliance.net.netlink.neighbours import Neighbours
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.routing import Routing
from appliance.net.netlink.virtual_addresses import Addresses
from appliance.net.packets.frames import FrameSocket
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.addresses.claim_probe import OpenClaims
from appliance.vrrp.addresses.neighbour_queries import NeighbourQueries
from appliance.vrrp.addresses.peer_returns import PeerReturns
from appliance.vrrp.sockets.port import OpenPort
from appliance.vrrp.sockets.router_sockets import RouterSockets


class AddressReleaser(Protocol):
    """An instance that has its addresses on an interface: its `AddressHolder`."""

    router: VirtualRouter
    interface: AddressInterface | None

    def release(self) -> None:
        """Remove the addresses from the interface."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterEnvironment:
    """What all instances of the program share. `missing` are the capabilities that the program lacks.

    `holders` are the instances that have addresses on an interface: an instance must not remove an address
    that another one has taken over. `routers` returns the configuration of all of them. `open_port` and
    `open_claims` open sockets; tests without root pass their own.
    """

    loop: Loop
    links: Links
    addresses: Addresses
    routing: Routing
    requests: Requests
    neighbours: Neighbours
    closer: Closer
    asking: NeighbourQueries
    returns: PeerReturns
    log: FilteringBoundLogger
    missing: tuple[str, ...]
    routers: Callable[[], Iterable[VirtualRouter]] = tuple
    holders: set[AddressReleaser] = field(default_factory=set)
    open_port: OpenPort = RouterSockets
    open_claims: OpenClaims = FrameSocket.claims
