"""The process at the other end of a unix socket, from the kernel (SO_PEERCRED of unix(7)).

The kernel records process and user at connect(2), and for the listening side at listen(2): no peer can forge
them, and a process that has passed its socket on is still named.
"""

import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

_UCRED: Final = struct.Struct("=iII")  # struct ucred: pid, uid, gid


class SocketOptions(Protocol):
    """A socket, Python's or gevent's, as far as this module needs it."""

    def getsockopt(self, level: int, option: int, size: int, /) -> bytes:
        """Return the bytes of an option."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerCredentials:
    """Process id (0 for one of another PID namespace) and user of the other end."""

    pid: int
    user: int


def peer_credentials(connection: SocketOptions) -> PeerCredentials:
    """Return the process at the other end; raises OSError."""
    pid, user, _ = _UCRED.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
    return PeerCredentials(pid=pid, user=user)


def listening_process(path: Path) -> int | None:
    """Return the process that listens on a unix socket, 0 for one of another namespace, None for none."""
    with socket.socket(socket.AF_UNIX) as probe:
        probe.settimeout(1)
        try:
            probe.connect(str(path))
            return peer_credentials(probe).pid
        except OSError:
            return None
