"""A unix socket at a path of the operator's choice: recreated if removed, never taken from other programs.

A path that cannot be used now (its directory does not exist yet, another program has it) is tried again.
"""

import stat
from collections.abc import Callable
from pathlib import Path
from typing import Final

import gevent
from gevent import Greenlet, socket
from structlog.typing import FilteringBoundLogger

from appliance.net.control.gevent_listener import listen_unix
from appliance.net.loop.turns import Turns
from appliance.net.privileges import socket_directories
from appliance.net.privileges.peer_credentials import listening_process

RETRY: Final = 1.0
"""Seconds between two checks of the path."""


class KeptListener:
    """Listens for its owner only, and serves each connection in a greenlet. Call `keep` periodically.

    `name` is the prefix of its log events. `failure` is why it does not listen, empty if it does.
    """

    def __init__(
        self, path: Path, serve: Callable[[socket.socket], None], log: FilteringBoundLogger, *, name: str
    ) -> None:
        self.failure = ""
        self._path = path
        self._serve = serve
        self._log = log
        self._event = name
        self._turns = Turns()
        self._socket: socket.socket | None = None
        self._inode = 0
        self._loop: Greenlet | None = None
        self.keep()

    def keep(self) -> None:
        """Listen unless it already does; log a failure once."""
        if self._is_ours():
            return
        self._stop()
        try:
            self._start()
        except OSError as error:
            why = _why(error, self._path)
            if why != self.failure:
                self._log.warning(f"{self._event}-failed", path=str(self._path), error=why)
            self.failure = why
            return
        self.failure = ""
        self._log.info(f"{self._event}-listening", path=str(self._path))

    def close(self) -> None:
        """Stop listening, and remove the socket unless it is another program's; connections continue."""
        if self._is_ours():
            self._path.unlink(missing_ok=True)
        self._stop()

    def _start(self) -> None:
        self._refuse_if_taken()
        self._socket = listen_unix(self._path)
        self._inode = self._path.stat().st_ino
        self._loop = gevent.spawn(self._accept, self._socket)

    def _refuse_if_taken(self) -> None:
        if not self._path.exists():
            return
        if not stat.S_ISSOCK(self._path.stat().st_mode):
            raise OSError("exists and is not a socket")
        pid = listening_process(self._path)
        if pid is not None:
            raise OSError(f"another program listens there (process {pid or 'unknown'})")

    def _stop(self) -> None:
        if self._loop is not None:
            self._loop.kill()
        if self._socket is not None:
            self._socket.close()
        self._socket, self._loop = None, None

    def _is_ours(self) -> bool:
        try:
            return self._socket is not None and self._path.stat().st_ino == self._inode
        except OSError:
            return False

    def _accept(self, accepting: socket.socket) -> None:
        while True:
            try:
                connection, _ = accepting.accept()
            except OSError as error:  # out of descriptors: when others are closed, there is room again
                self._log.warning(f"{self._event}-not-accepted", error=str(error))
                gevent.sleep(RETRY)
                continue
            gevent.spawn(self._serve, connection)
            self._turns.give()


def _why(error: OSError, path: Path) -> str:
    if isinstance(error, PermissionError) and (found := socket_directories.objection(path.parent)):
        return found
    return error.strerror or str(error)
