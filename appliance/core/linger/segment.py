"""Which peers are not on the segment of a virtual IP: their connections cannot be forwarded to them.

A packet is forwarded unchanged, by the MAC of the node that has its connection. A router on the way would see
the virtual IP as its destination, and send it back.
"""

from collections.abc import Callable, Iterable, Iterator
from ipaddress import IPv4Interface, IPv6Interface, ip_address, ip_interface

from appliance.model.snapshot.virtual_router import VirtualRouter


def off_segment(
    routers: Iterable[VirtualRouter], addresses: Callable[[str], Iterable[str]]
) -> Iterator[tuple[VirtualRouter, str]]:
    """Yield each peer that is in no network of its virtual router's interface.

    `addresses` returns those of an interface by its name, with their prefix lengths. An interface without an
    address of the peer's kind is skipped: it may get one.
    """
    for router in routers:
        here = [ip_interface(each) for each in addresses(router.interface)]
        for peer in router.peers:
            near = [each.network for each in here if _is_alike(each, peer)]
            if near and all(ip_address(peer) not in network for network in near):
                yield router, peer


def objection(router: VirtualRouter, peer: str) -> str:
    """Return the warning about such a peer."""
    return (
        f"{peer} is not on the segment of {router.interface}: connections end when {router.name} moves "
        "between here and there, as packets cannot be forwarded through a router"
    )


def unreachable(peer: str, *, routed: bool) -> str:
    """Return why a peer gets no packets of shared addresses: a router is between, or there is no route."""
    why = "is behind a router, and there is no `linger.vxlan`" if routed else "has no route to it"
    return f"{peer} {why}: connections of shared addresses end when routers choose other nodes"


def _is_alike(address: IPv4Interface | IPv6Interface, peer: str) -> bool:
    there = ip_address(peer)
    return (address.version, address.is_link_local) == (there.version, there.is_link_local)
