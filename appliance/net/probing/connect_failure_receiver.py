"""The socket on which workers report to `health` the servers that clients could not connect to.

When a server dies, all clients of all workers notice at once, and each failed connect may be a datagram. So
the number read at a time is limited, which leaves the loop to the checks; workers keep what does not fit into
the socket's queue, and send it later. A removed socket is created again.
"""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

import gevent
from gevent import socket

from appliance.wire.lines.connect_failure import SIZE_LIMIT, ConnectFailure, ConnectFailureError, decode

_BURST: Final = 64
"""Datagrams read in a row."""

_PAUSE: Final = 0.01
"""Seconds between two bursts: at most 6,400 datagrams a second."""

_LOOK: Final = 1.0
"""Seconds between two checks that the socket's name still exists."""


class ConnectFailureSocket:
    """The socket at `path`, of mode 0600, kept in place until `close`.

    `on_failure` is called with every datagram of a worker. `on_trouble` is called once with the reason if the
    socket cannot be created, and with "" once it exists again.
    """

    def __init__(
        self, path: Path, on_failure: Callable[[ConnectFailure], None], *, on_trouble: Callable[[str], None]
    ) -> None:
        self._path = path
        self._on_failure = on_failure
        self._on_trouble = on_trouble
        self._trouble = ""
        self._socket: socket.socket | None = None
        self._inode = 0
        self._loop = gevent.spawn(self._read_always)

    def close(self) -> None:
        """Stop reading, and remove the socket."""
        self._loop.kill()
        if self._is_ours():
            self._path.unlink(missing_ok=True)
        self._close_socket()

    def _read_always(self) -> None:
        while True:
            self._keep_in_place()
            if self._socket is None:
                gevent.sleep(_LOOK)
            else:
                self._read_burst(self._socket)

    def _read_burst(self, bound: socket.socket) -> None:
        with contextlib.suppress(TimeoutError):
            for _ in range(_BURST):
                # The kernel truncates to the buffer: one extra byte shows that a datagram is too long.
                datagram = bound.recv(SIZE_LIMIT + 1)
                with contextlib.suppress(ConnectFailureError):  # no worker sends such: ignored
                    self._on_failure(decode(datagram))
            gevent.sleep(_PAUSE)

    def _keep_in_place(self) -> None:
        if self._is_ours():
            return
        self._close_socket()
        try:
            self._socket = self._bound()
            self._report("")
        except OSError as error:
            self._report(error.strerror or str(error))

    def _bound(self) -> socket.socket:
        """Return a bound socket, in place of one left by a dead program.

        It is bound under another name and renamed: bind() fails if a name is taken (unix(7)), and workers
        that send meanwhile find the old socket or the new one, never none.
        """
        scratch = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            scratch.unlink(missing_ok=True)
            bound.bind(str(scratch))
            scratch.chmod(0o600)
            self._inode = scratch.stat().st_ino
            scratch.replace(self._path)
        except OSError:
            bound.close()
            raise
        bound.settimeout(_LOOK)
        return bound

    def _is_ours(self) -> bool:
        try:
            return self._socket is not None and self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _close_socket(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _report(self, reason: str) -> None:
        if reason != self._trouble:
            self._trouble = reason
            self._on_trouble(reason)
