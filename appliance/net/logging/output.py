"""Standard output and error, written without ever waiting for whoever reads them.

O_NONBLOCK belongs to an open file and not to a descriptor, and the open file of standard output is shared
with other programs, a shell perhaps. So nothing is changed about it: to a socket each call says that it does
not wait, and a pipe or a terminal is opened once more, for us and our children, in the place of the other.
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
    """What a descriptor of ours writes to, which stays open in any case; use `output` to get one.

    `journal` tells whether journald reads it.
    """

    def __init__(self, place: int) -> None:
        self._place = place
        self._torn = False
        self._socket: socket | None = None
        self.journal = False
        with contextlib.suppress(OSError):  # closed: every write says so
            self._look()

    def write(self, data: bytes) -> None:
        """Write data at once; raises OSError when not all of it could be."""
        if self._torn:
            data = b"\n" + data  # what follows a line that was cut is a line of its own again
        if self._socket is not None:
            written = self._socket.send(data, MSG_DONTWAIT | MSG_NOSIGNAL)
        else:
            written = os.write(self._place, data)
        self._torn = written < len(data)
        if self._torn:
            raise BlockingIOError(f"{written} of {len(data)} bytes written")

    def replace(self, descriptor: int) -> None:
        """Write to what another descriptor writes to from now on; that one stays the caller's."""
        os.dup2(descriptor, self._place)
        if self._socket is not None:
            self._socket.close()
        self._socket, self._torn = None, False
        self._look()

    def _look(self) -> None:
        self.journal = journal.listens(self._place)
        mode = os.fstat(self._place).st_mode
        if stat.S_ISSOCK(mode):
            self._socket = socket(fileno=os.dup(self._place))
        elif stat.S_ISFIFO(mode) or os.isatty(self._place):
            self._open_anew(fifo=stat.S_ISFIFO(mode))

    def _open_anew(self, *, fifo: bool) -> None:
        try:
            own = os.open(f"/proc/self/fd/{self._place}", _OWN)
        except OSError:  # another user's, or a pipe without a reader
            if fifo:
                os.set_blocking(self._place, False)
            return
        os.dup2(own, self._place)
        os.close(own)


@cache
def output(place: int) -> Output:
    """Return the one output of a descriptor, STDOUT or STDERR."""
    return Output(place)
