"""Whether any address of this machine has come or gone, by the kernel's notifications."""

import errno
import socket
from typing import Final

from appliance.net.netlink.netlink import open_socket

_GROUPS: Final = 1 << 4 | 1 << 8  # RTMGRP_IPV4_IFADDR, RTMGRP_IPV6_IFADDR of linux/rtnetlink.h
_RECEIVED: Final = 1 << 17
_AT_ONCE: Final = 16


class AddressNotices:
    """A socket for them, which is polled. The constructor raises OSError."""

    def __init__(self) -> None:
        self._socket: socket.socket = open_socket(_GROUPS)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def changed(self) -> bool:
        """Return whether there were any since the last call, and may be more; raises OSError."""
        for got in range(_AT_ONCE):
            try:
                self._socket.recv(_RECEIVED)
            except BlockingIOError:
                return got > 0
            except OSError as error:
                if error.errno != errno.ENOBUFS:  # some were lost
                    raise
        return True
