"""The neighbours of this machine: the kernel's tables of ARP and neighbour discovery."""

import struct
from collections.abc import Iterator
from socket import AF_INET, AF_INET6, AF_UNSPEC, inet_ntop
from typing import Final

from appliance.net.netlink import rtnetlink
from appliance.net.netlink.netlink import DUMP, Message, Requests, request

PAUSE: Final = 1.0
"""Seconds between two reads: a table may have thousands of entries, and adverts may be due every 10 ms."""

NEW: Final = 28  # RTM_NEWNEIGH of linux/rtnetlink.h
GET: Final = 30  # RTM_GETNEIGH
NEIGHBOUR: Final = struct.Struct("=BxxxiHBB")  # struct ndmsg: family, index, state, flags, type
DESTINATION, HARDWARE, TIMES = 1, 2, 3  # NDA_DST, NDA_LLADDR, NDA_CACHEINFO

Known = tuple[int, bytes, str]
"""A neighbour: the index of our interface, the neighbour's hardware address, its address."""


class Neighbours:
    """The tables, read at most once per PAUSE, because a flood of forged frames would cause many reads."""

    def __init__(self, requests: Requests) -> None:
        self._requests = requests
        self._known: tuple[Known, ...] = ()
        self._read_again = float("-inf")

    def addresses_of(self, index: int, mac: bytes, now: float) -> tuple[str, ...]:
        """Return the addresses of a neighbour on an interface; raises OSError."""
        if now >= self._read_again:
            self._read_again = now + PAUSE
            self._known = tuple(_read(self._requests))
        return tuple(
            address for interface, hardware, address in self._known if (interface, hardware) == (index, mac)
        )


def _read(requests: Requests) -> Iterator[Known]:
    for message in requests.dump(request(GET, DUMP, NEIGHBOUR.pack(AF_UNSPEC, 0, 0, 0, 0))):
        yield from _neighbour(message)


def _neighbour(message: Message) -> Iterator[Known]:
    body = message.body
    if len(body) < NEIGHBOUR.size:
        return
    family, interface, *_ = NEIGHBOUR.unpack_from(body)
    found = rtnetlink.by_kind(body[NEIGHBOUR.size :])
    sizes = {AF_INET: 4, AF_INET6: 16}
    packed, hardware = found.get(DESTINATION, b""), found.get(HARDWARE)
    if hardware is not None and len(packed) == sizes.get(family):
        yield interface, hardware, inet_ntop(family, packed)
