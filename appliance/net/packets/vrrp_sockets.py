"""Non-blocking raw sockets that send and receive VRRP on one interface (raw(7), ip(7), ipv6(7)).

A socket stays with its interface: a recreated one of the same name needs a new socket.
"""

import contextlib
import socket
import struct
import sys
from dataclasses import dataclass
from typing import Final, Literal

from appliance.net.closable import Closable
from appliance.net.netlink import netlink
from appliance.net.packets import packet_filter
from appliance.wire import literal
from appliance.wire.vrrp import ipv4_header
from appliance.wire.vrrp.advertisement import PROTOCOL, VrrpError

TTL: Final = 255
"""TTL or hop limit of every packet (RFC 9568 sections 5.1.1.3 and 5.1.2.3): routers would lower it."""

_PRIORITY: Final = 7  # TC_PRIO_CONTROL of linux/pkt_sched.h
_CONTROL_TRAFFIC: Final = 0xC0  # DSCP CS6, network control (RFC 4594 section 3.1)
_RECEIVE_BUFFER: Final = 1 << 20
_PACKET: Final = 65536
_AT_ONCE: Final = 256
_DRAINED: Final = 16  # multiple
_ANCILLARY: Final = 128

# Missing in the socket module (linux/in.h, linux/in6.h).
_IP_PKTINFO: Final = 8
_IP_TRANSPARENT: Final = 19
_IP_MULTICAST_ALL: Final = 49
_IPV6_TRANSPARENT: Final = 75

Ancillary = tuple[tuple[int, int, bytes], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Datagram:
    """One received packet: literal addresses without scope, TTL or hop limit, what follows the IP header."""

    source: str
    destination: str
    ttl: int
    payload: bytes


class VrrpSocket(Closable):
    """Sends from `source` and receives for one virtual router, on one interface and in one family.

    With a `group` it joins this multicast group; None is unicast. With a `router_id` the kernel drops the
    advertisements of other virtual routers; None receives all. Raises OSError: ENODEV or ENXIO without the
    interface, EPERM without CAP_NET_RAW.
    """

    def __init__(
        self,
        interface: str,
        *,
        family: Literal[4, 6],
        source: str,
        group: str | None,
        router_id: int | None = None,
    ) -> None:
        self.interface = interface
        self.index = socket.if_nametoindex(interface)
        self._family = socket.AF_INET if family == 4 else socket.AF_INET6
        self._group = group
        self._from = _source(self._family, source, self.index)
        self._socket = socket.socket(self._family, socket.SOCK_RAW | socket.SOCK_NONBLOCK, PROTOCOL)
        try:
            self._prepare(group, router_id)
        except OSError:
            self._socket.close()
            raise

    def close(self) -> None:
        """Close the socket, which leaves the group; another call is harmless."""
        self._socket.close()

    def fileno(self) -> int:
        """Return the descriptor to wait for."""
        return self._socket.fileno()

    def send(self, payload: bytes, destination: str) -> None:
        """Send one packet with TTL 255, even from a source that the interface has lost.

        Raises OSError: ENETDOWN, ENODEV or ENETUNREACH while the interface is away, EPERM for a packet
        filter's veto, BlockingIOError or ENOBUFS for a full queue.
        """
        address = (destination, 0) if self._family == socket.AF_INET else (destination, 0, 0, self.index)
        self._socket.sendmsg([payload], self._from, 0, address)

    def receive(self) -> list[Datagram]:
        """Return what has arrived, at most a few hundred packets; raises OSError for a broken socket."""
        arrived = []
        with contextlib.suppress(BlockingIOError):
            for _ in range(_AT_ONCE):
                datagram = self._receive_one()
                if datagram is not None:
                    arrived.append(datagram)
        return arrived

    def _prepare(self, group: str | None, router_id: int | None) -> None:
        if router_id is not None:
            packet_filter.attach(self._socket, packet_filter.router_id(router_id, family=self._family))
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, self.interface.encode() + b"\0")
        netlink.enlarge(self._socket, _RECEIVE_BUFFER)
        if self._family == socket.AF_INET:
            _set_4(self._socket)
        else:
            _set_6(self._socket, self.index)
        # After the traffic class: the kernel derives a priority from IP_TOS (ip(7)) and would overwrite this.
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY, _PRIORITY)
        if group is not None:
            self._join(group)
        # Between socket(2) and SO_BINDTODEVICE packets of all interfaces may have arrived. The number of
        # reads is limited, because in a flood this would never end.
        for _ in range(_DRAINED):
            if not self.receive():
                break

    def _join(self, group: str) -> None:
        packed = literal.packed(group)
        if self._family == socket.AF_INET:
            member = packed + struct.pack("=4xi", self.index)
            self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, member)
            return
        member = packed + struct.pack("=I", self.index)
        self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, member)

    def _receive_one(self) -> Datagram | None:
        if self._family == socket.AF_INET6:
            datagram = _datagram_6(*self._socket.recvmsg(_PACKET, _ANCILLARY))
            # A raw IPv6 socket gets packets of every group that any process of this machine has joined.
            return datagram if datagram.destination == self._group or not _is_group(datagram) else None
        with contextlib.suppress(VrrpError):
            header = ipv4_header.decode(self._socket.recv(_PACKET))
            return Datagram(
                source=header.source, destination=header.destination, ttl=header.ttl, payload=header.payload
            )
        return None


def _source(family: int, source: str, index: int) -> Ancillary:
    """Return the ancillary data that sets a packet's interface and source, bound or not."""
    packed = literal.packed(source)
    if family == socket.AF_INET:
        return ((socket.IPPROTO_IP, _IP_PKTINFO, struct.pack("=i4s4x", index, packed)),)
    return ((socket.IPPROTO_IPV6, socket.IPV6_PKTINFO, struct.pack("=16sI", packed, index)),)


def _set_4(raw: socket.socket) -> None:
    for option, value in (
        (socket.IP_TTL, TTL),
        (socket.IP_MULTICAST_TTL, TTL),
        (socket.IP_MULTICAST_LOOP, 0),
        # Otherwise a socket gets packets of every group that any process of this machine has joined (ip(7)).
        (_IP_MULTICAST_ALL, 0),
        # IP_TRANSPARENT allows sending from an address that the interface has lost: a router whose source
        # address was removed must still advertise priority 0. There is no route then either, and for a socket
        # bound to an interface the kernel treats every destination as a neighbour on it.
        (_IP_TRANSPARENT, 1),
        (socket.IP_TOS, _CONTROL_TRAFFIC),
    ):
        raw.setsockopt(socket.IPPROTO_IP, option, value)


def _set_6(raw: socket.socket, index: int) -> None:
    for option, value in (
        (socket.IPV6_UNICAST_HOPS, TTL),
        (socket.IPV6_MULTICAST_HOPS, TTL),
        (socket.IPV6_MULTICAST_LOOP, 0),
        (socket.IPV6_MULTICAST_IF, index),
        (socket.IPV6_TCLASS, _CONTROL_TRAFFIC),
        # -1: the kernel leaves the checksum alone. Our encoder has already computed it, including the HMAC
        # trailer.
        (socket.IPV6_CHECKSUM, -1),
        (socket.IPV6_RECVHOPLIMIT, 1),
        (socket.IPV6_RECVPKTINFO, 1),
        (_IPV6_TRANSPARENT, 1),  # as for IPv4
    ):
        raw.setsockopt(socket.IPPROTO_IPV6, option, value)


def _is_group(datagram: Datagram) -> bool:
    return datagram.destination.startswith("ff")


def _datagram_6(
    payload: bytes, ancillary: list[tuple[int, int, bytes]], _flags: int, address: tuple[str, int, int, int]
) -> Datagram:
    found = {kind: data for level, kind, data in ancillary if level == socket.IPPROTO_IPV6}
    return Datagram(
        source=address[0].partition("%")[0],
        destination=socket.inet_ntop(socket.AF_INET6, found[socket.IPV6_PKTINFO][:16]),
        ttl=int.from_bytes(found[socket.IPV6_HOPLIMIT], sys.byteorder),
        payload=payload,
    )
