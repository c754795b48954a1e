"""Servers that never stop talking: each kind keeps whoever reads it busy, for as long as that reads.

====================  ===================================================================================
``hello-requests``    TLS HelloRequests without an end in the place of a ServerHello (RFC 5246 7.4.1.1)
``tickets``           a TLS 1.3 handshake, and two hundred thousand NewSessionTickets after it
``key-updates``       a TLS 1.3 handshake, and KeyUpdates without an end that each ask for one in return
``renegotiation``     a TLS 1.2 handshake, and HelloRequests without an end after it
``interim``           HTTP answers of status 103 without an end
``headers``           a header of an interim answer that never ends
``drip``              a status line that never ends, a byte a second
``body``              a good status, and a body without an end
====================  ===================================================================================
"""

import argparse
import ctypes
import ctypes.util
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from support.values.certificates import Certificates

HELLO_REQUESTS: Final = b"\x16\x03\x03" + (16000).to_bytes(2, "big") + bytes(16000)
"""A record of 4,000 HelloRequests: type 0 and a length of 0 each."""

_TICKETS: Final = 200_000
_FILETYPE_PEM: Final = 1
_SET_MAX_VERSION: Final = 124
_TLS_1_2: Final = 0x0303
_UPDATE_REQUESTED: Final = 1

SECURE: Final = ("hello-requests", "tickets", "key-updates", "renegotiation")
PLAIN: Final = ("interim", "headers", "drip")
"""What never gives a check its answer, for checks of type https and http."""


@contextmanager
def hostile(kind: str, certificates: Certificates) -> Iterator[int]:
    """Run a server of this kind in a process of its own; yields its port on 127.0.0.1."""
    command = [
        sys.executable,
        "-m",
        "support.peers.hostile",
        kind,
        str(certificates.chain),
        str(certificates.key),
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], text=True
    ) as process:
        assert process.stdout is not None
        try:
            yield int(process.stdout.readline())
        finally:
            process.kill()


def _hello_requests(connection: socket.socket, _: Certificates) -> None:
    while True:
        connection.sendall(HELLO_REQUESTS)


def _tickets(connection: socket.socket, files: Certificates) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(files.chain, files.key)
    context.num_tickets = _TICKETS
    with context.wrap_socket(connection, server_side=True) as secured:
        secured.recv(1)
        time.sleep(3600)


def _key_updates(connection: socket.socket, files: Certificates) -> None:
    # The peer's own KeyUpdates are never read: its side of the connection fills up.
    _converse(connection, files, lambda tls, session: tls.SSL_key_update(session, _UPDATE_REQUESTED), None)


def _renegotiation(connection: socket.socket, files: Certificates) -> None:
    _converse(connection, files, lambda tls, session: tls.SSL_renegotiate(session), _TLS_1_2)


def _converse(
    connection: socket.socket,
    files: Certificates,
    again: Callable[[ctypes.CDLL, ctypes.c_void_p], object],
    newest: int | None,
) -> None:
    """Shake hands with OpenSSL's own functions, which Python has not, and do one thing `again` for ever."""
    tls = ctypes.CDLL(ctypes.util.find_library("ssl") or "libssl.so.3")
    for function in (tls.TLS_server_method, tls.SSL_CTX_new, tls.SSL_new):
        function.restype = ctypes.c_void_p
    context = ctypes.c_void_p(tls.SSL_CTX_new(ctypes.c_void_p(tls.TLS_server_method())))
    if newest is not None:
        tls.SSL_CTX_ctrl(context, _SET_MAX_VERSION, ctypes.c_long(newest), None)
    tls.SSL_CTX_use_certificate_chain_file(context, str(files.chain).encode())
    tls.SSL_CTX_use_PrivateKey_file(context, str(files.key).encode(), _FILETYPE_PEM)
    session = ctypes.c_void_p(tls.SSL_new(context))
    tls.SSL_set_fd(session, connection.fileno())
    if tls.SSL_accept(session) != 1:
        return
    while again(tls, session) == 1 and tls.SSL_do_handshake(session) == 1:
        pass


def _interim(connection: socket.socket, _: Certificates) -> None:
    connection.recv(65536)
    while True:
        connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>\r\n\r\n" * 100)


def _headers(connection: socket.socket, _: Certificates) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 103 Early Hints\r\n")
    while True:
        connection.sendall(b"X-More: and more\r\n" * 100)


def _drip(connection: socket.socket, _: Certificates) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 ")
    while True:
        connection.sendall(b"x")
        time.sleep(1.0)


def _body(connection: socket.socket, _: Certificates) -> None:
    connection.recv(65536)
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    while True:
        connection.sendall(bytes(65536))


_KINDS: Final = {
    "hello-requests": _hello_requests,
    "tickets": _tickets,
    "key-updates": _key_updates,
    "renegotiation": _renegotiation,
    "interim": _interim,
    "headers": _headers,
    "drip": _drip,
    "body": _body,
}


def _serve(kind: str, connection: socket.socket, files: Certificates) -> None:
    with connection, suppress(OSError):
        _KINDS[kind](connection, files)


def main() -> None:
    """Serve for ever; print the port first."""
    parser = argparse.ArgumentParser()
    parser.add_argument("kind", choices=_KINDS)
    parser.add_argument("chain", type=Path)
    parser.add_argument("key", type=Path)
    given = parser.parse_args()
    files = Certificates(authority=given.chain, chain=given.chain, key=given.key)
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        sys.stdout.write(f"{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=_serve, args=(given.kind, connection, files), daemon=True).start()


if __name__ == "__main__":
    main()
