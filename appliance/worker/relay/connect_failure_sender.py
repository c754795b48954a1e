"""Reports to `health` the servers that clients could not connect to (HAProxy's `observe layer4`).

It sends one datagram per such server and tick, however many clients failed, and never waits.
"""

import socket
from pathlib import Path
from typing import Final

from appliance.core.balancing.pool_member import PoolMember
from appliance.wire.lines import connect_failure

_KIND: Final = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC


class ConnectFailureSender:
    """A worker's end of the socket at `path`, which `health` reads."""

    def __init__(self, path: Path) -> None:
        self._path = str(path)
        self._socket = socket.socket(socket.AF_UNIX, _KIND)

    def send(self, servers: set[PoolMember]) -> None:
        """Send one datagram for each server and remove it from the set; what does not fit now stays."""
        while servers:
            member = servers.pop()
            try:
                self._socket.sendto(connect_failure.encode(member.pool, member.name), self._path)
            except BlockingIOError:
                servers.add(member)
                return
            except OSError:
                # `health` is not running. When it is back it checks every server on schedule.
                servers.clear()

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()
