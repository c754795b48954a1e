"""The sockets of another process, looked at without its help."""

import contextlib
import ctypes
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PIDFD_GETFD: Final = 438  # <asm-generic/unistd.h>: the same number on every architecture


@contextlib.contextmanager
def connections(pid: int) -> Iterator[list[socket.socket]]:
    """Give duplicates of the established TCP connections of a process; they are closed at the end."""
    process = os.pidfd_open(pid)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, process)
        found = []
        for number in _sockets(pid):
            duplicate = stack.enter_context(socket.socket(fileno=_duplicate(process, number)))
            if _is_connection(duplicate):
                found.append(duplicate)
        yield found


def idle_options(pid: int) -> list[tuple[int, ...]]:
    """Return of each connection of a process: keepalive, idle time, interval, count, user timeout.

    Times of keepalive are seconds, the user timeout is milliseconds (tcp(7)).
    """
    with connections(pid) as found:
        return [_idle_options(each) for each in found]


def _idle_options(side: socket.socket) -> tuple[int, ...]:
    tcp = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
    kept = side.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
    return kept, *(side.getsockopt(socket.IPPROTO_TCP, option) for option in tcp)


def _sockets(pid: int) -> list[int]:
    descriptors = Path(f"/proc/{pid}/fd")
    return [int(each.name) for each in descriptors.iterdir() if str(each.readlink()).startswith("socket:")]


def _duplicate(process: int, number: int) -> int:
    descriptor: int = ctypes.CDLL(None, use_errno=True).syscall(_PIDFD_GETFD, process, number, 0)
    if descriptor < 0:
        raise OSError(ctypes.get_errno(), "pidfd_getfd")
    return descriptor


def _is_connection(candidate: socket.socket) -> bool:
    if candidate.family not in {socket.AF_INET, socket.AF_INET6}:
        return False
    try:
        candidate.getpeername()
    except OSError:
        return False
    return True
