"""The neighbours of this machine: the kernel's tables of ARP and neighbour discovery."""

import contextlib
import socket
import struct
from collections.abc import Iterator
from ipaddress import ip_address
from socket import AF_INET, AF_INET6, AF_UNSPEC, inet_ntop
from typing import Final

from appliance.net.netlink import rtnetlink
from appliance.net.netlink.netlink import ACKNOWLEDGE, DUMP, REPLACE, Message, Requests, request
from appliance.net.netlink.rtnetlink import attribute, by_kind

PAUSE: Final = 1.0
"""Seconds between two reads: a table may have thousands of entries, and adverts may be due every 10 ms."""

NEW: Final = 28  # RTM_NEWNEIGH of linux/rtnetlink.h
GET: Final = 30  # RTM_GETNEIGH
NEIGHBOUR: Final = struct.Struct("=BxxxiHBB")  # struct ndmsg: family, index, state, flags, type
DESTINATION, HARDWARE, TIMES = 1, 2, 3  # NDA_DST, NDA_LLADDR, NDA_CACHEINFO

Known = tuple[int, bytes, str]
"""A neighbour: the index of our interface, the neighbour's hardware address, its address."""

_FIRST: Final = struct.Struct("=I")  # ndm_confirmed: ticks since the last answer
_TICKS: Final = 100  # USER_HZ
_PROBE: Final = 0x10  # NUD_PROBE
_ASKED: Final = 0x02 | 0x04 | 0x08 | 0x10  # NUD_REACHABLE, _STALE, _DELAY, _PROBE: not fixed by an operator
_FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}


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


def age(requests: Requests, address: str, *, interface: int) -> float | None:
    """Return how many seconds ago the neighbour last answered, None if unknown, and ask it again.

    The kernel asks a neighbour by ARP or neighbour discovery when its entry is set to NUD_PROBE, and keeps
    when the neighbour last answered (struct nda_cacheinfo of linux/neighbour.h).
    """
    found = ip_address(address)
    family, wanted = _FAMILIES[found.version], attribute(DESTINATION, found.packed)
    with contextlib.suppress(OSError):  # it is no neighbour
        for message in requests.dump(_request(GET, ACKNOWLEDGE, family, interface, 0, wanted)):
            body = message.body
            state = NEIGHBOUR.unpack_from(body)[2]
            times = by_kind(body[NEIGHBOUR.size :]).get(TIMES)
            if not state & _ASKED or times is None:
                return None
            asked = _request(NEW, ACKNOWLEDGE | REPLACE, family, interface, _PROBE, wanted)
            requests.ask([asked])
            return float(_FIRST.unpack_from(times)[0] / _TICKS)
    return None


def _request(kind: int, flags: int, family: int, interface: int, state: int, wanted: bytes) -> bytes:
    body = NEIGHBOUR.pack(family, interface, state, 0, 0) + wanted
    return request(kind, flags, body)
