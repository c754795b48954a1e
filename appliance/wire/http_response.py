"""The first line of an HTTP/1 answer: all that a health check reads.

Source: RFC 9112 section 4. What follows the line, headers and body, is left alone, however long it is.
"""

import re
from dataclasses import dataclass
from typing import Final

from appliance.wire.need import Need

LINE_LIMIT: Final = 1024
"""Longest status line accepted, bytes with its end: real ones have less than a hundred."""

_PROTOCOL: Final = b"HTTP/"
_LINE: Final = re.compile(rb"HTTP/(\d\.\d) +([1-9]\d\d)(?: ([^\r\n]*))?\r?\n")


class ResponseError(Exception):
    """The peer's answer does not start with a status line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusLine:
    """Version as in "1.0", status as a number, and the reason in the server's own words."""

    version: str
    status: int
    reason: str


def decode(buffer: bytes) -> StatusLine | Need:
    """Return the status line that `buffer` starts with; raises ResponseError."""
    line = _LINE.match(buffer)
    if line is not None and line.end() <= LINE_LIMIT:
        version, status, reason = line.groups(b"")
        return StatusLine(version=version.decode(), status=int(status), reason=_shown(reason))
    if not buffer.startswith(_PROTOCOL[: len(buffer)]) or b"\n" in buffer:
        raise ResponseError(f"not a status line: {buffer[:32]!r}")
    if len(buffer) >= LINE_LIMIT:
        raise ResponseError(f"status line of more than {LINE_LIMIT} bytes")
    return Need.MORE


def _shown(reason: bytes) -> str:
    """Return a reason that can be shown on a terminal, whatever the server wrote."""
    text = reason.decode(errors="replace").strip()
    return text if text.isprintable() else "".join(each if each.isprintable() else "\ufffd" for each in text)
