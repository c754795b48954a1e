"""What one node reports to another about itself: release, configuration, page, which servers are up for it.

A datagram of the program `linger`, to that node alone: 4 bytes magic, 8 bytes session, 8 bytes sequence, as
in the sender's reports; 16 bytes digest of the configuration, 1 byte condition; 1 byte number of virtual
addresses, 1 byte number of servers; 1 byte length and the text of name, release and page each; 4 bytes for
each address; 6 bytes and 1 byte verdict for each server; last 32 bytes of digest. Addresses and servers are
hashes: both nodes know the names. An older release drops it, and receives the reports as before.
"""

import re
import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from hashlib import blake2b
from typing import Final

from appliance.wire.linger_report import (
    DIGEST,
    MOST_BYTES,
    NAME,
    LingerReportError,
    ReportDrop,
    digest,
    signed,
)

CONFIGURATION: Final = 16
"""Bytes of the digest of a configuration; all 0 if it is not known."""

UNKNOWN: Final = bytes(CONFIGURATION)
"""The digest of a configuration that is not known."""

MOST_MARKS: Final = 16
"""Most virtual addresses whose hashes are sent."""

_MAGIC: Final = NAME + b"N"
_HEAD: Final = struct.Struct(f"!4s8sQ{CONFIGURATION}sBBB")
_MARK: Final = 4
_KEY: Final = 6
_YES_OR_NO: Final = (0, 1)
_NODE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{0,64}", re.ASCII)
_RELEASE: Final = re.compile(r"[A-Za-z0-9.+!_-]{0,32}", re.ASCII)
_PAGE: Final = re.compile(r"(?:https?://(?:[0-9.]{1,15}|\[[0-9a-f:.]{2,45}\])?:[0-9]{1,5})?", re.ASCII)
_TEXTS: Final = (_NODE_NAME, _RELEASE, _PAGE)
_TEXT_BYTES: Final = 3 + 64 + 32 + 64

MOST_SERVERS: Final = (MOST_BYTES - DIGEST - _HEAD.size - _TEXT_BYTES - MOST_MARKS * _MARK) // (_KEY + 1)
"""Most servers whose verdict is sent, so that all fits into one packet."""


class Condition(IntEnum):
    """How a node finds itself, as its page shows it. A number never changes its meaning."""

    UNKNOWN = 0
    WELL = 1
    ATTENTION = 2
    ILL = 3


_CONDITIONS: Final = {each.value: each for each in Condition}


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFacts:
    """What a node says of itself. `name` and `release` are "" if they cannot be encoded.

    `configuration` is the digest of what all nodes have in common of it. `page` is the origin of its status
    page, without a host if it has all addresses, "" without a page. `marks` are hashes of its virtual
    addresses, `servers` says by `server_key` whether it finds a server up.
    """

    name: str
    release: str
    configuration: bytes = UNKNOWN
    condition: Condition = Condition.UNKNOWN
    page: str = ""
    marks: frozenset[bytes] = frozenset()
    servers: Mapping[bytes, bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedNode:
    """One datagram: `session` and `sequence` are numbered with the sender's reports."""

    session: bytes
    sequence: int
    facts: NodeFacts


def is_one(datagram: bytes) -> bool:
    """Return whether a datagram is of this kind, and not a report."""
    return datagram.startswith(_MAGIC)


def server_key(pool: str, server: str) -> bytes:
    """Return the hash that stands for a server."""
    return blake2b(f"{pool}\0{server}".encode(), digest_size=_KEY).digest()


def marks(addresses: Iterable[str]) -> frozenset[bytes]:
    """Return hashes of addresses; of many the smallest, so that nodes that share most choose the same."""
    found = (blake2b(each.encode(), digest_size=_MARK).digest() for each in addresses)
    return frozenset(sorted(found)[:MOST_MARKS])


def encode(reported: ReportedNode, *, source: str, secret: bytes) -> bytes:
    """Return the datagram; a text that cannot be encoded is left out. `source` is the sender's address."""
    facts = reported.facts
    counts = facts.condition, len(facts.marks), len(facts.servers)
    head = _HEAD.pack(_MAGIC, reported.session, reported.sequence, facts.configuration, *counts)
    texts = zip(_TEXTS, (facts.name, facts.release, facts.page), strict=True)
    said = (text.encode() if form.fullmatch(text) else b"" for form, text in texts)
    body = b"".join(
        (
            head,
            *(bytes([len(each)]) + each for each in said),
            *sorted(facts.marks),
            *(key + bytes([up]) for key, up in facts.servers.items()),
        )
    )
    return body + digest(body, source=source, secret=secret)


def decode(datagram: bytes, *, source: str, secrets: Iterable[bytes]) -> ReportedNode:
    """Return the report of `source`, signed with one of the keys; raises LingerReportError."""
    body = signed(datagram, source=source, secrets=secrets, least=_HEAD.size)
    magic, session, sequence, configuration, condition, addresses, servers = _HEAD.unpack_from(body)
    name, at = _text(body, _HEAD.size, _NODE_NAME)
    release, at = _text(body, at, _RELEASE)
    page, at = _text(body, at, _PAGE)
    verdicts = at + addresses * _MARK
    whole = len(body) == verdicts + servers * (_KEY + 1)
    if magic != _MAGIC or condition not in _CONDITIONS or addresses > MOST_MARKS or not whole:
        raise LingerReportError(ReportDrop.LAYOUT)
    return ReportedNode(
        session=session,
        sequence=sequence,
        facts=NodeFacts(
            name=name,
            release=release,
            configuration=configuration,
            condition=_CONDITIONS[condition],
            page=page,
            marks=frozenset(body[start : start + _MARK] for start in range(at, verdicts, _MARK)),
            servers=dict(_verdict(body, start) for start in range(verdicts, len(body), _KEY + 1)),
        ),
    )


def _text(body: bytes, at: int, form: re.Pattern[str]) -> tuple[str, int]:
    """Return the text at a place and the place after it; raises LingerReportError."""
    end = at + 1 + (body[at] if at < len(body) else 0)
    text = body[at + 1 : end].decode("latin-1")
    if end > len(body) or not form.fullmatch(text):
        raise LingerReportError(ReportDrop.LAYOUT)
    return text, end


def _verdict(body: bytes, start: int) -> tuple[bytes, bool]:
    verdict = body[start + _KEY]
    if verdict not in _YES_OR_NO:
        raise LingerReportError(ReportDrop.LAYOUT)
    return body[start : start + _KEY], bool(verdict)
