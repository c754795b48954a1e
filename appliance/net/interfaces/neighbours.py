"""Which neighbours this machine knows: the kernel's tables of ARP and neighbour discovery."""

import struct
from collections.abc import Iterator
from socket import AF_INET, AF_INET6, AF_UNSPEC, inet_ntop
from typing import Final

from appliance.net.interfaces import rtnetlink
from appliance.net.interfaces.netlink import DUMP, REQUEST, Message, Requests

_GET: Final = 30  # RTM_GETNEIGH of linux/rtnetlink.h
_HEADER: Final = struct.Struct("=IHHII")  # struct nlmsghdr of linux/netlink.h
_NEIGHBOUR: Final = struct.Struct("=BxxxiHBB")  # struct ndmsg of linux/neighbour.h
_DESTINATION: Final = 1  # NDA_DST
_HARDWARE: Final = 2  # NDA_LLADDR


def addresses_of(requests: Requests, index: int, mac: bytes) -> tuple[str, ...]:
    """Return the addresses at which this machine knows a neighbour on an interface; raises OSError."""
    asked = _HEADER.pack(_HEADER.size + _NEIGHBOUR.size, _GET, REQUEST | DUMP, 0, 0)
    found = requests.dump(asked + _NEIGHBOUR.pack(AF_UNSPEC, 0, 0, 0, 0))
    return tuple(address for message in found for address in _address(message, index, mac))


def _address(message: Message, index: int, mac: bytes) -> Iterator[str]:
    body = message.data[_HEADER.size :]
    if len(body) < _NEIGHBOUR.size:
        return
    family, place, *_ = _NEIGHBOUR.unpack_from(body)
    said = dict(rtnetlink.attributes(body[_NEIGHBOUR.size :]))
    sizes = {AF_INET: 4, AF_INET6: 16}
    packed = said.get(_DESTINATION, b"")
    if place == index and said.get(_HARDWARE) == mac and len(packed) == sizes.get(family):
        yield inet_ntop(family, packed)
