"""The UDP sockets of reports between nodes: one receiver per family, and one sender per report.

A report that crossed a router is invalid: its hop limit is no longer 255 (RFC 5082). Received reports have
the index of their interface.
"""

import contextlib
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

GROUPS: Final = {4: "224.0.0.18", 6: "ff02::12"}
"""VRRP's multicast groups (RFC 9568 section 5.1), which switches with IGMP snooping forward."""

HOP_LIMIT: Final = 255

_MOST: Final = 2048  # bytes: more than a report has, to detect anything longer
_BUDGET: Final = 64  # datagrams of one turn
_FAMILIES: Final = {4: socket.AF_INET, 6: socket.AF_INET6}
_WORD: Final = struct.Struct("=i")
_INFO_4: Final = struct.Struct("=i4s4s")  # struct in_pktinfo
_INFO_6: Final = struct.Struct("=16sI")  # struct in6_pktinfo
_REQUEST_4: Final = struct.Struct("=4s4si")  # struct ip_mreqn
_REQUEST_6: Final = struct.Struct("=16sI")  # struct ipv6_mreq
_MEMBER: Final = {4: (socket.IPPROTO_IP, 35), 6: (socket.IPPROTO_IPV6, 20)}  # IP_, IPV6_ADD_MEMBERSHIP
_IP_PKTINFO: Final = 8  # linux/in.h, as the next one; Python has no names for them
_IP_RECVTTL: Final = 12
_SPACE: Final = socket.CMSG_SPACE(_INFO_6.size) + socket.CMSG_SPACE(_WORD.size)


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram:
    """One datagram, with its source address, interface and hop limit."""

    data: bytes
    source: str
    interface: int
    hop_limit: int


class ReportReceiver:
    """Receives the reports of one family at a port; raises OSError if the port is taken."""

    def __init__(self, family: int, port: int) -> None:
        self._family = family
        self._joined: set[int] = set()
        self._socket = socket.socket(_FAMILIES[family], socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        with contextlib.ExitStack() as undo:
            undo.callback(self._socket.close)
            if family == 4:
                self._socket.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)
                self._socket.setsockopt(socket.IPPROTO_IP, _IP_RECVTTL, 1)
            else:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVHOPLIMIT, 1)
            self._socket.bind(("", port))
            undo.pop_all()

    def fileno(self) -> int:
        """Return the descriptor, to wait for."""
        return self._socket.fileno()

    def join(self, interface: int) -> None:
        """Join the multicast group on an interface; harmless when repeated. Raises OSError."""
        if interface in self._joined:
            return
        group = socket.inet_pton(_FAMILIES[self._family], GROUPS[self._family])
        wanted = (
            _REQUEST_4.pack(group, bytes(4), interface)
            if self._family == 4
            else _REQUEST_6.pack(group, interface)
        )
        self._socket.setsockopt(*_MEMBER[self._family], wanted)
        self._joined.add(interface)

    def receive(self) -> Iterator[Datagram]:
        """Yield received datagrams, a limited number per turn."""
        for _ in range(_BUDGET):
            try:
                data, extra, _flags, (host, *_) = self._socket.recvmsg(_MOST, _SPACE)
            except OSError:  # nothing more, or an error of what was sent before
                return
            facts = {(level, kind): value for level, kind, value in extra}
            yield Datagram(
                data=data,
                source=str(host).partition("%")[0],
                interface=self._interface(facts),
                hop_limit=self._hop_limit(facts),
            )

    def close(self) -> None:
        """Close it; another call is harmless."""
        self._socket.close()

    def _interface(self, facts: dict[tuple[int, int], bytes]) -> int:
        if self._family == 4:
            found = facts.get((socket.IPPROTO_IP, _IP_PKTINFO))
            return int(_INFO_4.unpack(found)[0]) if found else 0
        found = facts.get((socket.IPPROTO_IPV6, socket.IPV6_PKTINFO))
        return int(_INFO_6.unpack(found)[1]) if found else 0

    def _hop_limit(self, facts: dict[tuple[int, int], bytes]) -> int:
        key = (
            (socket.IPPROTO_IP, socket.IP_TTL)
            if self._family == 4
            else (socket.IPPROTO_IPV6, socket.IPV6_HOPLIMIT)
        )
        found = facts.get(key)
        return int(_WORD.unpack(found)[0]) if found else 0


class ReportSender:
    """Sends a report to one address, or to all on an interface; raises OSError if unreachable."""

    def __init__(self, family: int, port: int, *, interface: int, peer: str | None) -> None:
        self._socket = socket.socket(_FAMILIES[family], socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        with contextlib.ExitStack() as undo:
            undo.callback(self._socket.close)
            host = peer or GROUPS[family]
            if family == 4:
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, HOP_LIMIT)
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_TTL, HOP_LIMIT)
                self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_MULTICAST_LOOP, 0)
                self._socket.setsockopt(
                    socket.IPPROTO_IP, socket.IP_MULTICAST_IF, _REQUEST_4.pack(bytes(4), bytes(4), interface)
                )
                self._socket.connect((host, port))
            else:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_UNICAST_HOPS, HOP_LIMIT)
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, HOP_LIMIT)
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_LOOP, 0)
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, interface)
                self._socket.connect((host, port, 0, interface if _is_of_link(host) else 0))
            undo.pop_all()

    @property
    def source(self) -> str:
        """Return the address that it sends from."""
        return str(self._socket.getsockname()[0]).partition("%")[0]

    def send(self, datagram: bytes) -> None:
        """Send it, and close the socket; raises OSError."""
        with self._socket:
            self._socket.send(datagram)

    def close(self) -> None:
        """Close it; another call is harmless."""
        self._socket.close()


def _is_of_link(host: str) -> bool:
    return host.lower().startswith(("fe80", "ff02"))
