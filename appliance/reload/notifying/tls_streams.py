"""Streams to targets, plain and with TLS; reads have a limit, and let other work run meanwhile.

Certificates are always verified, against the machine's authorities or those of a file.
"""

import contextlib
import ssl
from collections.abc import Iterator
from typing import Final

import gevent
from gevent import socket

from appliance.net.probing.peer import FloodError, Plain, Stream, Tls
from appliance.reload.notifying.secret_files import SecretFiles, SecretUnusable

_GOODBYE: Final = 2.0  # seconds for the other side to read all, and to send its close_notify


def authorities(ca: str | None, files: SecretFiles) -> ssl.SSLContext:
    """Return the context that verifies a server's certificate and name; raises SecretUnusable, OSError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if ca is None:
        context.load_default_certs()
        return context
    text = files.certificates(ca)
    try:
        context.load_verify_locations(cadata=text)
    except ssl.SSLError:
        raise SecretUnusable(f"{ca}: holds no certificate in PEM") from None
    return context


@contextlib.contextmanager
def connected(place: tuple[str, int]) -> Iterator[socket.socket]:
    """Yield a connection that does not block, and close it in any case; raises OSError, ValueError."""
    with contextlib.closing(socket.create_connection(place)) as connection:
        connection.settimeout(0.0)
        yield connection


def stream(connection: socket.socket, server: str, context: ssl.SSLContext | None) -> Stream:
    """Return the stream over a connection, with TLS if there is a context; raises OSError, FloodError."""
    return Plain(connection) if context is None else _secured(connection, server, context)


@contextlib.contextmanager
def secured(connection: socket.socket, server: str, context: ssl.SSLContext) -> Iterator[Stream]:
    """Yield the TLS stream over a connection, and have both sides close it; raises OSError, FloodError.

    RFC 5425 section 4.4: a sender sends close_notify before it closes. The receiver's answer is awaited: with
    its bytes unread, such as session tickets, the kernel would reset the connection, and sent data might be
    lost.
    """
    made = _secured(connection, server, context)
    yield made
    # It was sent; the other side may be gone without an answer.
    with contextlib.suppress(OSError, FloodError), gevent.Timeout(_GOODBYE, TimeoutError):
        made.finish_both()


def _secured(connection: socket.socket, server: str, context: ssl.SSLContext) -> Tls:
    made = Tls(Plain(connection), context, name=server)
    made.handshake()
    return made
