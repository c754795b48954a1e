"""Socket addresses as the kernel writes them (`struct sockaddr_in`, `sockaddr_in6`), and as text."""

import struct
from typing import Final

from appliance.wire import literal

IPV4: Final = 2
IPV6: Final = 10
SIZE: Final = 28
"""Bytes that hold an address of either family."""

_MAPPED: Final = bytes(10) + b"\xff\xff"
_IPV4_SIZE: Final = 4
_FAMILY: Final = struct.Struct("=H")


def packed(raw: bytes) -> bytes:
    """Return the address alone: 4 bytes, also for an IPv4 client of an IPv6 socket, or 16."""
    if _FAMILY.unpack_from(raw)[0] == IPV4:
        return raw[4:8]
    address = raw[8:24]
    return address[12:] if address.startswith(_MAPPED) else address


def raw(address: bytes) -> bytes:
    """Return the socket address, without a port, of an address of 4 or 16 bytes."""
    if len(address) == _IPV4_SIZE:
        return _FAMILY.pack(IPV4) + bytes(2) + address + bytes(8)
    return _FAMILY.pack(IPV6) + bytes(6) + address + bytes(4)


def port(raw: bytes) -> int:
    """Return the port."""
    return raw[2] << 8 | raw[3]


def host(raw: bytes) -> str:
    """Return the address as text, an IPv4 client of an IPv6 socket as IPv4."""
    return literal.text(packed(raw))


def text(raw: bytes) -> str:
    """Return address and port in the usual notation: `10.0.0.1:443`, `[2001:db8::1]:443`."""
    address = host(raw)
    return f"[{address}]:{port(raw)}" if ":" in address else f"{address}:{port(raw)}"
