"""How virtual IPs move with their connections: the settings of the program `linger`."""

import hashlib
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Final

from appliance.model.snapshot.virtual_router import HmacKey

LEAST_MTU: Final = 1350
"""Smallest packet size between nodes: with the headers, IPv6 has its least of 1280 bytes (RFC 8200 s. 5)."""

HEADERS: Final = {4: 50, 6: 70}
"""Bytes that VXLAN adds to a packet: Ethernet, VXLAN, UDP and the outer IP header of that version."""

_RESERVED: Final = 0xF0000000  # 240.0.0.0/4, RFC 1112 section 4: nobody has such addresses
_WITHIN: Final = 0x0FFFFFFF
_UNIQUE_LOCAL: Final = bytes.fromhex("fd6c622d73747261")  # RFC 4193: fd, and `lb-stra`


@dataclass(frozen=True, slots=True, kw_only=True)
class Vxlan:
    """Its number, the UDP port of all nodes, and the largest packet between them, None as the interface."""

    vni: int
    port: int
    mtu: int | None


def inside(address: str) -> str:
    """Return the address within the VXLAN of a node that has this one outside.

    Each node computes those of all others. Two IPv4 addresses that differ in the first four bits only, such
    as 10.0.0.1 and 26.0.0.1, have the same one; others and those of IPv6 do not.
    """
    found = ip_address(address)
    if isinstance(found, IPv4Address):
        return str(IPv4Address(_RESERVED | (int(found) & _WITHIN)))
    return str(IPv6Address(_UNIQUE_LOCAL + hashlib.sha256(found.packed).digest()[:8]))


@dataclass(frozen=True, slots=True, kw_only=True)
class MovedSessions:
    """Sessions follow their virtual IP, over TLS at `port`, with the certificate and key of one file.

    `authorities` is a file of CA certificates for the other nodes, None if that is `certificate`.
    """

    certificate: str
    authorities: str | None
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Linger:
    """Connections stay on their node for `longest` seconds after a virtual IP has moved.

    Nodes report to each other, by UDP at `port`, what they have. The first of `keys` signs, all are accepted.
    `peers` are the other nodes that serve shared addresses, of both families. With `vxlan` they need not be
    on one segment.
    """

    longest: float
    port: int
    keys: tuple[HmacKey, ...]
    # Optional, because the last-good copy of an older version lacks it.
    peers: tuple[str, ...] = ()
    sessions: MovedSessions | None = None
    vxlan: Vxlan | None = None
