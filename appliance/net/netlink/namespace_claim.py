"""A name that one process of a network namespace can have: its abstract unix sockets are the namespace's own.

It is gone with the process, however that ends, and needs neither a file nor a right.
"""

import errno
import socket


class NamespaceClaim:
    """Claims `name`; `held` is whether nobody else has it. Raises OSError for anything but that."""

    def __init__(self, name: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.held = True
        try:
            self._socket.bind(f"\0{name}")
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                self._socket.close()
                raise
            self.held = False

    def close(self) -> None:
        """Give the name back; harmless when repeated."""
        self._socket.close()
