"""The IPv4 header (RFC 791 section 3.1), which raw IPv4 sockets deliver in front of the payload."""

import struct
from dataclasses import dataclass
from typing import Final

from appliance.model.drop_reasons import DropReason
from appliance.wire.literal import text
from appliance.wire.vrrp.advertisement import VrrpError


@dataclass(frozen=True, slots=True, kw_only=True)
class Ipv4Header:
    """Source, destination and TTL of a packet, and the data after the header and its options."""

    source: str
    destination: str
    ttl: int
    payload: bytes


_HEAD: Final = struct.Struct("!BxHxxxxBxxx4s4s")


def decode(packet: bytes) -> Ipv4Header:
    """Return header and payload; raises VrrpError with TRUNCATED for an incomplete IPv4 packet.

    Bytes beyond the total length in the header (the padding of short Ethernet frames) are dropped. The kernel
    has checked the header's checksum.
    """
    if len(packet) < _HEAD.size:
        raise VrrpError(DropReason.TRUNCATED)
    first, end, ttl, source, destination = _HEAD.unpack_from(packet)
    version, words = divmod(first, 16)
    start = words * 4
    if version != 4 or not _HEAD.size <= start <= end <= len(packet):
        raise VrrpError(DropReason.TRUNCATED)
    return Ipv4Header(source=text(source), destination=text(destination), ttl=ttl, payload=packet[start:end])
