"""Where the virtual addresses of a snapshot are: interface, family, and who is told of them."""

import contextlib
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Literal

from appliance.model.snapshot.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The virtual addresses of one family on one interface, without their prefix lengths.

    `routers` has the virtual router of each. `peers` are told one by one, and all on the interface where
    `multicast` is true.
    """

    interface: str
    family: Literal[4, 6]
    routers: dict[str, str]
    peers: tuple[str, ...]
    multicast: bool


def places(snapshot: Snapshot) -> Iterator[Place]:
    """Yield the places of a snapshot, in the order of their interfaces."""
    routers = snapshot.virtual_routers
    for interface, family in sorted({(each.interface, each.family) for each in routers}):
        here = [each for each in routers if (each.interface, each.family) == (interface, family)]
        yield Place(
            interface=interface,
            family=family,
            routers={str(ip_interface(address).ip): each.name for each in here for address in each.addresses},
            peers=tuple(dict.fromkeys(peer for each in here for peer in each.peers)),
            multicast=not all(each.peers for each in here),
        )


def indexes(where: Iterable[Place]) -> dict[str, int]:
    """Return the index of the interface of each address; without those that are not there now."""
    found: dict[str, int] = {}
    for place in where:
        with contextlib.suppress(OSError):
            found |= dict.fromkeys(place.routers, socket.if_nametoindex(place.interface))
    return found
