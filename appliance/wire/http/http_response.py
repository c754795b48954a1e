"""The status line of an HTTP/1 answer: all that most health checks need.

Source: RFC 9112 section 4. Headers and body are not read, however long they are; if a check needs the body,
`wire.http.response_body` reads on. Interim answers are skipped (RFC 9110 section 15.2: a client must, even
unasked).
"""

import re
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from appliance.model.messages.quoting import masked
from appliance.wire.need import Need

LINE_LIMIT: Final = 1024
"""Longest status line accepted, bytes including its end: real ones have less than a hundred."""

INTERIM_LIMIT: Final = 16384
"""Most bytes of interim answers before the status line: early hints (RFC 8297) have a few hundred."""

_SWITCHING: Final = HTTPStatus.SWITCHING_PROTOCOLS
"""The one status below 200 that is final (RFC 9110 section 15.2.2): what follows is not HTTP."""

_PROTOCOL: Final = b"HTTP/"
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_LINE: Final = re.compile(rb"HTTP/(\d\.\d) +([1-9]\d\d)(?: ([^\r\n]*))?\r?\n")


class ResponseError(Exception):
    """The server's answer breaks HTTP/1: no status line at its start, or a body without a clear end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLine:
    """Version as in "1.0", status as a number, and the reason in the server's own words."""

    version: str
    status: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedLine:
    """A status line, and the number of bytes of interim answers before it."""

    line: StatusLine
    at: int


def decode(buffer: bytes) -> StatusLine | Need:
    """Return the status line at the start of `buffer`; raises ResponseError."""
    found = located(buffer)
    return found if isinstance(found, Need) else found.line


def located(buffer: bytes) -> LocatedLine | Need:
    """Return the same line, and its offset in `buffer`; raises ResponseError."""
    at = 0
    while True:
        line = _line(buffer[at:])
        if isinstance(line, Need):
            return line
        if not _interim(line):
            return LocatedLine(line=line, at=at)
        head = _HEAD_END.search(buffer, at)
        at = len(buffer) if head is None else head.end()
        if at > INTERIM_LIMIT:
            raise ResponseError(f"interim answers of more than {INTERIM_LIMIT} bytes")
        if head is None:
            return Need.MORE


def _line(buffer: bytes) -> StatusLine | Need:
    line = _LINE.match(buffer)
    if line is not None and line.end() <= LINE_LIMIT:
        version, status, reason = line.groups(b"")
        return StatusLine(version=version.decode(), status=int(status), reason=_shown(reason))
    if not buffer.startswith(_PROTOCOL[: len(buffer)]) or b"\n" in buffer:
        raise ResponseError(f"not a status line: {buffer[:32]!r}")
    if len(buffer) >= LINE_LIMIT:
        raise ResponseError(f"status line of more than {LINE_LIMIT} bytes")
    return Need.MORE


def _interim(line: StatusLine) -> bool:
    return line.status < HTTPStatus.OK and line.status != _SWITCHING


def _shown(reason: bytes) -> str:
    """Return a reason that is safe to show on a terminal, whatever the server wrote."""
    return masked(reason.decode(errors="replace").strip(), "\ufffd")
