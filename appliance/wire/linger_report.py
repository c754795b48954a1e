"""What one node tells the others of its virtual addresses: which it serves, which it keeps for connections.

A datagram of the program `linger`: 4 bytes magic and version, 6 bytes MAC, 8 bytes sequence, 1 byte how long
an address is, 1 byte how many follow, 1 byte how many nodes the sender has heard; then for each address its
bytes, 1 byte state, 4 bytes milliseconds since it was left, 4 bytes connections; for each node that was heard
its MAC; last 32 bytes of HMAC-SHA256 over the packed address of the sender and all that stands before.
Numbers are big-endian. Another version has another magic, and is not understood.
"""

import hashlib
import hmac
import struct
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.wire.literal import packed, text

MOST_ADDRESSES: Final = {4: 64, 6: 40}
"""Addresses of one report by the version of IP, so that it fits into one packet."""

MOST_HEARD: Final = 24
"""Nodes that a report says to have heard."""

MOST_BYTES: Final = 1232
"""Longest report: what every IPv6 link carries in one packet (RFC 8200 section 5), without its headers."""

_MAGIC: Final = b"LNG1"
_HEAD: Final = struct.Struct("!4s6sQBBB")
_FACTS: Final = struct.Struct("!BII")
_DIGEST: Final = 32
_MAC: Final = 6
_WORD: Final = 0xFFFFFFFF
_SIZES: Final = (4, 16)
_STATES: Final = (0, 1)


class ReportDrop(StrEnum):
    """Why a report is not believed; log, status and tests share these words."""

    LAYOUT = "layout"
    DIGEST = "digest"
    REPLAY = "replay"
    HOP_LIMIT = "hop-limit"
    OWN = "own"


class LingerReportError(Exception):
    """A datagram that is no report of one of us; `reason` says why."""

    def __init__(self, reason: ReportDrop) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAddress:
    """One virtual address: `active` is served; else left `left` seconds ago, with `connections` open."""

    address: str
    active: bool
    left: float
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LingerReport:
    """One report: `mac` is that of the interface, by which packets are known; `sequence` only grows.

    `heard` are the MACs of other nodes whose reports come in on that interface.
    """

    mac: bytes
    sequence: int
    addresses: tuple[ReportedAddress, ...]
    heard: tuple[bytes, ...] = ()


def encode(report: LingerReport, *, family: int, source: str, secret: bytes) -> bytes:
    """Return the datagram; `family` is 4 or 6, `source` the address that it is sent from."""
    size = 4 if family == 4 else 16
    counts = size, len(report.addresses), len(report.heard)
    head = _HEAD.pack(_MAGIC, report.mac, report.sequence, *counts)
    body = head + b"".join((*map(_encoded, report.addresses), *report.heard))
    return body + _digest(body, source=source, secret=secret)


def decode(datagram: bytes, *, source: str, secret: bytes) -> LingerReport:
    """Return the report that came from `source`; raises LingerReportError."""
    if not _HEAD.size + _DIGEST <= len(datagram) <= MOST_BYTES:
        raise LingerReportError(ReportDrop.LAYOUT)
    body, digest = datagram[:-_DIGEST], datagram[-_DIGEST:]
    if not hmac.compare_digest(_digest(body, source=source, secret=secret), digest):
        raise LingerReportError(ReportDrop.DIGEST)
    magic, mac, sequence, size, count, heard = _HEAD.unpack_from(body)
    step = size + _FACTS.size
    end = _HEAD.size + count * step
    if magic != _MAGIC or size not in _SIZES or len(body) != end + heard * _MAC:
        raise LingerReportError(ReportDrop.LAYOUT)
    return LingerReport(
        mac=mac,
        sequence=sequence,
        addresses=tuple(_decoded(body, start, size) for start in range(_HEAD.size, end, step)),
        heard=tuple(body[start : start + _MAC] for start in range(end, len(body), _MAC)),
    )


def _encoded(each: ReportedAddress) -> bytes:
    left = min(round(each.left * 1000), _WORD)
    return packed(each.address) + _FACTS.pack(each.active, left, min(each.connections, _WORD))


def _decoded(body: bytes, start: int, size: int) -> ReportedAddress:
    state, left, connections = _FACTS.unpack_from(body, start + size)
    if state not in _STATES:
        raise LingerReportError(ReportDrop.LAYOUT)
    address = text(body[start : start + size])
    return ReportedAddress(address=address, active=bool(state), left=left / 1000, connections=connections)


def _digest(body: bytes, *, source: str, secret: bytes) -> bytes:
    return hmac.digest(secret, packed(source) + body, hashlib.sha256)
