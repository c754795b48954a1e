"""A server that tells clients its name, and a client that asks whose server it gets."""

import socket
import socketserver
import threading
from contextlib import suppress

from support.worker.trace import PATIENCE, read_all


class NamedServer(socketserver.ThreadingTCPServer):
    """A server that says its name, and then what it has heard up to the client's half-close."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(("127.0.0.1", 0), _Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def close(self) -> None:
        """End it."""
        self.shutdown()
        self.server_close()


class _Answer(socketserver.BaseRequestHandler):
    server: NamedServer
    request: socket.socket

    def handle(self) -> None:
        """Serve one connection."""
        with suppress(OSError):  # a client of the test has left
            self.request.sendall(f"{self.server.name}\n".encode())
            self.request.sendall(read_all(self.request))


def chosen(
    port: int, data: bytes = b"", *, step: int = 1, host: str = "127.0.0.1", source: str | None = None
) -> tuple[str, bytes]:
    """Return whose server a client gets, "" for nobody's, and what that server has heard of it."""
    mine = (source, 0) if source else None
    try:
        with socket.create_connection((host, port), PATIENCE, source_address=mine) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for at in range(0, len(data), step):
                client.sendall(data[at : at + step])
            name = client.makefile("rb").readline()
            client.shutdown(socket.SHUT_WR)
            return name.decode().strip(), read_all(client)
    except OSError:
        return "", b""
