"""The socket calls of each connection, on raw descriptors: accept, connect, options, and close.

The standard library can only make them on socket objects, and creating such an object for a descriptor costs
a `getsockname` each time. `accept4` with SOCK_NONBLOCK saves another call, and the address stays in the
kernel's format until its text is needed. None of them blocks. A failure is a negative number, not an
exception.

`raw_sockets.pyx` is this module compiled, with direct system calls.
"""

import _socket
import ctypes
import os
import socket
import struct
from collections.abc import Iterable
from errno import EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT, EAGAIN, EINPROGRESS
from typing import Final

from appliance.wire import sockaddr
from appliance.wire.sockaddr import SIZE

STREAM: Final = socket.SOCK_STREAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
"""Type of a new socket that is non-blocking."""

Option = tuple[int, int, int]
"""Arguments of setsockopt."""

# PyDLL and not CDLL: these calls never block, and releasing and taking the interpreter's lock costs more than
# they do. The copy of errno that `use_errno` makes costs something too, so only accept and bind have it.
_LIBC: Final = ctypes.PyDLL(None)
_LIBC_ERRNO: Final = ctypes.PyDLL(None, use_errno=True)
_ACCEPT_FLAGS: Final = socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
_INT: Final = struct.Struct("i")
_RESET: Final = struct.pack("ii", 1, 0)
_PEER: Final = ctypes.create_string_buffer(SIZE)
_PEER_SIZE: Final = ctypes.c_uint32(SIZE)
_PEER_SIZE_AT: Final = ctypes.byref(_PEER_SIZE)
_FAMILIES: Final = {each: struct.pack("=H", each) for each in (socket.AF_INET, socket.AF_INET6)}
_LOCAL: Final = ctypes.create_string_buffer(SIZE)

_accept4: Final = _LIBC_ERRNO.accept4
_bind: Final = _LIBC_ERRNO.bind
_getsockname: Final = _LIBC.getsockname
_shutdown: Final = _LIBC.shutdown
_setsockopt: Final = _LIBC.setsockopt
_SHUT_WR: Final = socket.SHUT_WR


def accept(listener: int) -> int:
    """Return the next connection, or minus errno, cheaper than an exception; `peer` has the address."""
    _PEER_SIZE.value = SIZE
    descriptor: int = _accept4(listener, _PEER, _PEER_SIZE_AT, _ACCEPT_FLAGS)
    return descriptor if descriptor >= 0 else -ctypes.get_errno()


def peer() -> bytes:
    """Return the peer's address of the last `accept`, as a raw `wire.sockaddr`."""
    return _PEER.raw


def connect(address: tuple[str, int], options: Iterable[Option]) -> int:
    """Begin to connect to a literal address; return the descriptor, or minus the errno."""
    try:
        # The C type below socket.socket, whose constructor is Python code that would run for each connection.
        connection = _socket.socket(socket.AF_INET6 if ":" in address[0] else socket.AF_INET, STREAM, 0)
        for level, option, value in options:
            connection.setsockopt(level, option, value)
    except OSError as error:
        return -(error.errno or EAGAIN)
    code = connection.connect_ex(address)
    if code not in (EINPROGRESS, 0):
        connection.close()
        return -code
    # A raw descriptor from here on: `detach` makes the object forget it without closing it.
    return connection.detach()


def local(descriptor: int) -> bytes:
    """Return the address that a client has connected to, as `sockaddr.packed` does."""
    _PEER_SIZE.value = SIZE
    _getsockname(descriptor, _LOCAL, _PEER_SIZE_AT)
    return sockaddr.packed(_LOCAL.raw)


def connect_from(address: tuple[str, int], options: Iterable[Option], source: bytes, port: int) -> int:
    """Do the same from an address as `sockaddr.raw` makes it; with port 0 the kernel chooses the port.

    EADDRNOTAVAIL is that this machine does not have the address, EADDRINUSE that no port is free,
    EAFNOSUPPORT that the server's address is of another family.
    """
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    if not source.startswith(_FAMILIES[family]):
        return -EAFNOSUPPORT
    try:
        connection = _socket.socket(family, STREAM, 0)
        for level, option, value in options:
            connection.setsockopt(level, option, value)
    except OSError as error:
        return -(error.errno or EAGAIN)
    here = source[:2] + port.to_bytes(2, "big") + source[4:] if port else source
    if _bind(connection.fileno(), here, len(here)) < 0:
        connection.close()
        return -ctypes.get_errno()
    code = connection.connect_ex(address)
    if code not in (EINPROGRESS, 0):
        connection.close()
        return -(EADDRINUSE if code == EADDRNOTAVAIL else code)
    return connection.detach()


def shutdown_write(descriptor: int) -> None:
    """Send a FIN; if the connection has ended already, the next read reports it."""
    _shutdown(descriptor, _SHUT_WR)


def close(descriptor: int) -> None:
    """Close with a FIN, or with a RST if received bytes were not read."""
    os.close(descriptor)


def reset(descriptor: int) -> None:
    """Close with a RST (SO_LINGER of 0 s): the peer sees an error, and no TIME_WAIT holds the port."""
    _setsockopt(descriptor, socket.SOL_SOCKET, socket.SO_LINGER, _RESET, len(_RESET))
    os.close(descriptor)


def set_on_connection(descriptor: int, wanted: Iterable[Option]) -> None:
    """Set options on a connection; if it has ended already, the next read reports it."""
    for level, option, value in wanted:
        _setsockopt(descriptor, level, option, _INT.pack(value), _INT.size)
