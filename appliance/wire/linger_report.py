"""One node's report to others on virtual addresses: which it serves, and which it keeps for connections.

A datagram of the program `linger`: 4 bytes magic and version, 6 bytes MAC, 8 bytes session, 8 bytes sequence,
4 bytes challenge, 1 byte length of an address, 1 byte number of addresses, 1 byte number of nodes answered;
then for each address its bytes, 1 byte state, 4 bytes milliseconds since it was left, 4 bytes connections;
for each node answered its MAC, its challenge, 1 byte if it is believed; last 32 bytes of HMAC-SHA256 over the
packed address of the sender and everything before. Numbers are big-endian. Another version has another magic,
and is not understood.
"""

import hashlib
import hmac
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.wire.literal import packed, text

MOST_ADDRESSES: Final = {4: 64, 6: 40}
"""Most addresses in one report by IP version, so that it fits into one packet."""

MOST_ANSWERED: Final = 15
"""Most nodes answered in a report."""

MOST_BYTES: Final = 1232
"""Longest report: the packet that every IPv6 link carries (RFC 8200 section 5), without its headers."""

SESSION: Final = 8
"""Bytes that identify one run of a node: chosen at random when it starts."""

CHALLENGE: Final = 4
"""Bytes that a node expects in the answer."""

_NAME: Final = b"LNG"
_MAGIC: Final = _NAME + b"2"
_HEAD: Final = struct.Struct("!4s6s8sQ4sBBB")
_ANSWERED: Final = struct.Struct("!6s4sB")
_FACTS: Final = struct.Struct("!BII")
_DIGEST: Final = 32
_WORD: Final = 0xFFFFFFFF
_SIZES: Final = (4, 16)
_YES_OR_NO: Final = (0, 1)


class ReportDrop(StrEnum):
    """Why a report is rejected; log, status and tests share these words."""

    LAYOUT = "layout"
    VERSION = "version"
    DIGEST = "digest"
    REPLAY = "replay"
    UNPROVED = "unproved"
    HOP_LIMIT = "hop-limit"
    OWN = "own"


class LingerReportError(Exception):
    """A datagram that is not a report from one of us; `reason` is why."""

    def __init__(self, reason: ReportDrop) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedAddress:
    """One virtual address: served if `active`; else left `left` seconds ago, with `connections` open."""

    address: str
    active: bool
    left: float
    connections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredNode:
    """Another node on the interface, by its MAC; `challenge` is the last one received from it.

    `believed` is false until its reports have answered ours.
    """

    mac: bytes
    challenge: bytes
    believed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LingerReport:
    """One report: `mac` is that of the interface, which identifies packets.

    `sequence` grows in each `session`. A node that answers `challenge` made its report after this one.
    """

    mac: bytes
    session: bytes
    sequence: int
    challenge: bytes
    addresses: tuple[ReportedAddress, ...]
    answered: tuple[AnsweredNode, ...] = ()


def encode(report: LingerReport, *, family: int, source: str, secret: bytes) -> bytes:
    """Return the datagram; `family` is 4 or 6, `source` the sender's address."""
    size = 4 if family == 4 else 16
    counts = size, len(report.addresses), len(report.answered)
    head = _HEAD.pack(_MAGIC, report.mac, report.session, report.sequence, report.challenge, *counts)
    answered = (_ANSWERED.pack(each.mac, each.challenge, each.believed) for each in report.answered)
    body = head + b"".join((*map(_encoded, report.addresses), *answered))
    return body + _digest(body, source=source, secret=secret)


def decode(datagram: bytes, *, source: str, secrets: Iterable[bytes]) -> LingerReport:
    """Return the report that came from `source`, signed with one of the keys; raises LingerReportError."""
    if not datagram.startswith(_MAGIC) and datagram.startswith(_NAME):
        raise LingerReportError(ReportDrop.VERSION)
    if not _HEAD.size + _DIGEST <= len(datagram) <= MOST_BYTES or not datagram.startswith(_MAGIC):
        raise LingerReportError(ReportDrop.LAYOUT)
    body, digest = datagram[:-_DIGEST], datagram[-_DIGEST:]
    if not any(hmac.compare_digest(_digest(body, source=source, secret=each), digest) for each in secrets):
        raise LingerReportError(ReportDrop.DIGEST)
    _, mac, session, sequence, challenge, size, count, answered = _HEAD.unpack_from(body)
    step = size + _FACTS.size
    end = _HEAD.size + count * step
    if size not in _SIZES or len(body) != end + answered * _ANSWERED.size:
        raise LingerReportError(ReportDrop.LAYOUT)
    return LingerReport(
        mac=mac,
        session=session,
        sequence=sequence,
        challenge=challenge,
        addresses=tuple(_decoded(body, start, size) for start in range(_HEAD.size, end, step)),
        answered=tuple(_answered(body, start) for start in range(end, len(body), _ANSWERED.size)),
    )


def _encoded(each: ReportedAddress) -> bytes:
    left = min(round(each.left * 1000), _WORD)
    return packed(each.address) + _FACTS.pack(each.active, left, min(each.connections, _WORD))


def _decoded(body: bytes, start: int, size: int) -> ReportedAddress:
    state, left, connections = _FACTS.unpack_from(body, start + size)
    if state not in _YES_OR_NO:
        raise LingerReportError(ReportDrop.LAYOUT)
    address = text(body[start : start + size])
    return ReportedAddress(address=address, active=bool(state), left=left / 1000, connections=connections)


def _answered(body: bytes, start: int) -> AnsweredNode:
    mac, challenge, believed = _ANSWERED.unpack_from(body, start)
    if believed not in _YES_OR_NO:
        raise LingerReportError(ReportDrop.LAYOUT)
    return AnsweredNode(mac=mac, challenge=challenge, believed=bool(believed))


def _digest(body: bytes, *, source: str, secret: bytes) -> bytes:
    return hmac.digest(secret, packed(source) + body, hashlib.sha256)
