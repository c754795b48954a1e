"""What a check reads from a server and writes to it, plain or by TLS, with a bound to the work of it.

A server that always has more to say would keep whoever reads it in a loop, and with it every other check: so
a reader lets others run between its reads, and reads so much and no more.
"""

import contextlib
import socket
import ssl
from typing import Final, Protocol

import gevent
from gevent.hub import get_hub

READ: Final = 1
WRITE: Final = 2
MOST_BYTES: Final = 131_072
"""Bytes that a check reads at the most: OpenSSL takes certificates of 102,400, and real ones have 5,000."""

MOST_READS: Final = 512
"""Reads of a check at the most: what comes in single bytes costs as much as what comes in full segments."""

_CHUNK: Final = 4096
_TURN: Final = 4
"""Reads after which others run, even where there is more to read."""


class FloodError(Exception):
    """The server has said more than a check reads, and not what was asked."""


class Stream(Protocol):
    """Where a request goes and an answer comes from."""

    def send(self, data: bytes) -> None:
        """Write all of it."""
        ...

    def receive(self) -> bytes:
        """Return some bytes, none at the end; raises FloodError."""
        ...


class Plain:
    """A connected socket. Its waits are ended from outside, by the check's deadline."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reads = 0
        self._bytes = 0

    def send(self, data: bytes) -> None:
        """Write all of it."""
        while data:
            try:
                data = data[self._connection.send(data) :]
            except BlockingIOError:
                wait(self._connection, WRITE)

    def receive(self) -> bytes:
        """Return some bytes, none at the end; raises FloodError."""
        self._reads += 1
        if self._reads > MOST_READS or self._bytes > MOST_BYTES:
            raise FloodError(f"no end after {self._bytes} bytes in {self._reads - 1} pieces")
        if self._reads % _TURN == 0:
            gevent.sleep(0)
        data = self._read()
        self._bytes += len(data)
        return data

    def _read(self) -> bytes:
        while True:
            try:
                return self._connection.recv(_CHUNK)
            except BlockingIOError:
                wait(self._connection, READ)


class Tls:
    """TLS over a plain stream: the client's last handshake message travels with its first request.

    Sessions are not resumed: OpenSSL needs 0.35 ms less for it, but Python copies the session by writing and
    parsing it, twice for each connection, which takes 0.5 ms. So every check sees the certificate of today.
    """

    def __init__(self, plain: Plain, context: ssl.SSLContext, *, name: str | None) -> None:
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name)

    def handshake(self) -> None:
        """Shake hands; raises FloodError."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._fill()
            except ssl.SSLError:
                self._flush()  # the alert tells the server's administrator what we did not like
                raise
            else:
                return

    def finish(self) -> None:
        """Say goodbye, with what is left of the handshake."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        self._flush()

    def send(self, data: bytes) -> None:
        """Write all of it."""
        self._tls.write(data)
        self._flush()

    def receive(self) -> bytes:
        """Return some bytes, none at the end; raises FloodError."""
        while True:
            try:
                return self._tls.read(_CHUNK)
            except ssl.SSLWantReadError:
                self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.send(self._out.read())

    def _fill(self) -> None:
        self._flush()
        data = self._plain.receive()
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()


def wait(connection: socket.socket, events: int) -> None:
    """Wait until a socket can be read or written."""
    hub = get_hub()
    watcher = hub.loop.io(connection.fileno(), events)
    try:
        hub.wait(watcher)
    finally:
        watcher.close()
