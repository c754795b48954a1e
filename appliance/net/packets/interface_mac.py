"""The MAC of an interface, by ioctl(2): /sys may be that of another network namespace."""

import fcntl
import socket
import struct
from typing import Final

_GET: Final = 0x8927  # SIOCGIFHWADDR of linux/sockios.h
_INTERFACE: Final = struct.Struct("=16s24x")  # struct ifreq of linux/if.h
_AT: Final = 18  # after the name and the family of struct sockaddr


def of(interface: str) -> bytes:
    """Return the MAC; raises OSError."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asking:
        answer = fcntl.ioctl(asking.fileno(), _GET, _INTERFACE.pack(interface.encode()))
    return answer[_AT : _AT + 6]
