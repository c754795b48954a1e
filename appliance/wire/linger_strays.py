"""What one node reports to another about packets that it got from it: connections that it has, and has not.

A datagram of the program `linger`, to that node alone: 4 bytes magic, 8 bytes session, 8 bytes sequence, as
in the sender's reports; 1 byte length of an address, 1 byte number of connections found, 1 byte number of
those denied; for each the client's address and port, the shared address and port; last 32 bytes of digest.
"""

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
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
from appliance.wire.literal import packed, text

Ends = tuple[str, int, str, int]
"""A connection: the client's address and port, the shared address and its port."""

_MAGIC: Final = NAME + b"S"
_HEAD: Final = struct.Struct("!4s8sQBBB")
_PORT: Final = struct.Struct("!H")
_SIZES: Final = {4: 4, 6: 16}

MOST_ENDS: Final = {
    family: (MOST_BYTES - DIGEST - _HEAD.size) // (2 * size + 2 * _PORT.size)
    for family, size in _SIZES.items()
}
"""Most connections in one datagram by IP version, so that it fits into one packet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportedStrays:
    """One datagram: `found` are connections of the sender, `denied` those that it has not."""

    session: bytes
    sequence: int
    found: tuple[Ends, ...]
    denied: tuple[Ends, ...]


def is_one(datagram: bytes) -> bool:
    """Return whether a datagram is of this kind, and not a report."""
    return datagram.startswith(_MAGIC)


def encode(reported: ReportedStrays, *, family: int, source: str, secret: bytes) -> bytes:
    """Return the datagram; `family` is 4 or 6, `source` the sender's address."""
    counts = _SIZES[family], len(reported.found), len(reported.denied)
    head = _HEAD.pack(_MAGIC, reported.session, reported.sequence, *counts)
    body = head + b"".join(map(_encoded, (*reported.found, *reported.denied)))
    return body + digest(body, source=source, secret=secret)


def decode(datagram: bytes, *, source: str, secrets: Iterable[bytes]) -> ReportedStrays:
    """Return the report of `source`, signed with one of the keys; raises LingerReportError."""
    body = signed(datagram, source=source, secrets=secrets, least=_HEAD.size)
    magic, session, sequence, size, found, denied = _HEAD.unpack_from(body)
    step = 2 * size + 2 * _PORT.size
    # Addresses are of the sender's family: its other reports go elsewhere.
    if magic != _MAGIC or size != len(packed(source)) or len(body) != _HEAD.size + (found + denied) * step:
        raise LingerReportError(ReportDrop.LAYOUT)
    ends = tuple(_decoded(body, start, size) for start in range(_HEAD.size, len(body), step))
    return ReportedStrays(session=session, sequence=sequence, found=ends[:found], denied=ends[found:])


def shares(
    found: Sequence[Ends], denied: Sequence[Ends], *, family: int
) -> Iterable[tuple[Sequence[Ends], Sequence[Ends]]]:
    """Yield connections in parts that fit into one datagram: found ones, and denied ones."""
    most = MOST_ENDS[family]
    for start in range(0, len(found), most):
        yield found[start : start + most], ()
    for start in range(0, len(denied), most):
        yield (), denied[start : start + most]


def _encoded(ends: Ends) -> bytes:
    client, client_port, address, port = ends
    return packed(client) + _PORT.pack(client_port) + packed(address) + _PORT.pack(port)


def _decoded(body: bytes, start: int, size: int) -> Ends:
    ours = start + size + _PORT.size
    return (
        text(body[start : start + size]),
        int(_PORT.unpack_from(body, start + size)[0]),
        text(body[ours : ours + size]),
        int(_PORT.unpack_from(body, ours + size)[0]),
    )
