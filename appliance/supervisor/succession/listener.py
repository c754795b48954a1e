"""The unix socket at which an appliance that takes over reaches the running one; for its owner only."""

import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Final

from appliance.net.control import permissions
from appliance.net.control.unix_listener import SocketName, listen_unix
from appliance.supervisor.succession.line_connection import LineConnection, SocketMap

_MOST: Final = 4
"""Connections at a time that have not sent a request yet."""

_PATIENCE: Final = 10.0
"""Seconds for a connection to send its request."""


class SuccessionListener:
    """Calls `on_line` with each connection, which the callee then owns, and its first line."""

    def __init__(
        self, path: Path, socket_map: SocketMap, on_line: Callable[[LineConnection, bytes], None]
    ) -> None:
        self._path, self._map, self._on_line = path, socket_map, on_line
        self._silent: dict[LineConnection, float | None] = {}
        self._open = False
        self._listen()

    def readable(self) -> bool:
        """Return whether supervisord should poll it for connections."""
        return self._open

    def writable(self) -> bool:
        """Return False: nothing is written to a listening socket."""
        return False

    def handle_read_event(self) -> None:
        """Accept a connection; only from our own user and root, and a few at a time."""
        connection, _ = self._listener.accept()
        if len(self._silent) >= _MOST or not permissions.is_owner(connection):
            connection.close()
            return
        made = LineConnection(connection, self._map)
        self._silent[made] = None
        made.on_end = lambda: self._forget(made)
        made.on_line = lambda line: self._heard(made, line)

    def handle_error(self) -> None:
        """Do nothing: a client that left before it was accepted wants nothing."""

    def keep(self, now: float) -> None:
        """Listen again if the socket was removed, and close connections that have been silent too long."""
        if self._name.is_missing:
            with contextlib.suppress(OSError):  # the directory does not exist yet, or is full
                self.close()
                self._listen()
        for each, since in list(self._silent.items()):
            if since is None:
                self._silent[each] = now
            elif now > since + _PATIENCE:
                each.close()
                self._forget(each)

    def close(self) -> None:
        """Stop listening; remove the socket file, unless it is a successor's."""
        if self._open:
            self._open = False
            del self._map[self._listener.fileno()]
            self._name.remove()
            self._listener.close()

    def _listen(self) -> None:
        self._listener = listen_unix(self._path)
        self._listener.settimeout(0)
        self._name = SocketName(self._path)
        self._open = True
        self._map[self._listener.fileno()] = self

    def _heard(self, connection: LineConnection, line: bytes) -> None:
        """Pass a request on; a client that sends more before it is answered violates the protocol."""
        self._forget(connection)
        connection.on_line = lambda _: connection.close()
        self._on_line(connection, line)

    def _forget(self, connection: LineConnection) -> None:
        self._silent.pop(connection, None)
