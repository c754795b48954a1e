"""What a capture shows of VRRP: advertisements, gratuitous ARP and unsolicited neighbour advertisements.

A reader of its own, on purpose not the product's: what the product writes is judged by other code.
"""

import ipaddress
import struct
from dataclasses import dataclass
from typing import Final

VRRP: Final = 112
_IPV4: Final = 0x0800
_IPV6: Final = 0x86DD
_ARP: Final = 0x0806
_BROADCAST: Final = b"\xff" * 6
_ICMPV6: Final = 58
_TRAILER: Final = 28
_NEIGHBOUR_ADVERTISEMENT: Final = 136


@dataclass(frozen=True, slots=True, kw_only=True)
class Advert:
    """One advertisement. `at` is Unix seconds; `interval` seconds; `checksum` is what it covers.

    `checksum` is "pseudo-header", "message" or "wrong"; `password` and `auth_type` are version 2's fields,
    `trailer` is what follows the addresses of version 3.
    """

    at: float
    mac: str
    source: str
    destination: str
    ttl: int
    version: int
    router_id: int
    priority: int
    interval: float
    addresses: tuple[str, ...]
    checksum: str
    auth_type: int = 0
    password: bytes = b""
    trailer: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A gratuitous ARP ("request" or "reply") or an unsolicited neighbour advertisement ("neighbour")."""

    at: float
    mac: str
    form: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArpRequest:
    """An ordinary ARP request; `sender` is 0.0.0.0 for a probe (RFC 5227)."""

    at: float
    mac: str
    sender: str
    target: str


Packet = Advert | Announcement | ArpRequest


def read(frame: bytes, *, at: float) -> Packet | None:
    """Return what an Ethernet frame says, None for everything that is not of interest or damaged."""
    try:
        return _read(frame, at=at)
    except (IndexError, ValueError, struct.error):
        return None


def _read(frame: bytes, *, at: float) -> Packet | None:
    mac = ":".join(f"{byte:02x}" for byte in frame[6:12])
    (kind,) = struct.unpack_from("!H", frame, 12)
    if kind == _ARP:
        return _arp(frame[14:], at=at, mac=mac, is_broadcast=frame[:6] == _BROADCAST)
    if kind == _IPV4:
        return _ipv4(frame[14:], at=at, mac=mac)
    if kind == _IPV6:
        return _ipv6(frame[14:], at=at, mac=mac)
    return None


def _arp(body: bytes, *, at: float, mac: str, is_broadcast: bool) -> Packet | None:
    operation, _, sender, _, target = struct.unpack_from("!6xH6s4s6s4s", body)
    if sender == target:
        if not is_broadcast:
            # The kernel's answer to the successor's announcement: while it removes an address, its route is
            # there for a moment longer than the address, so that the announcement is no martian.
            return None
        form = "request" if operation == 1 else "reply"
        return Announcement(at=at, mac=mac, form=form, address=_text(sender))
    return ArpRequest(at=at, mac=mac, sender=_text(sender), target=_text(target)) if operation == 1 else None


def _ipv4(packet: bytes, *, at: float, mac: str) -> Packet | None:
    if packet[9] != VRRP:
        return None
    header = (packet[0] & 15) * 4
    body = packet[header : struct.unpack_from("!H", packet, 2)[0]]
    return _advert(body, at=at, mac=mac, ttl=packet[8], source=packet[12:16], destination=packet[16:20])


def _ipv6(packet: bytes, *, at: float, mac: str) -> Packet | None:
    length, following, hops, source, destination = struct.unpack_from("!4xHBB16s16s", packet)
    body = packet[40 : 40 + length]
    if following == VRRP:
        return _advert(body, at=at, mac=mac, ttl=hops, source=source, destination=destination)
    if following == _ICMPV6 and body[0] == _NEIGHBOUR_ADVERTISEMENT and destination == _ALL_NODES:
        return Announcement(at=at, mac=mac, form="neighbour", address=_text(body[8:24]))
    return None


_ALL_NODES: Final = ipaddress.IPv6Address("ff02::1").packed


def _advert(body: bytes, *, at: float, mac: str, ttl: int, source: bytes, destination: bytes) -> Advert:
    first, router_id, priority, count, timing, _ = struct.unpack_from("!BBBBHH", body)
    version, size = first >> 4, len(source)
    end = 8 + count * size
    addresses = tuple(_text(body[at : at + size]) for at in range(8, end, size))
    password = body[end : end + 8] if version == 2 else b""
    return Advert(
        at=at,
        mac=mac,
        source=_text(source),
        destination=_text(destination),
        ttl=ttl,
        version=version,
        router_id=router_id,
        priority=priority,
        interval=float(timing & 255) if version == 2 else (timing & 0x0FFF) / 100,
        addresses=addresses,
        checksum=_covered(body, version=version, source=source, destination=destination),
        auth_type=timing >> 8 if version == 2 else 0,
        password=password.rstrip(b"\0"),
        trailer=body[end + len(password) :],
    )


def _covered(body: bytes, *, version: int, source: bytes, destination: bytes) -> str:
    # An HMAC trailer is not covered by the checksum's length (keepalived 2.4).
    message = body[:-_TRAILER] if version == 3 and len(body) > 8 + body[3] * len(source) else body
    if (version == 2 or len(source) == 4) and checksum(message) == 0:
        return "message"
    length = struct.pack("!I", len(message)) if len(source) == 16 else struct.pack("!H", len(message))
    tail = bytes([0, 0, 0, VRRP]) if len(source) == 16 else bytes([0, VRRP])
    pseudo = source + destination + (length + tail if len(source) == 16 else tail + length)
    return "pseudo-header" if checksum(pseudo + message) == 0 else "wrong"


def checksum(data: bytes) -> int:
    """Return the Internet checksum (RFC 1071); of data that holds its right checksum it is 0."""
    padded = data + b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _text(packed: bytes) -> str:
    return str(ipaddress.ip_address(packed))
