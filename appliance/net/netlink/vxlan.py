"""A VXLAN device (RFC 7348) to known nodes: made, recognised after a crash, and removed.

A frame for a MAC that has not been seen goes to all nodes, as on a segment; the kernel learns which node has
a MAC from what it receives. So ARP and neighbour discovery work as they do everywhere. The device's MAC says
that it is ours, and by which settings it was made.
"""

import errno
import hashlib
import os
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final, Literal

from appliance.model.snapshot.virtual_router import VirtualRoute
from appliance.net.netlink.address_messages import add_address
from appliance.net.netlink.link_messages import (
    Ipv4Option,
    VxlanFacts,
    add_device,
    all_links,
    decode_vxlan,
    remove_link,
    set_ipv4_options,
    set_up,
)
from appliance.net.netlink.neighbours import DESTINATION, HARDWARE, NEIGHBOUR, NEW
from appliance.net.netlink.netlink import ACKNOWLEDGE, CREATE, Requests, request
from appliance.net.netlink.route_messages import add_route
from appliance.net.netlink.rtnetlink import attribute, readable

OURS: Final = 115
"""IFA_PROTO and rtm_protocol of the addresses and routes at the device."""

_MARK: Final = bytes.fromhex("0a6c")  # locally administered (IEEE 802, U/L bit), and `l`
_NAME: Final = "lb-strays"
_APPEND: Final = 0x800  # NLM_F_APPEND
_PERMANENT: Final = 0x80  # NUD_PERMANENT
_SELF: Final = 0x02  # NTF_SELF: the table of the device, not of a bridge
_ANY_MAC: Final = bytes(6)
_ON_LINK: Final = 253  # RT_SCOPE_LINK: no source of packets by other interfaces
_LOOSE: Final = 2  # rp_filter: clients' packets come in here, and the route to them is another
_DONE: Final = (0, errno.EEXIST)


@dataclass(frozen=True, slots=True, kw_only=True)
class VxlanWanted:
    """A device of one IP version: `own` and `peers` are addresses inside, each with the one outside."""

    family: Literal[4, 6]
    vni: int
    port: int
    mtu: int
    own: Mapping[str, str]
    peers: Mapping[str, str]

    @property
    def name(self) -> str:
        """Return the name of the device."""
        return f"{_NAME}{self.family}"

    @property
    def mac(self) -> bytes:
        """Return the MAC: a device with it was made for the same."""
        values = (self.vni, self.port, self.mtu, sorted(self.own.items()), sorted(self.peers.items()))
        return _MARK + hashlib.sha256(repr(values).encode()).digest()[:4]


def make(requests: Requests, wanted: VxlanWanted) -> int:
    """Make the device, or use one that is there; return its index. Raises OSError with the reason."""
    there = {each.name: each for each in present(requests)}
    found = there.get(wanted.name)
    if found is not None and is_ours(found) and found.mac != wanted.mac:
        remove(requests, found)
        found = None
    if found is not None and not is_ours(found):
        raise OSError(errno.EEXIST, f"the interface {found.name} is not ours")
    if found is None:
        if taken := foreign(requests, wanted.port):
            raise OSError(errno.EADDRINUSE, f"UDP port {wanted.port} is that of the VXLAN {taken}")
        _done(requests, _device(wanted))
    index = socket.if_nametoindex(wanted.name)
    _done(requests, set_ipv4_options(index, {Ipv4Option.RP_FILTER: _LOOSE}))
    _done(requests, set_up(index, up=True))
    complete(requests, wanted, index)
    return index


def complete(requests: Requests, wanted: VxlanWanted, index: int) -> None:
    """Add the addresses, routes and nodes that are missing; raises OSError with the reason."""
    own = (add_address(index, each, mark=OURS, scope=_ON_LINK) for each in _addresses(wanted))
    _done(requests, *own)
    outside = (ip_address(each).packed for each in wanted.peers.values())
    _done(requests, *(_node(index, each) for each in outside))
    source = next(iter(wanted.own), None)
    routes = (VirtualRoute(to=str(each), source=source) for each in _networks(wanted))
    _done(requests, *(add_route(each, index, replace=True, protocol=OURS) for each in routes))


def present(requests: Requests) -> tuple[VxlanFacts, ...]:
    """Return the VXLAN devices of this machine; raises OSError."""
    return tuple(readable(decode_vxlan, requests.dump(all_links())))


def foreign(requests: Requests, port: int) -> str:
    """Return a VXLAN device of another program with this port, "" for none; raises OSError."""
    return next((each.name for each in present(requests) if each.port == port and not is_ours(each)), "")


def is_ours(device: VxlanFacts) -> bool:
    """Return whether a `linger` has made the device."""
    return device.name.startswith(_NAME) and device.mac.startswith(_MARK)


def remove(requests: Requests, device: VxlanFacts) -> None:
    """Remove a device with all that is at it; harmless if it is gone. Raises OSError."""
    requests.change(remove_link(device.index), accepted={errno.ENODEV})


def is_missing(requests: Requests) -> bool:
    """Return whether the kernel has no VXLAN, as it says of a device that lacks its number."""
    (result,) = requests.ask([add_device("vxlan", {})])
    return result == errno.EOPNOTSUPP


def _device(wanted: VxlanWanted) -> bytes:
    details: dict[str, object] = {
        "IFLA_VXLAN_ID": wanted.vni,
        "IFLA_VXLAN_PORT": wanted.port,
        "IFLA_VXLAN_LEARNING": 1,
    }
    if wanted.family == 6:
        details["IFLA_VXLAN_LOCAL6"] = "::"  # else it is of IPv4
    return add_device(
        "vxlan",
        details,
        IFLA_IFNAME=wanted.name,
        IFLA_ADDRESS=wanted.mac.hex(":"),
        IFLA_MTU=wanted.mtu,
    )


def _addresses(wanted: VxlanWanted) -> Iterable[str]:
    """Yield the device's addresses; one that is link-local is the source of neighbour discovery."""
    yield from wanted.own
    if wanted.family == 6:
        yield f"fe80::{wanted.mac[:2].hex()}:{wanted.mac[2:4].hex()}:{wanted.mac[4:].hex()}"


def _networks(wanted: VxlanWanted) -> Iterable[str]:
    length = 32 if wanted.family == 4 else 128
    return (f"{each}/{length}" for each in wanted.peers if each not in wanted.own)


def _node(index: int, outside: bytes) -> bytes:
    """Return the request that adds a node to which frames for unknown MACs go."""
    body = NEIGHBOUR.pack(socket.AF_BRIDGE, index, _PERMANENT, _SELF, 0)
    body += attribute(HARDWARE, _ANY_MAC) + attribute(DESTINATION, outside)
    return request(NEW, ACKNOWLEDGE | CREATE | _APPEND, body)


def _done(requests: Requests, *wanted: bytes) -> None:
    for result in requests.ask(wanted):
        if result == errno.EOPNOTSUPP:
            raise OSError(result, "this kernel has no VXLAN (CONFIG_VXLAN)")
        if result not in _DONE:
            raise OSError(result, f"VXLAN: {os.strerror(result)}")
