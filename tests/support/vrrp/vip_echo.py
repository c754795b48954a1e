"""Echoes datagrams with the name of its node, from the address they were sent to: a server behind a VIP.

`vip_echo.py NAME PORT`, started in a node by `support.vrrp.vip_client`. The answer's source is the address
that was asked, so nothing answers from an address that the node no longer holds.
"""

import contextlib
import socket
import sys


def main(name: bytes, port: int) -> None:
    """Serve both families for ever."""
    server = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    server.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
    server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    server.bind(("::", port))
    while True:
        data, ancillary, _, client = server.recvmsg(64, 128)
        # The address may leave between the two calls; then nobody answers, as with a real server.
        with contextlib.suppress(OSError):
            server.sendmsg([data + name], ancillary, 0, client)


if __name__ == "__main__":
    main(sys.argv[1].encode(), int(sys.argv[2]))
