"""journald's end of a service's standard output, as far as a service sees it: a socket of that name."""

import contextlib
import socket
import tempfile
from collections.abc import Iterator
from pathlib import Path


class Journald:
    """What was written to it."""

    def __init__(self, connection: socket.socket, service: socket.socket) -> None:
        self._connection = connection
        self.service = service
        """What a service has as its output."""

    def lines(self) -> list[str]:
        """Close the service's end here, and return everything that was written, to the end."""
        self.service.close()
        with self._connection.makefile("r", encoding="utf-8") as stream:
            return stream.read().splitlines()


@contextlib.contextmanager
def journald(place: str = "systemd/journal/stdout") -> Iterator[Journald]:
    """Listen as journald does, below a folder of our own, with a connection of one service."""
    with tempfile.TemporaryDirectory(prefix="lb-") as folder, socket.socket(socket.AF_UNIX) as listening:
        path = Path(folder) / place
        path.parent.mkdir(parents=True)
        listening.bind(str(path))
        listening.listen()
        with socket.socket(socket.AF_UNIX) as service:
            service.connect(str(path))
            connection, _ = listening.accept()
            with connection:
                connection.settimeout(60)
                yield Journald(connection, service)
