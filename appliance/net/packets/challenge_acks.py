"""Packets that make an end of a connection send, though this machine has no socket for it."""

import socket
from typing import Final

from appliance.core.forwarding.mark_numbers import MARK
from appliance.net.closable import Closable
from appliance.wire.tcp_segment import bare_acknowledgement

_HEADER_INCLUDED: Final = 36  # IPV6_HDRINCL of linux/in6.h
_ANYWHERE: Final = 0x5F3C_1A77
"""A sequence number: it is hardly ever within a window, and if it is, the acknowledgement of 0 is not."""


class ChallengeAcks(Closable):
    """Makes an end of a connection that no longer exists here send, so that it learns that it is over.

    A reset needs the sequence number that its receiver expects (RFC 5961 section 3), which only the two ends
    have. But each end answers a segment outside its window with one that contains the expected number (RFC
    9293 section 3.10.7.4). That answer comes here, and gets a reset with exactly that number: from the rule
    for such packets (core.forwarding.ruleset), or from the kernel if it is for one of this machine's own
    addresses. For conntrack they must be no connection: the packets have the mark `MARK`.

    Each raw socket is opened when it is first used.
    """

    def __init__(self) -> None:
        self._sockets: dict[int, socket.socket] = {}

    def close(self) -> None:
        """Close the sockets; another call is harmless."""
        while self._sockets:
            self._sockets.popitem()[1].close()

    def open_for(self, address: str) -> None:
        """Open the socket for an address if it is not open; raises OSError: EPERM without CAP_NET_RAW."""
        self._socket(address)

    def provoke(self, source: tuple[str, int], destination: tuple[str, int]) -> None:
        """Make `destination` answer `source`, with which it has a connection; raises OSError."""
        packet = bare_acknowledgement(*source, *destination, sequence=_ANYWHERE)
        self._socket(destination[0]).sendto(packet, (destination[0], 0))

    def _socket(self, address: str) -> socket.socket:
        """Return the socket of a family: a machine without IPv6 has none for that."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        if family not in self._sockets:
            self._sockets[family] = _raw(family)
        return self._sockets[family]


def _raw(family: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, MARK)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, _HEADER_INCLUDED, 1)
    except OSError:
        made.close()
        raise
    return made
