"""Descriptors beside the lines of a control socket (SCM_RIGHTS of unix(7)).

The kernel makes copies for the receiver, which owns them from recvmsg(2) on, wanted or not: a receiver that
forgets them leaks them.
"""

import os
import struct
from collections.abc import Sequence
from typing import Final

from gevent import socket

from appliance.wire.lines.control import ControlError

CHUNK: Final = 65536
"""Bytes that are read at once."""

_MAX_DESCRIPTORS: Final = 250  # the kernel takes at most SCM_MAX_FD (253) in one message


def send(connection: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    """Send bytes, with copies of descriptors beside the first of them; raises OSError."""
    if len(descriptors) > _MAX_DESCRIPTORS:
        raise OSError(f"{len(descriptors)} descriptors do not fit one message")
    sent = 0
    if descriptors:
        rights = struct.pack(f"{len(descriptors)}i", *descriptors)
        sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    connection.sendall(data[sent:])


def receive(connection: socket.socket, descriptors: list[int], most: int = CHUNK) -> bytes:
    """Return the next chunk, b"" at the end, and add the descriptors that came with it.

    Raises ControlError when those of one line are too many: they are in the list, to be closed.
    """
    room = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)
    # Without MSG_CMSG_CLOEXEC a program that another greenlet starts now would inherit them.
    chunk, ancillary, _, _ = connection.recvmsg(most, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            count = len(data) // 4
            descriptors.extend(struct.unpack(f"{count}i", data[: count * 4]))
    if len(descriptors) > _MAX_DESCRIPTORS:
        raise ControlError(f"more than {_MAX_DESCRIPTORS} descriptors beside one line")
    return bytes(chunk)


def close_all(descriptors: list[int]) -> None:
    """Close descriptors that came over a socket, and empty the list."""
    while descriptors:
        os.close(descriptors.pop())
