"""One node's report to others on virtual addresses: which it serves, and which it keeps for connections.

A datagram of the program `linger`: 4 bytes magic and version, 6 bytes MAC, 8 bytes session, 8 bytes sequence,
4 bytes challenge, 1 byte length of an address, 1 byte number of addresses, 1 byte number of nodes answered;
then for each address its bytes, 1 byte state, 4 bytes milliseconds since it was left, 4 bytes connections;
for each node answered its MAC, its challenge, 1 byte if it is believed; last 32 bytes of HMAC-SHA256 over the
packed address of the sender and everything before. Numbers are big-endian. Another version has another magic,
and is not understood.

Reports of shared addresses have a magic of their own, so that a node that has none of them is understood by
an older release: `active` is whether this node has the address, and the other facts are 0.
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

NAME: Final = b"LNG"
"""What all datagrams of `linger` begin with."""

DIGEST: Final = 32
"""Bytes at the end of all datagrams of `linger`."""

_MAGIC: Final = NAME + b"2"
_SHARED: Final = NAME + b"3"
_HEAD: Final = struct.Struct("!4s6s8sQ4sBBB")
_ANSWERED: Final = struct.Struct("!6s4sB")
_FACTS: Final = struct.Struct("!BII")
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
    """Another node by its MAC, its last `challenge`; `believed` once its reports have answered ours."""

    mac: bytes
    challenge: bytes
    believed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LingerReport:
    """One report: `mac` is that of the interface, which identifies packets.

    `sequence` grows in each `session`. A node that answers `challenge` made its report after this one.
    `shared` is whether it is about addresses that all nodes serve.
    """

    mac: bytes
    session: bytes
    sequence: int
    challenge: bytes
    addresses: tuple[ReportedAddress, ...]
    answered: tuple[AnsweredNode, ...] = ()
    shared: bool = False


def encode(report: LingerReport, *, family: int, source: str, secret: bytes) -> bytes:
    """Return the datagram; `family` is 4 or 6, `source` the sender's address."""
    size = 4 if family == 4 else 16
    counts = size, len(report.addresses), len(report.answered)
    magic = _SHARED if report.shared else _MAGIC
    head = _HEAD.pack(magic, report.mac, report.session, report.sequence, report.challenge, *counts)
    answered = (_ANSWERED.pack(each.mac, each.challenge, each.believed) for each in report.answered)
    body = head + b"".join((*map(_encoded, report.addresses), *answered))
    return body + digest(body, source=source, secret=secret)


def decode(datagram: bytes, *, source: str, secrets: Iterable[bytes]) -> LingerReport:
    """Return the report that came from `source`, signed with one of the keys; raises LingerReportError."""
    if not datagram.startswith((_MAGIC, _SHARED)):
        raise LingerReportError(ReportDrop.VERSION if datagram.startswith(NAME) else ReportDrop.LAYOUT)
    body = signed(datagram, source=source, secrets=secrets, least=_HEAD.size)
    magic, mac, session, sequence, challenge, size, count, answered = _HEAD.unpack_from(body)
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
        shared=magic == _SHARED,
    )


def signed(datagram: bytes, *, source: str, secrets: Iterable[bytes], least: int) -> bytes:
    """Return a datagram of at least so many bytes without its digest; raises LingerReportError."""
    if not least + DIGEST <= len(datagram) <= MOST_BYTES:
        raise LingerReportError(ReportDrop.LAYOUT)
    body, found = datagram[:-DIGEST], datagram[-DIGEST:]
    if not any(hmac.compare_digest(digest(body, source=source, secret=each), found) for each in secrets):
        raise LingerReportError(ReportDrop.DIGEST)
    return body


def digest(body: bytes, *, source: str, secret: bytes) -> bytes:
    """Return the digest of a datagram that `source` sends."""
    return hmac.digest(secret, packed(source) + body, hashlib.sha256)


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
