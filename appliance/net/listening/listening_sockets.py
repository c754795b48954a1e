"""One listening socket: its options, how it is bound, and how it shares a port with others."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from appliance.net.listening.bind_addresses import Address, address_from

_SOMAXCONN: Final = Path("/proc/sys/net/core/somaxconn")
# IP_FREEBIND and IPV6_FREEBIND of linux/in.h and linux/in6.h, missing in the socket module.
_FREE_BIND: Final[dict[int, tuple[int, int]]] = {
    socket.AF_INET: (socket.IPPROTO_IP, 15),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 78),
}


@contextmanager
def side_by_side(*sockets: socket.socket) -> Iterator[None]:
    """Let sockets be bound, and listen, next to others: all of them must have SO_REUSEPORT (socket(7)).

    The kernel checks SO_REUSEPORT in bind(2) and listen(2), and for each connection to a group
    (`added_queues.py`). Without a group it is cleared afterwards: otherwise another process of this user
    could bind there, and would take a part of the connections unnoticed.
    """
    # One that was closed meanwhile is not in the way.
    alone = [each for each in sockets if each.fileno() >= 0 and not _is_shared(each)]
    for each in alone:
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        yield
    finally:
        for each in alone:
            each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 0)


def let_others_join(each: socket.socket) -> None:
    """Let sockets of this user be bound to the same address from now on, as one group of accept queues."""
    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)


def _is_shared(each: socket.socket) -> bool:
    return bool(each.getsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT))


def queue_beside(first: socket.socket) -> socket.socket:
    """Return another socket for the address of one with SO_REUSEPORT, with its options; raises OSError."""
    address = address_from(first.getsockname())
    dual = address.family == socket.AF_INET6 and not first.getsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY)
    early = bool(first.getsockopt(*_FREE_BIND[address.family]))
    bound = bound_socket(address, dual=dual, early=early, shared=True)
    let_others_join(bound)
    return bound


def listening(address: Address, *, dual: bool, early: bool) -> socket.socket:
    """Return a socket that listens at an address; raises OSError. `bound_socket` explains the options."""
    bound = bound_socket(address, dual=dual, early=early)
    try:
        bound.listen(backlog())
    except OSError:
        bound.close()
        raise
    return bound


def bound_socket(address: Address, *, dual: bool, early: bool, shared: bool = False) -> socket.socket:
    """Return a socket that is bound and does not listen yet; raises OSError.

    `dual`: a socket bound to `::` takes IPv4, too. `early`: the address may come to this machine later.
    `shared`: others are bound at this port, and have SO_REUSEPORT (`side_by_side`).
    """
    listener = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        # Without it a bind fails for a minute after a crash, while old connections are in TIME_WAIT.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it, which saves a system call per connection.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.family == socket.AF_INET6:
            # Always set: the kernel's default is an administrator's choice (net.ipv6.bindv6only).
            dual_stack = dual and address.host == "::"
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not dual_stack))
        if early:  # HAProxy's `transparent`, without its privilege
            listener.setsockopt(*_FREE_BIND[address.family], 1)
        # If several workers are woken for one connection, all but one find nothing to accept. O_NONBLOCK
        # belongs to the open file, which all of them share (open(2)).
        listener.setblocking(False)  # noqa: FBT003  # its only parameter
        with side_by_side(*([listener] if shared else [])):
            listener.bind(address.sockaddr)
    except OSError:
        listener.close()
        raise
    return listener


def address_of(listener: socket.socket) -> Address | None:
    """Return the address of a socket, None for one that is not a TCP listener."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return None
    return address_from(listener.getsockname())


def backlog() -> int:
    """Return the longest accept queue that the kernel allows.

    listen(2) limits any request to this. When a queue is full, the kernel drops the last packet of a
    handshake, and the client waits a second or more for its next try.
    """
    try:
        return int(_SOMAXCONN.read_text())
    except (OSError, ValueError):
        return socket.SOMAXCONN
