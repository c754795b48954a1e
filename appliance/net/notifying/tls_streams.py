"""TLS to who is told: certificates are always judged, by the machine's authorities or by those of a file."""

import contextlib
import socket as sockets
import ssl
from collections.abc import Iterator
from typing import Final

from gevent import socket
from gevent.ssl import SSLContext, SSLSocket

from appliance.net.notifying.secret_files import SecretFiles, SecretUnusable

_GOODBYE: Final = 2.0  # seconds for the other side to read all, and to say that it closes too


def authorities(ca: str | None, files: SecretFiles) -> SSLContext:
    """Return what judges a server's certificate and name; raises SecretUnusable, OSError."""
    context = SSLContext(ssl.PROTOCOL_TLS_CLIENT)
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
def tls_stream(plain: socket.socket, server: str, context: SSLContext) -> Iterator[SSLSocket]:
    """Give a TLS stream over a connection, which it closes, whatever ends it; raises OSError."""
    # The handshake has to come second: a deadline in it must find a socket that somebody closes.
    with context.wrap_socket(plain, server_hostname=server, do_handshake_on_connect=False) as stream:
        stream.do_handshake()
        yield stream


@contextlib.contextmanager
def secured(plain: socket.socket, server: str, context: SSLContext) -> Iterator[socket.socket]:
    """Give the TLS stream over a connection; raises OSError. At the end both sides have closed it.

    RFC 5425 section 4.4: a sender says close_notify before it closes. Its receiver's answer is awaited: with
    bytes of the other side unread, such as session tickets, the kernel would reset the connection and what
    was sent might be lost.
    """
    with tls_stream(plain, server, context) as stream:
        yield stream
        stream.settimeout(_GOODBYE)
        with contextlib.suppress(OSError):  # it was said; the other side may be gone without a word
            stream.unwrap().shutdown(sockets.SHUT_RDWR)
