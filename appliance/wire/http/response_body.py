"""The body of an HTTP/1 answer, as far as a health check reads it.

Source: RFC 9112 section 6.3 for where a body ends, 7.1 for chunks. A body cut short because the server closes
is judged by what has arrived, as in HAProxy. Codings such as gzip are not decoded; a check does not ask for
them.

A check that keeps its connection must also know whether the answer is complete, and whether the server keeps
the connection too (RFC 9112 section 9.3). After an answer that leaves any doubt the connection is not reused:
the next answer might be read from the wrong place.
"""

import re
from enum import Enum, auto
from http import HTTPStatus
from typing import Final

from appliance.wire.http import http_response
from appliance.wire.http.http_response import ResponseError, StatusLine
from appliance.wire.need import Need

BODY_LIMIT: Final = 16384
"""Bytes of a body that are searched: HAProxy's limit is the rest of `tune.bufsize`, which is 16384."""

HEAD_LIMIT: Final = 16384
"""Most bytes of all headers: HAProxy has no room for more."""

DIGEST_LIMIT: Final = 98_304
"""Bytes of a body whose digest is wanted."""

_CHUNK_LINE_LIMIT: Final = 256
"""Longest line before a chunk, its extensions included."""

_BODILESS: Final = frozenset({HTTPStatus.SWITCHING_PROTOCOLS, HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED})
_FIELD: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n]*)\r?\n")
_HEAD_END: Final = re.compile(rb"\r?\n\r?\n")
_HEAD_END_BYTES: Final = 4
_CHUNK: Final = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[^\r\n]*)?\r?\n")
_EMPTY_LINES: Final = frozenset({b"\r\n", b"\n"})


class _Part(Enum):
    """The kind of the next bytes of an answer."""

    HEAD = auto()
    COUNTED = auto()
    """`_left` bytes of a body, or of one chunk of it."""
    UNTIL_CLOSE = auto()
    CHUNK_LINE = auto()
    CHUNK_END = auto()
    """The line break after a chunk."""
    TRAILERS = auto()
    """Headers after the last chunk, and the empty line that ends the answer."""
    NOTHING = auto()


class ResponseBody:
    """One answer, fed in pieces of any size; `body` grows up to `limit` bytes.

    `method` is that of the request: an answer to HEAD has no body. `line` is None until the status line has
    arrived. `ended`: nothing more will be added, however much the server sends.
    """

    def __init__(self, method: str, *, limit: int = BODY_LIMIT) -> None:
        self._limit = limit
        self.line: StatusLine | None = None
        self.body = b""
        self._bodiless = method == "HEAD"
        self._part = _Part.HEAD
        self._chunked = False
        self._kept = False
        self._whole = False
        self._trailer_bytes = 0
        self._left = 0
        self._searched = 0  # in the pending data: the headers do not end before it
        self._pending = b""

    @property
    def ended(self) -> bool:
        """Whether the body is complete, or as much of it as is searched."""
        return self._part in {_Part.TRAILERS, _Part.NOTHING}

    @property
    def persists(self) -> bool:
        """Whether another request may follow: the answer has ended, nothing is after it, the server keeps."""
        return self._kept and self._whole and not self._pending

    def feed(self, data: bytes) -> None:
        """Take the next data from the server; raises ResponseError."""
        if self._part is _Part.NOTHING and self._pending:
            return  # one byte too many is enough to know
        self._pending += data
        while self._part is not _Part.NOTHING and self._step():
            pass

    def _step(self) -> bool:
        """Consume one element of the pending data; return whether it was complete."""
        match self._part:
            case _Part.HEAD:
                return self._head()
            case _Part.COUNTED:
                return self._counted()
            case _Part.CHUNK_LINE:
                return self._chunk_line()
            case _Part.CHUNK_END:
                return self._chunk_end()
            case _Part.TRAILERS:
                return self._trailer()
            case _:
                return self._take(len(self._pending))

    def _head(self) -> bool:
        found = http_response.located(self._pending)
        if isinstance(found, Need):
            return False
        self.line = found.line
        end = _HEAD_END.search(self._pending, max(found.at, self._searched))
        size = (len(self._pending) if end is None else end.end()) - found.at
        if size > HEAD_LIMIT:
            raise ResponseError(f"headers of more than {HEAD_LIMIT} bytes")
        if end is None:
            self._searched = len(self._pending) - _HEAD_END_BYTES + 1
            return False
        self._frame(_fields(self._pending[found.at : end.end()]), found.line)
        self._pending = self._pending[end.end() :]
        return True

    def _frame(self, fields: dict[bytes, list[bytes]], line: StatusLine) -> None:
        codings = fields.get(b"transfer-encoding", [])
        lengths = set(fields.get(b"content-length", []))
        self._kept = _kept(fields, line)
        if self._bodiless or line.status in _BODILESS:
            self._end()
        elif codings:
            self._chunked = codings[-1].lower() == b"chunked"
            self._part = _Part.CHUNK_LINE if self._chunked else _Part.UNTIL_CLOSE
        elif lengths:
            self._left = _length(lengths)
            self._part = _Part.COUNTED
            if not self._left:
                self._end()
        else:
            self._part = _Part.UNTIL_CLOSE

    def _end(self) -> None:
        self._part, self._whole = _Part.NOTHING, True

    def _counted(self) -> bool:
        size = min(self._left, len(self._pending))
        fits = size <= self._limit - len(self.body)
        self._left -= size
        taken = self._take(size)
        if self._left == 0 and self._chunked and not self.ended:
            self._part = _Part.CHUNK_END
        elif self._left == 0 and fits and not self._chunked:
            self._end()
        return taken

    def _take(self, size: int) -> bool:
        self.body += self._pending[: min(size, self._limit - len(self.body))]
        self._pending = self._pending[size:]
        if len(self.body) == self._limit:
            self._part = _Part.NOTHING
        return size > 0

    def _chunk_line(self) -> bool:
        line = self._line("the size of a chunk")
        if line is None:
            return False
        found = _CHUNK.fullmatch(line)
        if found is None:
            raise ResponseError(f"not the size of a chunk: {line[:32]!r}")
        self._left = int(found[1], 16)
        self._part = _Part.COUNTED if self._left else _Part.TRAILERS
        return True

    def _chunk_end(self) -> bool:
        line = self._line("the end of a chunk")
        if line is None:
            return False
        if line not in _EMPTY_LINES:
            raise ResponseError(f"not the end of a chunk: {line[:32]!r}")
        self._part = _Part.CHUNK_LINE
        return True

    def _trailer(self) -> bool:
        """Skip one trailer; trailers are not part of the body, so a bad one only prevents reuse."""
        line, newline, rest = self._pending.partition(b"\n")
        if self._trailer_bytes + len(line) > HEAD_LIMIT:
            self._part = _Part.NOTHING
            return False
        if not newline:
            return False
        self._trailer_bytes += len(line)
        self._pending = rest
        if line + newline in _EMPTY_LINES:
            self._end()
        return True

    def _line(self, what: str) -> bytes | None:
        line, newline, rest = self._pending.partition(b"\n")
        if len(line) >= _CHUNK_LINE_LIMIT:
            raise ResponseError(f"{what} has more than {_CHUNK_LINE_LIMIT} bytes")
        if not newline:
            return None
        self._pending = rest
        return line + newline


def _fields(head: bytes) -> dict[bytes, list[bytes]]:
    """Return the values of the headers by lower-case name, with each list item separate.

    Repeated headers are one list (RFC 9110 section 5.3). Folded lines are ignored (RFC 9112 section 5.2).
    """
    at = head.index(b"\n") + 1
    fields: dict[bytes, list[bytes]] = {}
    while head[at : at + 2] != b"\r\n" and head[at : at + 1] != b"\n":
        found = _FIELD.match(head, at)
        if found is None:
            raise ResponseError(f"not a header: {head[at : at + 32]!r}")
        values = (each.strip(b" \t") for each in found[2].split(b","))
        fields.setdefault(found[1].lower(), []).extend(values)
        at = found.end()
    return fields


def _kept(fields: dict[bytes, list[bytes]], line: StatusLine) -> bool:
    """Return whether the server keeps the connection after this answer.

    Current servers send no Transfer-Encoding together with a Content-Length, or in HTTP/1.0, or with more
    codings than `chunked`. A client that finds another end than we do takes part of such an answer for the
    next one (RFC 9112 sections 6.1, 6.3 and 11.1).
    """
    options = {each.lower() for each in fields.get(b"connection", [])}
    codings = [each.lower() for each in fields.get(b"transfer-encoding", [])]
    if b"close" in options or line.status == HTTPStatus.SWITCHING_PROTOCOLS:
        return False
    if line.version == "1.0":
        return b"keep-alive" in options and not codings
    doubtful = codings and (codings != [b"chunked"] or b"content-length" in fields)
    return line.version.startswith("1.") and not doubtful


def _length(lengths: set[bytes]) -> int:
    """Return the one length on which all headers of that name agree (RFC 9110 section 8.6)."""
    length = lengths.pop()
    if lengths or not length.isdigit() or len(length) > len(str(2**63)):
        raise ResponseError("a Content-Length that is no one number")
    return int(length)
