"""A connection of lines in supervisord's socket map: its loop reports when there is something to read."""

import socket
from collections.abc import Callable, MutableMapping, Sequence
from typing import Final

from appliance.net.privileges.peer_credentials import peer_credentials
from appliance.wire.lines.control import ControlError
from appliance.wire.lines.line_buffer import LineBuffer

_CHUNK: Final = 65536
_LIMIT: Final = 65536  # bytes of a line

SocketMap = MutableMapping[int, object]


class LineConnection:
    """Calls `on_line` with each line, and `on_end` when the other side is gone or breaks the rules."""

    def __init__(self, connection: socket.socket, socket_map: SocketMap) -> None:
        connection.settimeout(0)
        self.on_line: Callable[[bytes], None] = lambda _: None
        self.on_end: Callable[[], None] = lambda: None
        self._connection = connection
        self._descriptor = connection.fileno()
        credentials = peer_credentials(connection)
        self.peer, self.user = credentials.pid, credentials.user
        """Process id and user of the other side, as the kernel reports them."""
        self._map = socket_map
        self._lines = LineBuffer(_LIMIT)
        self._open = True
        socket_map[self._descriptor] = self

    @property
    def is_open(self) -> bool:
        """Return whether the other end is still there, as far as known."""
        return self._open

    def readable(self) -> bool:
        """Return whether supervisord should poll it for input."""
        return self._open

    def writable(self) -> bool:
        """Return False: all data sent here fits the socket's buffer."""
        return False

    def handle_read_event(self) -> None:
        """Pass on the received lines."""
        try:
            chunk = self._connection.recv(_CHUNK)
            lines = list(self._lines.feed(chunk))
        except BlockingIOError:
            return
        except (OSError, ControlError):
            chunk, lines = b"", []
        for line in lines:
            if self._open:
                self.on_line(line)
        if not chunk:
            self._end()

    def handle_error(self) -> None:
        """Treat a bug in a callback as the end of the other side; supervisord calls this in an except."""
        self._end()

    def send(self, line: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a line; if that fails the end follows."""
        if not self._open:
            return
        try:
            socket.send_fds(self._connection, [line], list(descriptors))
        except OSError:
            self._end()

    def close(self) -> None:
        """Close the connection."""
        if self._open:
            self._open = False
            del self._map[self._descriptor]
            self._connection.close()

    def _end(self) -> None:
        if self._open:
            self.close()
            self.on_end()
