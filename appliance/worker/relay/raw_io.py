"""Reads, writes and splices on raw descriptors, through one buffer that all sessions of a process share.

A failure is a negative number, not an exception: every second call ends with EAGAIN. `raw_io.pyx` is this
module compiled, with direct system calls and no object for the moved bytes; Python prefers it if
`hatch_build.py` has built it.
"""

import ctypes
import os
import socket
from errno import EAGAIN
from typing import Final

CHUNK: Final = 16384
"""Bytes read at a time, a full TLS record; full reads in a row indicate bulk."""

AGAIN: Final = -EAGAIN
"""There is nothing to read now, or no room to write."""

COMPILED: Final = False

# PyDLL and not CDLL: it never blocks, and releasing and taking the interpreter's lock costs more than the
# call.
_send: Final = ctypes.PyDLL(None, use_errno=True).send
_LAST: Final = socket.MSG_NOSIGNAL | socket.MSG_MORE


class Transfer:
    """The buffer: the bytes that `receive` read last."""

    __slots__ = ("_data", "_sent")

    def __init__(self) -> None:
        self._data = b""
        self._sent = 0

    def receive(self, source: int) -> int:
        """Read at most a chunk; return how much, 0 for a FIN, or minus the errno."""
        self._sent = 0
        try:
            self._data = data = os.read(source, CHUNK)
        except OSError as error:
            self._data = b""
            return -(error.errno or EAGAIN)
        return len(data)

    def put(self, data: bytes) -> None:
        """Queue these bytes for the next `send`: at most two chunks and a PROXY header."""
        self._data, self._sent = data, 0

    def send(self, target: int) -> int:
        """Write the bytes read last; return how many were taken, or minus the errno."""
        try:
            self._sent = os.write(target, self._data)
        except OSError as error:
            return -(error.errno or EAGAIN)
        return self._sent

    def send_last(self, target: int) -> int:
        """Write the bytes read last, with a FIN that the caller sends next; see `send`."""
        sent: int = _send(target, self._data, len(self._data), _LAST)
        if sent < 0:
            return -ctypes.get_errno()
        self._sent = sent
        return sent

    def left(self) -> int:
        """Return how many of the bytes read last are not yet written."""
        return len(self._data) - self._sent

    def rest(self) -> memoryview:
        """Return the bytes read last and not yet written."""
        return memoryview(self._data)[self._sent :]

    def write(self, target: int, data: memoryview) -> int:
        """Write these bytes; return how many were taken, or minus the errno."""
        try:
            return os.write(target, data)
        except OSError as error:
            return -(error.errno or EAGAIN)

    def splice(self, source: int, target: int, size: int) -> int:
        """Move bytes between a socket and a pipe; return how many, 0 for a FIN, or minus the errno."""
        try:
            return os.splice(source, target, size)
        except OSError as error:
            return -(error.errno or EAGAIN)
