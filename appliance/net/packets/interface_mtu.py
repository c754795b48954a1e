"""The largest packet that an interface takes, by ioctl(2)."""

import fcntl
import socket
import struct
from collections.abc import Iterable
from typing import Final

from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.route_lookup import way

_GET: Final = 0x8921  # SIOCGIFMTU of linux/sockios.h
_INTERFACE: Final = struct.Struct("=16si20x")  # struct ifreq of linux/if.h


def of(interface: str) -> int:
    """Return the MTU; raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        answer = fcntl.ioctl(asking.fileno(), _GET, _INTERFACE.pack(interface.encode(), 0))
    return int(_INTERFACE.unpack(answer)[1])


def mtus(requests: Requests, hosts: Iterable[str]) -> dict[str, int]:
    """Return the MTU of each interface that leads to some of these hosts, by its name; raises OSError."""
    ways = (way(requests, each) for each in hosts)
    names = {socket.if_indextoname(each.interface) for each in ways if each is not None}
    return {name: of(name) for name in sorted(names)}
