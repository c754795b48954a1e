"""A small server for the demo: a "master" or a "router" that gives its name in every answer.

On TERM it does what kube-apiserver does with --shutdown-delay-duration: checks are answered 500 at once while
everything else is served as before for `--delay` seconds, so that load balancers can turn away; kept-alive
connections are closed after the answer to their next request. Then it stops listening, finishes and exits.
Unlike kube-apiserver it distinguishes checks from clients by their path, so that a client of /readyz sees the
load balancer's work and not the master's own 500.
"""

import signal
from collections.abc import Callable, Iterator
from io import BufferedReader
from pathlib import Path
from typing import Final

import click
import gevent
from gevent import socket, ssl
from gevent.event import Event
from gevent.server import StreamServer

CHECKED: Final = frozenset({"/readyz?check", "/healthz/ready"})
READINESS: Final = CHECKED | {"/readyz", "/healthz"}
WATCH: Final = "/watch"
_BACKLOG: Final = 512
_LAST_REQUESTS: Final = 2.0  # seconds for requests in progress when the listeners close
_HURRY_POLL: Final = 0.1
_MAX_HEADERS: Final = 100


class DemoServer:
    """The state that all listeners of a backend share: their answer, and whether it is shutting down."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.stopping = Event()
        self.ending = Event()

    def serve(self, connection: socket.socket, _: object) -> None:
        """Answer requests on one connection until either side closes it."""
        try:
            with connection, connection.makefile("rb") as lines:
                while (path := _request(lines)) is not None and self._answer(connection, path):
                    pass
        except OSError:
            pass  # the client has gone

    def serve_tls(self, context: ssl.SSLContext) -> Callable[[socket.socket, object], None]:
        """Return the handler of a connection that begins with a TLS handshake; a failed one ends it."""

        def serve(connection: socket.socket, address: object) -> None:
            try:
                self.serve(context.wrap_socket(connection, server_side=True), address)
            except OSError:
                connection.close()

        return serve

    def _answer(self, connection: socket.socket, path: str) -> bool:
        """Send one answer; return whether another request may follow."""
        if path == WATCH:
            self._watch(connection)
            return False
        keep = not self.stopping.is_set()
        ready = keep or path not in CHECKED
        word = "ok" if ready and path in READINESS else "hello from" if ready else "shutting down:"
        body = f"{word} {self.name}\n".encode()
        connection.sendall(self._head(ready=ready, length=len(body), keep=keep) + body)
        return keep

    def _head(self, *, ready: bool, length: int | None, keep: bool) -> bytes:
        lines = [
            "HTTP/1.1 200 OK" if ready else "HTTP/1.1 500 Internal Server Error",
            "Content-Type: text/plain",
            f"X-Served-By: {self.name}",
            f"Connection: {'keep-alive' if keep else 'close'}",
            *([f"Content-Length: {length}"] if length is not None else []),
        ]
        return "\r\n".join([*lines, "", ""]).encode()

    def _watch(self, connection: socket.socket) -> None:
        """Send a line a second, as a Kubernetes watch might, until this backend ends."""
        connection.sendall(self._head(ready=True, length=None, keep=False))
        count = 0
        while not self.ending.wait(timeout=1.0):
            count += 1
            connection.sendall(f"{self.name} event {count}\n".encode())


def _request(lines: BufferedReader) -> str | None:
    """Return the path of the next request, None without one; a body is read and discarded."""
    words = lines.readline(65536).split()
    if len(words) != 3:
        return None
    length = 0
    for name, value in _headers(lines):
        if name == b"content-length" and value.isdigit():
            length = int(value)
    lines.read(min(length, 1 << 20))
    return words[1].decode(errors="replace")


def _headers(lines: BufferedReader) -> Iterator[tuple[bytes, bytes]]:
    for _ in range(_MAX_HEADERS):
        line = lines.readline(65536).strip()
        if not line:
            return
        name, _, value = line.partition(b":")
        yield name.lower(), value.strip()


def _listen(address: str, serve: Callable[[socket.socket, object], None]) -> StreamServer:
    host, _, port = address.rpartition(":")
    server = StreamServer((host, int(port)), serve, backlog=_BACKLOG)
    server.start()
    return server


def _certified(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


@click.command()
@click.argument("name")
@click.option("--http", multiple=True, metavar="HOST:PORT", help="Listen in clear text.")
@click.option("--https", multiple=True, metavar="HOST:PORT", help="Listen with TLS.")
@click.option("--certificate", type=click.Path(path_type=Path), help="PEM file of key and certificate.")
@click.option("--delay", type=float, default=5.0, help="Seconds between TERM and the end of serving.")
@click.option("--ending", type=click.Path(path_type=Path), help="File whose existence ends the delay.")
def main(
    *,
    name: str,
    http: tuple[str, ...],
    https: tuple[str, ...],
    certificate: Path | None,
    delay: float,
    ending: Path | None,
) -> None:
    """Serve as the backend NAME until TERM, and then a little longer."""
    backend = DemoServer(name)
    gevent.signal_handler(signal.SIGTERM, backend.stopping.set)
    gevent.signal_handler(signal.SIGINT, backend.stopping.set)
    servers = [_listen(address, backend.serve) for address in http]
    if certificate is not None:
        serve_tls = backend.serve_tls(_certified(certificate))
        servers += [_listen(address, serve_tls) for address in https]
    backend.stopping.wait()
    with gevent.Timeout(delay, exception=False):
        while ending is None or not ending.exists():
            gevent.sleep(_HURRY_POLL)
    backend.ending.set()
    gevent.joinall([gevent.spawn(server.stop, timeout=_LAST_REQUESTS) for server in servers])


if __name__ == "__main__":
    main()
