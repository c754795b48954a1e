"""What comes in on standard input from the one who pushes: a file of known length, then words."""

import hashlib
import os
import select
import time
from typing import Final

from appliance.net.files.standard_input import PATIENCE

_CHUNK: Final = 1 << 16
_LONGEST: Final = 64


class TransferCut(Exception):  # noqa: N818  # what became of the connection
    """The file did not arrive as it was sent; nothing has been done with it."""


class Orders:
    """Standard input, or another descriptor."""

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()

    def file(self, *, size: int, checksum: str) -> bytes:
        """Return the next `size` bytes, which have this SHA-256; raises TransferCut."""
        while len(self._buffer) < size:
            if not self._more(PATIENCE):
                raise TransferCut(f"only {len(self._buffer)} of {size} bytes have arrived")
        content = bytes(self._buffer[:size])
        del self._buffer[:size]
        if hashlib.sha256(content).hexdigest() != checksum:
            raise TransferCut("the file has not arrived as it was sent: its SHA-256 is another one")
        return content

    def word(self, *, seconds: float) -> str | None:
        """Return the next line; None at the end, for silence, and for what is too long."""
        until = time.monotonic() + seconds
        while b"\n" not in self._buffer:
            if len(self._buffer) > _LONGEST or not self._more(until - time.monotonic()):
                return None
        line, _, rest = bytes(self._buffer).partition(b"\n")
        self._buffer = bytearray(rest)
        return line.decode(errors="replace")

    def _more(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, seconds))
        try:
            data = os.read(self._descriptor, _CHUNK) if ready else b""
        except OSError:
            return False
        self._buffer += data
        return bool(data)
