"""Standard output and error, written without waiting for their reader.

O_NONBLOCK belongs to an open file description, not to a descriptor (open(2)), and standard output shares its
own with other programs, perhaps a shell, which would get EAGAIN. So its flags stay as they are: for a socket
each call is non-blocking (MSG_DONTWAIT), and a pipe or a terminal is opened again through /proc, for us and
our children, replacing the shared one.
"""

import contextlib
import os
import stat
from functools import cache
from socket import MSG_DONTWAIT, MSG_NOSIGNAL, socket
from typing import Final

from appliance.net.logging import journal

STDOUT: Final = 1
STDERR: Final = 2

_OWN: Final = os.O_WRONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY


class Output:
    """The target of standard output or error; `journal` if journald reads it. See `output`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._torn = False
        self._socket: socket | None = None
        self.journal = False
        with contextlib.suppress(OSError):  # the descriptor is closed: every write will fail
            self._look()

    def write(self, data: bytes) -> None:
        """Write data at once; raises OSError if not all of it could be written."""
        if self._torn:
            data = b"\n" + data  # end a truncated line, so that the next one is separate
        if self._socket is not None:
            written = self._socket.send(data, MSG_DONTWAIT | MSG_NOSIGNAL)
        else:
            written = os.write(self._descriptor, data)
        self._torn = written < len(data)
        if self._torn:
            raise BlockingIOError(f"{written} of {len(data)} bytes written")

    def replace(self, descriptor: int) -> None:
        """Write to the target of another descriptor from now on; the caller keeps that descriptor."""
        os.dup2(descriptor, self._descriptor)
        if self._socket is not None:
            self._socket.close()
        self._socket, self._torn = None, False
        self._look()

    def _look(self) -> None:
        self.journal = journal.listens(self._descriptor)
        mode = os.fstat(self._descriptor).st_mode
        if stat.S_ISSOCK(mode):
            self._socket = socket(fileno=os.dup(self._descriptor))
        elif stat.S_ISFIFO(mode) or os.isatty(self._descriptor):
            self._open_anew(fifo=stat.S_ISFIFO(mode))

    def _open_anew(self, *, fifo: bool) -> None:
        try:
            own = os.open(f"/proc/self/fd/{self._descriptor}", _OWN)
        except OSError:  # another user owns it, or the pipe has no reader
            if fifo:
                os.set_blocking(self._descriptor, False)
            return
        os.dup2(own, self._descriptor)
        os.close(own)


@cache
def output(place: int) -> Output:
    """Return the one output of a descriptor, STDOUT or STDERR."""
    return Output(place)
