"""Messages of syslog on their way: as datagrams, or framed over TCP or TLS (RFC 5426, 6587, 5425)."""

import contextlib
import socket as sockets
from collections.abc import Sequence
from urllib.parse import urlsplit

from gevent import socket

from appliance.reload.notifying.secret_files import SecretFiles
from appliance.reload.notifying.tls_streams import authorities, connected, secured, stream
from appliance.wire import syslog


def send(address: str, messages: Sequence[bytes], *, ca: str | None, files: SecretFiles) -> None:
    """Send all messages; `address` and `ca` are as in NotifyTarget. The caller has a deadline.

    Raises OSError, FloodError, SecretUnusable, ValueError: a name that no resolver takes.
    """
    if address.startswith("/"):
        _to_socket(address, messages)
        return
    parts = urlsplit(address)
    place = parts.hostname or "", parts.port or 0
    framed = b"".join(map(syslog.framed, messages))
    match parts.scheme:
        case "tcp":
            with connected(place) as connection:
                stream(connection, place[0], None).send(framed)
        case "tls":
            context = authorities(ca, files)
            with connected(place) as connection, secured(connection, place[0], context) as made:
                made.send(framed)
        case _:
            _as_datagrams(place, messages)


def _to_socket(path: str, messages: Sequence[bytes]) -> None:
    with contextlib.closing(socket.socket(sockets.AF_UNIX, sockets.SOCK_DGRAM)) as local:
        local.connect(path)
        for each in messages:
            local.send(each)


def _as_datagrams(place: tuple[str, int], messages: Sequence[bytes]) -> None:
    family, _, _, _, found = socket.getaddrinfo(*place, type=sockets.SOCK_DGRAM)[0]
    with contextlib.closing(socket.socket(family, sockets.SOCK_DGRAM)) as datagrams:
        datagrams.connect(found)
        for each in messages:
            datagrams.send(each)
