"""Streams to who is told, plain and by TLS; what is read of them has a limit, and lets others run meanwhile.

Certificates are always judged, by the machine's authorities or by those of a file.
"""

import contextlib
import ssl
from collections.abc import Iterator
from typing import Final

import gevent
from gevent import socket

from appliance.net.probing.peer import FloodError, Plain, Stream, Tls
from appliance.reload.notifying.secret_files import SecretFiles, SecretUnusable

_GOODBYE: Final = 2.0  # seconds for the other side to read all, and to say that it closes too


def authorities(ca: str | None, files: SecretFiles) -> ssl.SSLContext:
    """Return what judges a server's certificate and name; raises SecretUnusable, OSError."""
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
    """Give a connection that does not block, and close it, whatever ends it; raises OSError, ValueError."""
    with contextlib.closing(socket.create_connection(place)) as connection:
        connection.settimeout(0.0)
        yield connection


def stream(connection: socket.socket, server: str, context: ssl.SSLContext | None) -> Stream:
    """Return the stream over a connection, by TLS where there is a context; raises OSError, FloodError."""
    return Plain(connection) if context is None else _secured(connection, server, context)


@contextlib.contextmanager
def secured(connection: socket.socket, server: str, context: ssl.SSLContext) -> Iterator[Stream]:
    """Give the TLS stream over a connection, which both sides have closed then; raises OSError, FloodError.

    RFC 5425 section 4.4: a sender says close_notify before it closes. Its receiver's answer is awaited: with
    bytes of the other side unread, such as session tickets, the kernel would reset the connection and what
    was sent might be lost.
    """
    made = _secured(connection, server, context)
    yield made
    # It was said; the other side may be gone without a word.
    with contextlib.suppress(OSError, FloodError), gevent.Timeout(_GOODBYE, TimeoutError):
        made.finish_both()


def _secured(connection: socket.socket, server: str, context: ssl.SSLContext) -> Tls:
    made = Tls(Plain(connection), context, name=server)
    made.handshake()
    return made
