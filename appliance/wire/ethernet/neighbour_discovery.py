"""IPv6 neighbour discovery in whole Ethernet frames (RFC 4861): advertisements, solicitations, decoding."""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from appliance.wire.literal import packed, text
from appliance.wire.vrrp import internet_checksum

ETHERTYPE: Final = 0x86DD
ICMPV6: Final = 58
ALL_NODES: Final = "ff02::1"
UNSPECIFIED: Final = "::"


class NeighbourError(Exception):
    """A frame that is no valid neighbour solicitation or advertisement."""


class Kind(IntEnum):
    """ICMPv6 types (RFC 4861 sections 4.3 and 4.4)."""

    SOLICITATION = 135
    ADVERTISEMENT = 136


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourPacket:
    """One neighbour packet: `sender` is `::` in a probe, `sender_mac` is the source of the frame."""

    kind: Kind
    sender_mac: bytes
    sender: str
    target: str


_ETHERNET: Final = struct.Struct("!6s6sH")
_IPV6: Final = struct.Struct("!IHBB16s16s")
_MESSAGE: Final = struct.Struct(
    "!BBHI16s"
)  # RFC 4861 sections 4.3 and 4.4: type, code, checksum, flags, target
_TARGET_MAC: Final = b"\x02\x01"  # RFC 4861 section 4.6.1: target link-layer address, one unit of 8 bytes
_SOURCE_MAC: Final = b"\x01\x01"  # the same for the source
_ROUTER: Final = 0x8000_0000
_OVERRIDE: Final = 0x2000_0000
_NO_HOPS_TAKEN: Final = 255  # RFC 4861 section 7.1: a router on the path would have decremented it
_HEADS: Final = _ETHERNET.size + _IPV6.size
_SOLICITED_NODE: Final = packed("ff02::1:ff00:0")[:13]  # RFC 4291 section 2.7.1


def unsolicited(mac: bytes, address: str, *, router: bool = False) -> bytes:
    """Return the frame that announces `address` at `mac` to all nodes (RFC 4861 section 7.2.6).

    The override flag makes neighbours replace the MAC in their caches. `router` sets the router flag, as RFC
    9568 section 6.4.2 does, and is for an interface that forwards: a host removes a neighbour that advertises
    without it from its list of default routers (RFC 4861 section 7.2.5).
    """
    flags = _OVERRIDE | (_ROUTER if router else 0)
    message = _MESSAGE.pack(Kind.ADVERTISEMENT, 0, 0, flags, packed(address)) + _TARGET_MAC + mac
    return _frame(message, mac=mac, source=packed(address), destination=packed(ALL_NODES))


def probe(mac: bytes, address: str) -> bytes:
    """Return the frame that asks who has `address`, as a probe (RFC 4862 section 5.4.2)."""
    target = packed(address)
    message = _MESSAGE.pack(Kind.SOLICITATION, 0, 0, 0, target)
    return _frame(message, mac=mac, source=packed(UNSPECIFIED), destination=_SOLICITED_NODE + target[13:])


def solicitation(mac: bytes, source: str, address: str) -> bytes:
    """Return the frame that asks from `source` who has `address`.

    Only `source` gets the answer. The answer to a `probe`, whose source is unspecified, goes to all nodes,
    and would change the caches of all neighbours (RFC 4861 section 7.2.4).
    """
    target = packed(address)
    message = _MESSAGE.pack(Kind.SOLICITATION, 0, 0, 0, target) + _SOURCE_MAC + mac
    return _frame(message, mac=mac, source=packed(source), destination=_SOLICITED_NODE + target[13:])


def _frame(message: bytes, *, mac: bytes, source: bytes, destination: bytes) -> bytes:
    group = b"\x33\x33" + destination[12:]  # RFC 2464 section 7
    ip = _IPV6.pack(0x6000_0000, len(message), ICMPV6, _NO_HOPS_TAKEN, source, destination)
    sum_ = internet_checksum.checksum(_pseudo_header(ip, len(message)) + message)
    summed = message[:2] + sum_.to_bytes(2, "big") + message[4:]
    return _ETHERNET.pack(group, mac, ETHERTYPE) + ip + summed


def _pseudo_header(ip: bytes, length: int) -> bytes:
    """Return the pseudo-header of RFC 8200 section 8.1, without zeros: they do not change a sum."""
    return ip[8:40] + struct.pack("!HH", ICMPV6, length)


def decode(frame: bytes) -> NeighbourPacket:
    """Return the packet in a frame, after the checks of RFC 4861 section 7.1; raises NeighbourError.

    Options are not read: the sender's MAC is that of the Ethernet header.
    """
    if len(frame) < _HEADS + _MESSAGE.size:
        raise NeighbourError("shorter than a neighbour frame")
    _, mac, ethertype = _ETHERNET.unpack_from(frame)
    first, length, following, hops, source, _ = _IPV6.unpack_from(frame, _ETHERNET.size)
    if ethertype != ETHERTYPE or first >> 28 != 6 or following != ICMPV6:
        raise NeighbourError("not ICMPv6")
    if hops != _NO_HOPS_TAKEN:
        raise NeighbourError("from outside the link")
    message = frame[_HEADS : _HEADS + length]
    if not _MESSAGE.size <= length <= len(message):
        raise NeighbourError("another length than in the IPv6 header")
    return _packet(message, ip=frame[_ETHERNET.size : _HEADS], mac=mac, sender=text(source))


def _packet(message: bytes, *, ip: bytes, mac: bytes, sender: str) -> NeighbourPacket:
    kind, code, _, _, target = _MESSAGE.unpack_from(message)
    if kind not in (Kind.SOLICITATION, Kind.ADVERTISEMENT) or code:
        raise NeighbourError("neither solicitation nor advertisement")
    if len(message) % 8 or not internet_checksum.holds(_pseudo_header(ip, len(message)) + message):
        raise NeighbourError("checksum or length of the options")
    return NeighbourPacket(kind=Kind(kind), sender_mac=mac, sender=sender, target=text(target))
