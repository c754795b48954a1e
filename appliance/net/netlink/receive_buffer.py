"""The kernel's receive buffer of a socket."""

import socket
from typing import Final

_FORCE: Final = 33  # SO_RCVBUFFORCE of asm-generic/socket.h; missing in the socket module


def enlarge(receiver: socket.socket, size: int) -> None:
    """Give a socket a receive buffer of `size` bytes; at most rmem_max without CAP_NET_ADMIN (socket(7))."""
    try:
        receiver.setsockopt(socket.SOL_SOCKET, _FORCE, size)
    except PermissionError:
        receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, size)
