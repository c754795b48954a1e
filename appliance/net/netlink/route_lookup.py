"""By which interface the kernel sends packets to an address, and whether through a router."""

import socket
import struct
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from appliance.net.netlink.netlink import ACKNOWLEDGE, Requests, request
from appliance.net.netlink.rtnetlink import WORD, attribute, by_kind

_GET_ROUTE: Final = 26  # RTM_GETROUTE of linux/rtnetlink.h
_ROUTE: Final = struct.Struct("=BBBBBBBBI")  # struct rtmsg
_DESTINATION, _INTERFACE, _GATEWAY, _VIA = 1, 4, 5, 18  # RTA_...
_DISCARD: Final = 9  # a port, without which there is no connect(2)
_FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """The index of an interface, and whether a router is between."""

    interface: int
    routed: bool


def own_address(host: str) -> str:
    """Return this node's address towards a host; raises OSError if there is no route."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM) as asking:
        asking.connect((host, _DISCARD))  # sends nothing
        return str(asking.getsockname()[0])


def way(requests: Requests, address: str) -> Way | None:
    """Return the way to an address, None if there is none; raises OSError if the kernel does not answer."""
    found = ip_address(address)
    body = _ROUTE.pack(_FAMILIES[found.version], found.max_prefixlen, 0, 0, 0, 0, 0, 0, 0)
    body += attribute(_DESTINATION, found.packed)
    try:
        answers = requests.dump(request(_GET_ROUTE, ACKNOWLEDGE, body))
    except OSError:  # unreachable, or this kernel has no IPv6
        return None
    for message in answers:
        facts = by_kind(message.body[_ROUTE.size :])
        if _INTERFACE in facts:
            (index,) = WORD.unpack(facts[_INTERFACE])
            return Way(interface=index, routed=_GATEWAY in facts or _VIA in facts)
    return None
