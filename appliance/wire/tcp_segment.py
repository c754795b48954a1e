"""A TCP segment without data in an IP packet, as a raw socket sends it (RFC 9293 section 3.1)."""

import struct
from ipaddress import IPv4Address, ip_address
from typing import Final

from appliance.wire.vrrp.internet_checksum import checksum

_TCP: Final = struct.Struct("!HHIIBBHHH")
_IPV4: Final = struct.Struct("!BBHHHBBH")
_IPV6: Final = struct.Struct("!IHBB")
_PROTOCOL: Final = 6
_ACKNOWLEDGEMENT: Final = 0x10
_HOPS: Final = 64


def bare_acknowledgement(
    source: str, source_port: int, destination: str, destination_port: int, *, sequence: int
) -> bytes:
    """Return a bare acknowledgement of 0 between two literal addresses of one IP version."""
    sender, receiver = ip_address(source), ip_address(destination)
    header = _TCP.pack(
        source_port, destination_port, sequence, 0, _TCP.size // 4 << 4, _ACKNOWLEDGEMENT, 0, 0, 0
    )
    addresses = sender.packed + receiver.packed
    # RFC 9293 section 3.1 and RFC 8200 section 8.1: both pseudo headers have the same sum.
    total = checksum(addresses + struct.pack("!HH", _PROTOCOL, len(header)) + header)
    segment = header[:16] + struct.pack("!H", total) + header[18:]
    if isinstance(sender, IPv4Address):
        # The kernel fills in total length, identification and checksum (raw(7)).
        return _IPV4.pack(0x45, 0, 0, 0, 0, _HOPS, _PROTOCOL, 0) + addresses + segment
    return _IPV6.pack(6 << 28, len(segment), _PROTOCOL, _HOPS) + addresses + segment
