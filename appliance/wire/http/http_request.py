"""The start of an HTTP/1 request, as much of it as an endpoint with a fixed answer needs (RFC 9112)."""

import re
from dataclasses import dataclass
from typing import Final

from appliance.wire.need import Need

LIMIT: Final = 8192
"""Longest head accepted, bytes."""

_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) ([!-~]+) HTTP/1\.[0-9]")
_END: Final = re.compile(rb"\r?\n\r?\n")


class RequestError(Exception):
    """The client sent no HTTP/1, or its head is too long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Method and path; the path is without its query."""

    method: str
    path: str


def decode(data: bytes) -> Request | Need:
    """Return the request once its head is complete; raises RequestError."""
    head = data.lstrip(b"\r\n")  # RFC 9112 section 2.2: empty lines before the request line are ignored
    if _END.search(head) is None:
        if len(data) > LIMIT:
            raise RequestError("head too long")
        return Need.MORE
    line, _, _ = head.partition(b"\n")
    found = _LINE.fullmatch(line.removesuffix(b"\r"))
    if found is None:
        raise RequestError("no request line")
    return Request(method=found[1].decode(), path=found[2].decode().partition("?")[0])


def encode_response(status: int, phrase: str, body: bytes, *, head_only: bool) -> bytes:
    """Return a whole response after which the connection closes."""
    head = (
        f"HTTP/1.1 {status} {phrase}\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n"
        "Cache-Control: no-cache\r\nConnection: close\r\n\r\n"
    ).encode()
    return head if head_only else head + body
