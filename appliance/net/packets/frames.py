"""Whole Ethernet frames on one interface (packet(7)): ARP and neighbour discovery, sent and received."""

import contextlib
import errno
import socket
from collections.abc import Sequence
from typing import Final, Self

from appliance.net.closable import Closable
from appliance.net.packets import packet_filter
from appliance.net.packets.packet_filter import Program

ARP: Final = 0x0806
"""EtherType (RFC 826)."""

IPV6: Final = 0x86DD
"""EtherType (RFC 2464 section 3)."""

_NOTHING: Final = 0
_FRAME: Final = 2048
_AT_ONCE: Final = 256


class FrameSocket(Closable):
    """Sends whole frames, and receives those of one EtherType; receives nothing without one.

    The kernel drops frames that `program` rejects (packet_filter). Raises OSError: ENODEV without the
    interface, EPERM without CAP_NET_RAW. The socket stays with this interface: a recreated one of the same
    name needs a new socket.
    """

    def __init__(self, interface: str, *, receive: int = _NOTHING, program: Program = ()) -> None:
        self.interface = interface
        # Protocol 0 receives nothing. With a protocol a packet socket gets the frames of every interface from
        # socket(2) on, until it is bound; bind(2) sets interface and protocol together.
        self._socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, 0)
        try:
            if program:
                packet_filter.attach(self._socket, program)
            self._socket.bind((interface, receive))
        except OSError:
            self._socket.close()
            raise

    @classmethod
    def claims(cls, interface: str, addresses: Sequence[str]) -> Self:
        """Return a socket that receives frames in which another machine claims one of the addresses.

        They are ARP packets, or neighbour advertisements (packet_filter.claims). The addresses are literal,
        at least one, and all of one family.
        """
        receive = IPV6 if ":" in addresses[0] else ARP
        return cls(interface, receive=receive, program=_claims(addresses))

    def claim(self, addresses: Sequence[str]) -> None:
        """Receive `claims` for these addresses instead of the former ones; raises OSError."""
        packet_filter.attach(self._socket, _claims(addresses))

    def close(self) -> None:
        """Close the socket; another call is harmless."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._socket.fileno()

    def send(self, frame: bytes) -> None:
        """Send one frame; raises OSError: ENETDOWN or ENXIO without the interface, ENOBUFS when full."""
        self._socket.send(frame)

    def receive(self) -> list[bytes]:
        """Return the received frames, at most a few hundred.

        An interface that goes down is not an error here: links.Links reports it. A packet socket also
        receives this machine's own frames (PACKET_OUTGOING); they are left out.
        """
        arrived = []
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                try:
                    frame, (_name, _protocol, kind, *_rest) = self._socket.recvfrom(_FRAME)
                except OSError as error:
                    if error.errno == errno.ENETDOWN:
                        continue
                    raise
                if kind != socket.PACKET_OUTGOING:
                    arrived.append(frame)
        return arrived


def _claims(addresses: Sequence[str]) -> Program:
    family = socket.AF_INET6 if ":" in addresses[0] else socket.AF_INET
    return packet_filter.claims(addresses, family=family)
