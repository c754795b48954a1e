"""Echoes datagrams with the name of its node, from the address they were sent to: a server behind a VIP.

`vip_echo.py NAME PORT`, started in a node by `support.vrrp.vip_client`. The answer's source is the address
that was asked. The kernel delivers a datagram only while the node holds the address; what it has delivered is
answered (IPV6_TRANSPARENT), even if the address leaves before this process has its turn on a busy machine.
"""

import contextlib
import socket
import sys
from typing import Final

IPV6_TRANSPARENT: Final = 75
"""From linux/in6.h: the source may be an address that the node does not hold."""


def main(name: bytes, port: int) -> None:
    """Serve both families for ever."""
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    server.setsockopt(socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1)
    server.bind(("::", port))
    while True:
        data, ancillary, _, client = server.recvmsg(64, 128)
        # No route back once the last address of the subnet has left.
        with contextlib.suppress(OSError):
            server.sendmsg([data + name], ancillary, 0, client)


if __name__ == "__main__":
    main(sys.argv[1].encode(), int(sys.argv[2]))
