"""Hears from the workers which servers clients could not connect to.

Many workers may say so of many servers at the same time: only so many datagrams are taken at a time, and what
does not fit the socket's queue waits with the workers. A socket that somebody removed is made again.
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
_PAUSE: Final = 0.01
"""Datagrams taken at a time, and seconds from there to the next: 6,400 a second at the most."""

_LOOK: Final = 1.0
"""Seconds between two looks at the socket's name."""


class ConnectFailureSocket:
    """The socket at `path`, of mode 0600, kept in place until `close`.

    `on_doubt` takes what is heard; `on_trouble` the reason, once, why the socket cannot be made, and "" when
    it is there again.
    """

    def __init__(
        self, path: Path, on_doubt: Callable[[ConnectFailure], None], *, on_trouble: Callable[[str], None]
    ) -> None:
        self._path = path
        self._on_doubt = on_doubt
        self._on_trouble = on_trouble
        self._trouble = ""
        self._socket: socket.socket | None = None
        self._inode = 0
        self._loop = gevent.spawn(self._hear)

    def close(self) -> None:
        """Hear nothing any more, and remove the socket."""
        self._loop.kill()
        if self._is_ours():
            self._path.unlink(missing_ok=True)
        self._let_go()

    def _hear(self) -> None:
        while True:
            self._keep()
            if self._socket is None:
                gevent.sleep(_LOOK)
            else:
                self._take(self._socket)

    def _take(self, hearing: socket.socket) -> None:
        with contextlib.suppress(TimeoutError):
            for _ in range(_BURST):
                # A unix datagram that is too long is cut off: one byte more shows that.
                datagram = hearing.recv(SIZE_LIMIT + 1)
                with contextlib.suppress(ConnectFailureError):  # not a worker's: it says nothing
                    self._on_doubt(decode(datagram))
            gevent.sleep(_PAUSE)

    def _keep(self) -> None:
        if self._is_ours():
            return
        self._let_go()
        try:
            self._socket = self._bound()
            self._say("")
        except OSError as error:
            self._say(error.strerror or str(error))

    def _bound(self) -> socket.socket:
        """Return a bound socket, in the place of one that a dead program has left."""
        scratch = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        hearing = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            scratch.unlink(missing_ok=True)
            hearing.bind(str(scratch))
            scratch.chmod(0o600)
            self._inode = scratch.stat().st_ino
            scratch.replace(self._path)
        except OSError:
            hearing.close()
            raise
        hearing.settimeout(_LOOK)
        return hearing

    def _is_ours(self) -> bool:
        try:
            return self._socket is not None and self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _let_go(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def _say(self, reason: str) -> None:
        if reason != self._trouble:
            self._trouble = reason
            self._on_trouble(reason)
