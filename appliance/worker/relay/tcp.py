"""The socket options that the data path sets, and its occasional queries of a socket."""

import fcntl
import socket
import sys
import termios
from collections.abc import Iterable
from typing import Final

from appliance.model.snapshot.frontends import KeepAlive
from appliance.worker.relay.raw_sockets import Option

NO_OPTIONS: Final = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 0),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 0),
)
"""Options that undo those of an earlier configuration."""

IN_LINE: Final = ((socket.SOL_SOCKET, socket.SO_OOBINLINE, 1),)
"""Urgent data stays in its place in the stream, as RFC 6093 section 6 demands. Without this option a read
that begins at the byte that the urgent pointer names skips that byte, and the stream would lose it.
"""

_TCP_REPAIR: Final = 19  # linux/tcp.h

NO_DELAY: Final = ((socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),)
"""No small write waits until the peer has acknowledged the one before it (RFC 896, Nagle's algorithm).
Setting it sends waiting bytes at once.
"""


class OptionsRefused(Exception):  # noqa: N818  # reads as what happened
    """The kernel refuses socket options of a configuration."""


def unacknowledged(descriptor: int) -> int:
    """Return how many bytes the peer has not acknowledged yet, a FIN counting as one (TIOCOUTQ)."""
    queued = fcntl.ioctl(descriptor, termios.TIOCOUTQ, bytes(4))
    return int.from_bytes(queued, sys.byteorder)


def is_in_repair(descriptor: int) -> bool:
    """Return whether a connection sends nothing more: a process has died that held it so (TCP_REPAIR)."""
    borrowed = socket.socket(fileno=descriptor)
    try:
        return bool(borrowed.getsockopt(socket.IPPROTO_TCP, _TCP_REPAIR))
    finally:
        borrowed.detach()


def local_address(descriptor: int) -> tuple[str, int]:
    """Return the address that a client has connected to."""
    borrowed = socket.socket(fileno=descriptor)
    try:
        host, port = borrowed.getsockname()[:2]
    finally:
        borrowed.detach()
    return str(host), int(port)


def options(keepalive: KeepAlive | None, user_timeout: float | None) -> tuple[Option, ...]:
    """Return the options of a connection as arguments of setsockopt; `user_timeout` is seconds."""
    return (*NO_DELAY, *IN_LINE, *connect_options(user_timeout), *keepalive_options(keepalive))


def connect_options(user_timeout: float | None) -> tuple[Option, ...]:
    """Return the options that a connection has from its first byte on.

    TCP_USER_TIMEOUT (RFC 5482) is in milliseconds for the kernel. It ends a connection whose peer
    acknowledges nothing for so long; without it the kernel retransmits for a quarter of an hour. It also ends
    one whose peer keeps its window at zero, however often it answers the probes (tcp_probe_timer).
    """
    if user_timeout is None:
        return ()
    return ((socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, round(user_timeout * 1000)),)


def keepalive_options(keepalive: KeepAlive | None) -> tuple[Option, ...]:
    """Return the options that detect that the peer of an idle connection is gone.

    SO_KEEPALIVE is last: it starts the timer, with the times set by then.
    """
    if keepalive is None:
        return ()
    return (
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, max(1, round(keepalive.idle))),
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, round(keepalive.interval))),
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, keepalive.count),
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    )


def refused(wanted: Iterable[Option]) -> dict[Option, str]:
    """Return the options that the kernel refuses, each with its reason: they are tried on a new socket."""
    found: dict[Option, str] = {}
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        for option in wanted:
            try:
                trial.setsockopt(*option)
            except (OSError, TypeError) as error:  # TypeError: more than a C int, so it is taken for a buffer
                found[option] = str(error)
    return found


def accepted(wanted: Iterable[Option]) -> tuple[Option, ...]:
    """Return the options that the kernel accepts: a refused one must not cost every connection."""
    given = tuple(wanted)
    without = refused(given)
    return tuple(option for option in given if option not in without)


def set_options(descriptor: int, wanted: Iterable[Option]) -> None:
    """Set options on a listener; on Linux accepted connections inherit them without a call."""
    borrowed = socket.socket(fileno=descriptor)
    try:
        for level, option, value in wanted:
            borrowed.setsockopt(level, option, value)
    finally:
        borrowed.detach()
