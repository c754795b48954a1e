"""A name that only one process of a network namespace can have: that of an abstract unix socket (unix(7)).

Abstract names belong to the network namespace, as interfaces and addresses do. The kernel frees the name
however its process exits, and it needs neither a file nor a capability.
"""

import errno
import socket


class NamespaceClaim:
    """Claims `name`; `held` is false if another process has it. Raises OSError for any other failure."""

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
        """Free the name; another call is harmless."""
        self._socket.close()
