"""Lines from a stream of chunks, with bounded memory, and work proportional to the bytes."""

from collections.abc import Iterator
from typing import Final

from appliance.wire.lines.control import ControlError

LINE_LIMIT: Final = 16 << 20
"""Longest answer accepted, bytes: a listing of sessions is large; a peer that sends no newline is broken."""


class LineBuffer:
    """Splits the chunks of one connection into lines without their ends; `limit` is bytes."""

    def __init__(self, limit: int = LINE_LIMIT) -> None:
        self._pending = bytearray()
        self._limit = limit

    @property
    def unfinished(self) -> bool:
        """Return whether a line is incomplete."""
        return bool(self._pending)

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Return the lines that `chunk` completes; raises ControlError if one is too long."""
        # Pending data is copied once, at the end of its line: a line may arrive byte by byte.
        first, end, rest = chunk.partition(b"\n")
        self._pending += first
        lines: list[bytes | bytearray] = []
        if end:
            *others, last = rest.split(b"\n")
            lines = [self._pending, *others]
            self._pending = bytearray(last)
        if len(self._pending) > self._limit:
            raise ControlError(f"line of more than {self._limit} bytes")
        return (bytes(line.removesuffix(b"\r")) for line in lines)
