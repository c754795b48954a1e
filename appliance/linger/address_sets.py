"""The sets of the virtual addresses of a snapshot: interface, family, and the nodes to report to."""

import contextlib
import socket
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_interface
from typing import Literal

from appliance.model.snapshot.linger import inside
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.netlink import virtual_mac


@dataclass(frozen=True, slots=True, kw_only=True)
class AddressSet:
    """The virtual addresses of one family on one interface, without their prefix lengths.

    `routers` has the virtual router of each. Reports go to each of the `peers`, and to all nodes on the
    interface if `multicast` is true. `virtual_macs` are the ids of the routers that have a MAC of their own.
    """

    interface: str
    family: Literal[4, 6]
    routers: dict[str, str]
    peers: tuple[str, ...]
    multicast: bool
    virtual_macs: tuple[int, ...] = ()


def address_sets(snapshot: Snapshot) -> Iterator[AddressSet]:
    """Yield the sets of a snapshot, in the order of their interfaces."""
    routers = [each for each in snapshot.virtual_routers if each.here]
    for interface, family in sorted({(each.interface, each.family) for each in routers}):
        here = [each for each in routers if (each.interface, each.family) == (interface, family)]
        yield AddressSet(
            interface=interface,
            family=family,
            routers={str(ip_interface(address).ip): each.name for each in here for address in each.here},
            peers=tuple(dict.fromkeys(peer for each in here for peer in each.peers)),
            multicast=not all(each.peers for each in here),
            virtual_macs=tuple(each.router_id for each in here if each.virtual_mac),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSet:
    """The shared addresses of one family, and the other nodes that have them, by their addresses of it.

    With a VXLAN these are the addresses within it; `outside` has the configured one of each.
    """

    family: Literal[4, 6]
    addresses: tuple[str, ...]
    peers: tuple[str, ...]
    outside: Mapping[str, str] = field(default_factory=dict)

    def named(self, peer: str) -> str:
        """Return a peer as the operator knows it."""
        return self.outside.get(peer, peer)


def shared_sets(snapshot: Snapshot) -> Iterator[SharedSet]:
    """Yield the sets of a snapshot."""
    peers = snapshot.linger.peers if snapshot.linger else ()
    families: tuple[Literal[4], Literal[6]] = (4, 6)
    for family in families:
        addresses = tuple(each for each in snapshot.shared_addresses if (":" in each) == (family == 6))
        if addresses:
            mine = tuple(each for each in peers if (":" in each) == (family == 6))
            outside: dict[str, str] = {}
            if snapshot.linger and snapshot.linger.vxlan:
                outside = {inside(each): each for each in mine}
                mine = tuple(outside)
            yield SharedSet(family=family, addresses=addresses, peers=mine, outside=outside)


def indexes(where: Iterable[AddressSet]) -> dict[str, int]:
    """Return the index of the interface of each address, without interfaces that do not exist now."""
    known = ((place, _index(place.interface)) for place in where)
    return {address: index for place, index in known if index is not None for address in place.routers}


def entrances(where: Iterable[AddressSet]) -> tuple[tuple[str, str], ...]:
    """Return the interfaces at which packets of clients arrive, each with the one that reaches other nodes.

    Packets for a virtual MAC arrive at its macvlan, and leave by the interface below it.
    """
    found: list[tuple[str, str]] = []
    for place in where:
        index = _index(place.interface)
        ids = place.virtual_macs if index is not None else ()
        macvlans = (virtual_mac.name(each, parent=index or 0, family=place.family) for each in ids)
        found += [(each, place.interface) for each in (place.interface, *macvlans)]
    return tuple(found)


def _index(interface: str) -> int | None:
    with contextlib.suppress(OSError):
        return socket.if_nametoindex(interface)
    return None
