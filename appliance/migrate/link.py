"""Connections between two `migrate`: TLS 1.3 with the certificate of the nodes on both ends."""

import secrets
import ssl as standard_ssl
from typing import Final

import gevent
from gevent import socket, ssl

from appliance.model.snapshot.linger import MovedSessions
from appliance.wire import session_migration
from appliance.wire.session_migration import PREFIX, VERSION, Hello, Message, MigrationError

CONNECT_SECONDS: Final = 2.0
"""Seconds for a connection and its handshake."""

MESSAGE_SECONDS: Final = 2.0
"""Seconds for an answer, and for a message beside the time of its bytes."""

_SLOWEST: Final = 20 << 20
"""Bytes in a second that a network between two nodes carries at least."""

_PIECE: Final = 1 << 16
_RUN: Final = secrets.token_bytes(16)


class LinkError(Exception):
    """The other node cannot be reached, is not believed, or does not answer in time."""


def context(settings: MovedSessions, *, server: bool) -> ssl.SSLContext:
    """Return the TLS settings of one end; raises LinkError if the certificate cannot be used."""
    found = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    found.check_hostname = False  # nodes are known by their authority: an address says nothing
    found.verify_mode = standard_ssl.CERT_REQUIRED
    found.minimum_version = standard_ssl.TLSVersion.TLSv1_3
    authorities = settings.authorities or settings.certificate
    try:
        found.load_cert_chain(settings.certificate)
        found.load_verify_locations(authorities)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = getattr(error, "strerror", None) or str(error)
        raise LinkError(f"the certificate {settings.certificate}: {reason}") from error
    return found


class Link:
    """One connection, with the number of the other run. Methods raise LinkError and MigrationError."""

    def __init__(self, secured: ssl.SSLSocket) -> None:
        self.run = b""
        self._socket = secured

    def greet(self) -> None:
        """Exchange versions, and learn which run of the other node this is."""
        self.send(Hello(version=VERSION, run=_RUN))
        hello = self.receive()
        if not isinstance(hello, Hello) or hello.version != VERSION:
            raise MigrationError("the other node runs a release that moves sessions in another way")
        self.run = hello.run

    def send(self, message: Message) -> None:
        """Send a message."""
        data = memoryview(session_migration.encode(message))
        try:
            with gevent.Timeout(_seconds(len(data)), TimeoutError):
                for start in range(0, len(data), _PIECE):
                    self._socket.sendall(data[start : start + _PIECE])
        except OSError as error:
            raise LinkError(_reason(error)) from error

    def receive(self, *, begins_within: float | None = MESSAGE_SECONDS) -> Message:
        """Return the next message; `begins_within` is seconds for its first byte, None for any time."""
        try:
            with gevent.Timeout(begins_within, TimeoutError):
                first = self._read(1)
            with gevent.Timeout(MESSAGE_SECONDS, TimeoutError):
                size = session_migration.length(first + self._read(PREFIX - 1))
            with gevent.Timeout(_seconds(size), TimeoutError):
                return session_migration.decode(self._read(size))
        except OSError as error:
            raise LinkError(_reason(error)) from error

    def ask(self, message: Message) -> Message:
        """Send a message, and return the next one."""
        self.send(message)
        return self.receive()

    def close(self) -> None:
        """Close the connection."""
        self._socket.close()

    def _read(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            piece = self._socket.recv(min(_PIECE, size - len(data)))
            if not piece:
                raise ConnectionResetError(None, "the other node has closed the connection")
            data += piece
        return bytes(data)


def connect(node: str, port: int, *, interface: str, tls: ssl.SSLContext) -> Link:
    """Return a connection to the node with this address on an interface. Raises LinkError and others."""
    family = socket.AF_INET6 if ":" in node else socket.AF_INET
    plain = socket.socket(family, socket.SOCK_STREAM)
    try:
        with gevent.Timeout(CONNECT_SECONDS, TimeoutError):
            scope = (0, socket.if_nametoindex(interface)) if node.startswith("fe80:") else ()
            plain.connect((node, port, *scope))
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(tls.wrap_socket(plain))
        link.greet()
    except OSError as error:
        plain.close()
        raise LinkError(f"{node} port {port}: {_reason(error)}") from error
    except BaseException:
        plain.close()
        raise
    return link


def accepted(plain: socket.socket, tls: ssl.SSLContext) -> Link:
    """Return the connection of a node that has connected; raises LinkError and MigrationError."""
    try:
        with gevent.Timeout(CONNECT_SECONDS, TimeoutError):
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            link = Link(tls.wrap_socket(plain, server_side=True))
        link.greet()
    except OSError as error:
        plain.close()
        raise LinkError(_reason(error)) from error
    except BaseException:
        plain.close()
        raise
    return link


def listener(port: int) -> socket.socket:
    """Return the socket that other nodes connect to, of both families; raises OSError."""
    made = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        made.bind(("::", port))
        made.listen(64)
    except OSError:
        made.close()
        raise
    return made


def _seconds(size: int) -> float:
    """Return how long a message of that many bytes may take."""
    return MESSAGE_SECONDS + size / _SLOWEST


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    return error.strerror or str(error)
