"""What all virtual routers of the program share."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Protocol

from structlog.typing import FilteringBoundLogger

from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.netlink.addresses import Addresses
from appliance.net.netlink.links import Links
from appliance.net.netlink.neighbours import Neighbours
from appliance.net.netlink.netlink import Requests
from appliance.vrrp.addresses.address_interface import AddressInterface
from appliance.vrrp.addresses.address_questions import AddressQuestions
from appliance.vrrp.addresses.peer_returns import PeerReturns


class AddressReleaser(Protocol):
    """Who has the addresses of a virtual router on the interface in `interface`."""

    router: VirtualRouter
    interface: AddressInterface | None

    def release(self) -> None:
        """Remove them."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterEnvironment:
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
    asking: AddressQuestions
    returns: PeerReturns
    log: FilteringBoundLogger
    missing: tuple[str, ...]
    routers: Callable[[], Iterable[VirtualRouter]] = tuple
    holders: set[AddressReleaser] = field(default_factory=set)
