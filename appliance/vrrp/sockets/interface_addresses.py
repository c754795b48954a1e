"""The meaning of an interface's addresses for a virtual router: source, networks, foreign addresses."""

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_interface

from appliance.core.vrrp.advert_rules import bare
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.netlink.links import Link, answers_for_others
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment


def without_virtual(link: Link | None) -> Link | None:
    """Return a link without its list of addresses (virtual ones included), so that links can be compared."""
    return replace(link, addresses=()) if link else None


def source(router: VirtualRouter, link: Link, *, kept: str | None) -> str | None:
    """Return the source address of a router's advertisements, None if the interface has none.

    `kept` is the present one. It stays while the interface has it: unicast peers name it in their
    configuration, and it must not change when other addresses come and go.
    """
    if router.source is not None:
        return router.source
    if kept is not None and has(link, kept):
        return kept
    if router.family == 6 and router.peers and not router.peers[0].startswith("fe80"):
        own = (each for each in bare(link.own) if ":" in each and not each.startswith("fe80"))
        return next((each for each in own if each not in bare(router.addresses)), None)
    return link.primary(router.family, excluding=router.addresses)


def has(link: Link, address: str) -> bool:
    """Return whether an interface has an address of its own."""
    return address in _bare(link.own)


def on_link(link: Link, address: str) -> bool:
    """Return whether an address is in a network of the interface itself."""
    there = ip_address(address)
    return any(there in _network(each) for each in link.own)


def reached(router: VirtualRouter, link: Link, others: Iterable[Link]) -> frozenset[str]:
    """Return the virtual addresses whose network their interface reaches by an address of its own.

    They need no route when they are added (`Addresses.prepare`).
    """
    networks = {
        (place.name, _network(each))
        for place in (link, *others)
        for each in place.own
        if each not in router.addresses
    }
    placed = (*((each, link.name) for each in router.here), *router.elsewhere)
    return frozenset(each for each, name in placed if (name, _network(each)) in networks)


def foreign_places(router: VirtualRouter, environment: RouterEnvironment) -> list[tuple[str, str]]:
    """Return the interfaces that carry one of its addresses that we did not add, each with the address.

    Only places at which this machine answers for the address count. On the router's own interface it always
    does. For an address of another interface ARP answers while arp_ignore is 0, Linux's default; neighbour
    discovery answers only on the interface of the address.
    """
    found = [
        (name, address)
        for each in bare(router.addresses)
        for name, address in environment.links.places(each)
        if environment.addresses.unrecorded(name, [address])
    ]
    if all(name == router.interface for name, _ in found):
        return found
    elsewhere = answers_for_others(router.interface)
    return [each for each in found if each[0] == router.interface or (elsewhere and ":" not in each[1])]


@lru_cache(maxsize=4096)
def _network(address: str) -> IPv4Network | IPv6Network:
    return ip_interface(address).network


def _bare(addresses: Iterable[str]) -> list[str]:
    """Return addresses in the kernel's spelling without their prefix lengths, faster than `bare`."""
    return [each.partition("/")[0] for each in addresses]
