"""Literal IPv4 and IPv6 addresses: text in the program, 4 or 16 bytes in network order in a packet.

Both directions cache their results: every advertisement has the same few addresses.
"""

import ipaddress
import re
from functools import lru_cache
from typing import Final

_REMEMBERED: Final = 1024  # anybody can send any address, so the cache is bounded
_OCTET: Final = "(?:25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_IPV4: Final = re.compile(rf"{_OCTET}(?:\.{_OCTET}){{3}}")
_MAPPED: Final = bytes(10) + b"\xff\xff"


@lru_cache(_REMEMBERED)
def packed(address: str) -> bytes:
    """Return the bytes of a literal, without its scope (`%eth0`); raises ValueError."""
    return ipaddress.ip_address(address).packed


@lru_cache(_REMEMBERED)
def text(raw: bytes) -> str:
    """Return the literal of 4 or 16 bytes."""
    return str(ipaddress.ip_address(raw))


@lru_cache(65536)  # hosts of servers come from our configuration, and every read of a board needs each
def is_literal(host: str) -> bool:
    """Return whether a host is an address; anything else is a name to resolve."""
    if _IPV4.fullmatch(host):
        return True  # most are, and it takes a tenth of the time
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def packed_peer(address: str) -> bytes:
    """Return a peer's bytes, 4 for IPv4 at an IPv6 socket too, from Python's form; raises ValueError."""
    raw = packed(address)
    return raw[12:] if raw.startswith(_MAPPED) else raw
