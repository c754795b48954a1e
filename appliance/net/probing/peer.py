"""Reads and writes of a check, plain or by TLS, and their limits.

A server that always has more to send would keep the reading greenlet busy, and so block every other check of
the process. So a reader lets other greenlets run between its reads, and gives up after a number of bytes.
Messages of `notify` use this, too.
"""

import contextlib
import socket
import ssl
from typing import Final, Protocol

import gevent
from gevent.hub import get_hub

READ: Final = 1  # libev's EV_READ and EV_WRITE, as gevent takes them
WRITE: Final = 2
MOST_BYTES: Final = 131_072
"""Most bytes that a check reads: OpenSSL accepts certificates of 102,400, and real ones have 5,000."""

MOST_READS: Final = 512
"""Most reads of a check: a read of one byte costs as much as one of a full segment."""

_CHUNK: Final = 4096
_TURN: Final = 4
"""Reads after which other greenlets run, even if there is more to read."""


class FloodError(Exception):
    """The server sent more than a check reads, without an answer."""


class Stream(Protocol):
    """A stream for a request and its answer."""

    def send(self, data: bytes) -> None:
        """Write all of the data."""
        ...

    def receive(self) -> bytes:
        """Return the next bytes, empty at the end of the stream; raises FloodError."""
        ...

    def waiting(self) -> bytes | None:
        """Return bytes already received, empty at the end of the stream, None if there are none."""
        ...

    def ask_again(self) -> None:
        """Reset the limits of reads and bytes for the next check."""
        ...


class Plain:
    """A connected, non-blocking socket. Waits have no time-out: the check's deadline ends them."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reads = 0
        self._bytes = 0

    def send(self, data: bytes) -> None:
        """Write all of the data."""
        while data:
            try:
                data = data[self._connection.send(data) :]
            except BlockingIOError:
                wait(self._connection, WRITE)

    def receive(self) -> bytes:
        """Return the next bytes, empty at the end of the stream; raises FloodError."""
        self._begin_read()
        data = self._read()
        self._bytes += len(data)
        return data

    def waiting(self) -> bytes | None:
        """Return bytes already received, empty at the end of the stream, None if there are none."""
        self._begin_read()
        try:
            data = self._connection.recv(_CHUNK)
        except BlockingIOError:
            return None
        self._bytes += len(data)
        return data

    def ask_again(self) -> None:
        """Reset the limits of reads and bytes for the next check."""
        self._reads = self._bytes = 0

    def _begin_read(self) -> None:
        self._reads += 1
        if self._reads > MOST_READS or self._bytes > MOST_BYTES:
            raise FloodError(f"no end after {self._bytes} bytes in {self._reads - 1} pieces")
        if self._reads % _TURN == 0:
            gevent.sleep(0)

    def _read(self) -> bytes:
        while True:
            try:
                return self._connection.recv(_CHUNK)
            except BlockingIOError:
                wait(self._connection, READ)


class Tls:
    """TLS over a plain stream; `name` is the server name to send (SNI, RFC 6066 s.3), None for none.

    OpenSSL works on two buffers in memory, and this class moves bytes between them and the stream. So it
    decides when to send: the client's last handshake message waits for the first request and shares a segment
    with it.

    Sessions are not resumed: that saves OpenSSL 0.35 ms, but Python copies the session by writing and parsing
    it, twice per connection, which takes 0.5 ms. So every check sees the current certificate.
    """

    def __init__(self, plain: Plain, context: ssl.SSLContext, *, name: str | None) -> None:
        self._plain = plain
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_hostname=name)

    def handshake(self) -> None:
        """Perform the TLS handshake; raises FloodError, and ssl.SSLError if it fails."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:
                self._fill()
            except ssl.SSLError:
                # OpenSSL has written an alert: sent, it shows in the server's log why the check was aborted.
                self._flush()
                raise
            else:
                return

    def finish(self) -> None:
        """End TLS properly with close_notify (RFC 8446 s.6.1), without waiting for the server's."""
        with contextlib.suppress(ssl.SSLWantReadError):
            self._tls.unwrap()
        self._flush()

    def finish_both(self) -> None:
        """End the TLS connection properly, and wait until the server does; raises FloodError and OSError."""
        while True:
            try:
                self._tls.unwrap()
            except ssl.SSLWantReadError:
                self._fill()
            else:
                self._flush()
                return

    def send(self, data: bytes) -> None:
        """Write all of the data."""
        self._tls.write(data)
        self._flush()

    def receive(self) -> bytes:
        """Return the next bytes, empty at the end of the stream; raises FloodError."""
        while True:
            try:
                return self._tls.read(_CHUNK)
            except ssl.SSLWantReadError:
                self._fill()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""

    def waiting(self) -> bytes | None:
        """Return bytes already received, empty at the end of the stream, None if there are none."""
        while True:
            try:
                return self._tls.read(_CHUNK)
            except ssl.SSLWantReadError:
                data = self._plain.waiting()
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                return b""
            if data is None:
                return None
            self._take(data)

    def ask_again(self) -> None:
        """Reset the limits of reads and bytes for the next check."""
        self._plain.ask_again()

    def _flush(self) -> None:
        if self._out.pending:
            self._plain.send(self._out.read())

    def _fill(self) -> None:
        self._flush()
        self._take(self._plain.receive())

    def _take(self, data: bytes) -> None:
        if data:
            self._in.write(data)
        else:
            self._in.write_eof()


def wait(connection: socket.socket, events: int) -> None:
    """Block this greenlet until a socket can be read or written; `events` is READ or WRITE."""
    hub = get_hub()
    watcher = hub.loop.io(connection.fileno(), events)
    try:
        hub.wait(watcher)
    finally:
        watcher.close()
