"""Descriptors sent with the lines of a control socket (SCM_RIGHTS of unix(7)).

The kernel makes copies for the receiver, which owns them from recvmsg(2) on: unless it closes them, they
leak.
"""

import os
import struct
from collections.abc import Sequence
from typing import Final

from gevent import socket

from appliance.wire.lines.control import ControlError

CHUNK: Final = 65536
"""Most bytes per read."""

MOST: Final = 6000
"""Most descriptors of an answer: the sockets of all binds that a group may have (model.rules.bind_rules)."""

_IN_ONE_MESSAGE: Final = 250  # the kernel takes at most SCM_MAX_FD (253)


def send(connection: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    """Send bytes, the first ones with copies of descriptors; raises OSError.

    Descriptors that do not fit one message need further messages of one byte: there must be enough bytes.
    """
    if len(descriptors) > min(MOST, _IN_ONE_MESSAGE * len(data)):
        raise OSError(f"{len(descriptors)} descriptors do not fit beside one line")
    for start in range(0, len(descriptors), _IN_ONE_MESSAGE):
        some = descriptors[start : start + _IN_ONE_MESSAGE]
        rights = struct.pack(f"{len(some)}i", *some)
        sent = connection.sendmsg([data[:1]], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
        data = data[sent:]
    connection.sendall(data)


def receive(
    connection: socket.socket,
    descriptors: list[int],
    most: int = CHUNK,
    *,
    most_descriptors: int = _IN_ONE_MESSAGE,
) -> bytes:
    """Return the next chunk, b"" at the end, and add the descriptors that came with it.

    Raises ControlError if one line has too many: they are in the list, to be closed.
    """
    room = socket.CMSG_SPACE(_IN_ONE_MESSAGE * 4)
    # Without MSG_CMSG_CLOEXEC, a program that another greenlet starts now would inherit them.
    chunk, ancillary, _, _ = connection.recvmsg(most, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            count = len(data) // 4
            descriptors.extend(struct.unpack(f"{count}i", data[: count * 4]))
    if len(descriptors) > most_descriptors:
        raise ControlError(f"more than {most_descriptors} descriptors beside one line")
    return bytes(chunk)


def close_all(descriptors: list[int]) -> None:
    """Close descriptors that came over a socket, and empty the list."""
    while descriptors:
        os.close(descriptors.pop())
