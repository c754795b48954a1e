"""ARP in whole Ethernet frames (RFC 826): gratuitous ARP, probes, requests, and their decoding."""

import struct
from dataclasses import dataclass
from enum import Enum, IntEnum
from typing import Final

from appliance.wire.literal import packed, text

MAC_BYTES: Final = 6
ETHERTYPE: Final = 0x0806


class ArpError(Exception):
    """A frame that is not ARP for IPv4 over Ethernet."""


class Operation(IntEnum):
    """The operation of an ARP packet (RFC 826)."""

    REQUEST = 1
    REPLY = 2


class GratuitousForm(Enum):
    """The two forms of a gratuitous ARP (RFC 5944 section 4.6); some switches learn from only one."""

    REQUEST = Operation.REQUEST
    REPLY = Operation.REPLY


@dataclass(frozen=True, slots=True, kw_only=True)
class ArpPacket:
    """One ARP packet: `sender` and `target` are literal addresses, `sender` is 0.0.0.0 in a probe."""

    operation: Operation
    sender_mac: bytes
    sender: str
    target: str


_FRAME: Final = struct.Struct("!6s6sHHHBBH6s4s6s4s")
_BROADCAST: Final = b"\xff" * MAC_BYTES
_NOBODY: Final = bytes(MAC_BYTES)
_ETHERNET_IPV4: Final = (1, 0x0800, MAC_BYTES, 4)


def gratuitous(mac: bytes, address: str, *, form: GratuitousForm) -> bytes:
    """Return the broadcast frame that announces `address` at `mac`: gratuitous ARP.

    The request form is RFC 5227 section 2.3's announcement, with target hardware address zero; in the reply
    form that is `mac` too (RFC 5944 section 4.6).
    """
    target_mac = mac if form is GratuitousForm.REPLY else _NOBODY
    own = packed(address)
    return _frame(mac, form.value, sender=own, target_mac=target_mac, target=own)


def probe(mac: bytes, address: str) -> bytes:
    """Return the broadcast frame that asks who has `address`, as a probe (RFC 5227 section 2.1.1)."""
    return _frame(mac, Operation.REQUEST, sender=bytes(4), target_mac=_NOBODY, target=packed(address))


def request(mac: bytes, source: str, address: str) -> bytes:
    """Return the broadcast frame that asks from `source`, which is at `mac`, who has `address` (RFC 826)."""
    return _frame(mac, Operation.REQUEST, sender=packed(source), target_mac=_NOBODY, target=packed(address))


def _frame(mac: bytes, operation: Operation, *, sender: bytes, target_mac: bytes, target: bytes) -> bytes:
    ethernet = (_BROADCAST, mac, ETHERTYPE)
    return _FRAME.pack(*ethernet, *_ETHERNET_IPV4, operation, mac, sender, target_mac, target)


def decode(frame: bytes) -> ArpPacket:
    """Return the packet in a frame, without padding; raises ArpError."""
    if len(frame) < _FRAME.size:
        raise ArpError("shorter than an ARP frame")
    _, _, ethertype, *kind, number, sender_mac, sender, _, target = _FRAME.unpack_from(frame)
    if ethertype != ETHERTYPE:
        raise ArpError("another ethertype")
    if tuple(kind) != _ETHERNET_IPV4:
        raise ArpError("not for IPv4 over Ethernet")
    if number not in (Operation.REQUEST, Operation.REPLY):
        raise ArpError("neither request nor reply")
    return ArpPacket(
        operation=Operation(number), sender_mac=sender_mac, sender=text(sender), target=text(target)
    )
