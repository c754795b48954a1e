"""Lines out of a stream of chunks, with bounded memory."""

from collections.abc import Iterator
from typing import Final

from appliance.wire.lines.control import ControlError

LINE_LIMIT: Final = 16 << 20
"""Longest answer accepted, bytes: a listing of sessions is large, a peer without newlines is broken."""


class LineBuffer:
    """Turns the chunks of one connection into lines without their ends; `limit` is bytes."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._pending = bytearray()
        self._limit = limit

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Return the lines that `chunk` completes; raises ControlError for one that is too long."""
        *lines, rest = (self._pending + chunk).split(b"\n")
        self._pending = rest
        if len(rest) > self._limit:
            raise ControlError(f"line of more than {self._limit} bytes")
        return (bytes(line.removesuffix(b"\r")) for line in lines)
