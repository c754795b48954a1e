"""Ends connections that the kernel forwards: conntrack forgets them, and both ends are reset."""

import contextlib
import errno
import socket
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

import gevent

from appliance.core.forwarding.numbers import MARK
from appliance.net.closable import Closable
from appliance.net.netlink.conntrack import Conntrack, TrackedConnection
from appliance.wire.tcp_segment import bare_acknowledgement

_HEADER_INCLUDED: Final = 36  # IPV6_HDRINCL of linux/in6.h
_ANYWHERE: Final = 0x5F3C_1A77
"""A sequence number: it is hardly ever within a window, and if it is, the acknowledgement of 0 is not."""


class ChallengeAcks(Closable):
    """Makes both ends of a connection that this machine forwarded send, so that both learn that it is over.

    A reset needs the sequence number that its receiver expects (RFC 5961 section 3), which only the two ends
    have. But each end answers a segment outside its window with one that contains the expected number (RFC
    9293 section 3.10.7.4). That answer comes here, where the connection no longer exists, and gets a reset
    with exactly that number: from the rule for such packets (core.forwarding.ruleset), or from the kernel if
    it is for one of this machine's own addresses.

    The packets of its raw sockets have the mark `mark`; each is opened when it is first used.
    """

    def __init__(self, *, mark: int) -> None:
        self._mark = mark
        self._sockets: dict[int, socket.socket] = {}

    def close(self) -> None:
        """Close the sockets; another call is harmless."""
        for each in self._sockets.values():
            each.close()

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
            self._sockets[family] = _raw(family, self._mark)
        return self._sockets[family]


def _raw(family: int, mark: int) -> socket.socket:
    made = socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, mark)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, _HEADER_INCLUDED, 1)
    except OSError:
        made.close()
        raise
    return made


_WHOLE: Final = 0xFFFFFFFF
_TRIES: Final = 40  # attempts to delete what leaves a flowtable
_PAUSE: Final = 0.05  # seconds between two of them
_AT_ONCE: Final = 256  # connections after which others get their turn


def end_connections(owners: Mapping[int, str], *, but: frozenset[str] = frozenset()) -> Mapping[str, int]:
    """End the connections of servers with these numbers; return how many were open, by owner. Raises OSError.

    Those to the addresses `but` are other nodes'. The kernel walks all of conntrack for each query, so it is
    read once for all servers.
    """
    found: dict[int, list[TrackedConnection]] = {}
    with contextlib.closing(Conntrack()) as conntrack:
        for each in conntrack.connections(*_all_of(owners), but=but):
            if each.mark ^ MARK in owners:
                found.setdefault(each.mark, []).append(each)
        for mark in sorted(found):
            if but:
                _forget_each(conntrack, found[mark])
            else:
                forget(conntrack, mark, _WHOLE, offloaded=any(each.offloaded for each in found[mark]))
            gevent.sleep(0)
    ended = dict.fromkeys(owners.values(), 0)
    with ChallengeAcks(mark=MARK) as acks:
        for mark in sorted(found):
            ended[owners[mark ^ MARK]] += _reset(acks, [each for each in found[mark] if each.open])
            gevent.sleep(0)
    return ended


def end_each(connections: Sequence[TrackedConnection]) -> int:
    """End these connections; return how many still existed. Raises OSError."""
    there: list[TrackedConnection] = []
    with contextlib.closing(Conntrack()) as conntrack:
        for count, each in enumerate(connections, 1):
            if _forgotten(conntrack, each):
                there.append(each)
            if not count % _AT_ONCE:
                gevent.sleep(0)
    with ChallengeAcks(mark=MARK) as acks:
        _reset(acks, [each for each in there if each.open])
    return len(there)


def _forget_each(conntrack: Conntrack, connections: Iterable[TrackedConnection]) -> None:
    for count, each in enumerate(connections, 1):
        _forgotten(conntrack, each)
        if not count % _AT_ONCE:
            gevent.sleep(0)


def _forgotten(conntrack: Conntrack, connection: TrackedConnection) -> bool:
    """Make conntrack forget one connection, which may be leaving a flowtable. Raises OSError."""
    for _ in range(_TRIES if connection.offloaded else 0):
        try:
            return conntrack.forget(connection)
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        gevent.sleep(_PAUSE)
    return conntrack.forget(connection)


def forget(conntrack: Conntrack, mark: int, mask: int, *, offloaded: bool) -> None:
    """Make conntrack forget connections; some may be leaving a flowtable. Raises OSError.

    Some kernels do not delete a connection that is in a flowtable (ctnetlink_flush_iterate of Linux 4.16 to
    6.5, for example), and a removed flowtable is emptied a moment later.
    """
    conntrack.delete(mark, mask)
    for _ in range(_TRIES if offloaded else 0):
        if not any(each.offloaded for each in conntrack.connections(mark, mask)):
            break
        gevent.sleep(_PAUSE)
        conntrack.delete(mark, mask)


def _all_of(numbers: Iterable[int]) -> tuple[int, int]:
    """Return a mark, and the mask of the bits that all these numbers share."""
    first, *others = numbers
    mask = _WHOLE
    for each in others:
        mask &= ~(each ^ first)
    return MARK | first, mask


def _reset(acks: ChallengeAcks, connections: Collection[TrackedConnection]) -> int:
    """Make both ends of each connection send, which resets them; return their number. Raises OSError."""
    for count, each in enumerate(connections, 1):
        client, server = each.client, each.server
        acks.open_for(client.source)
        with contextlib.suppress(OSError):  # one end cannot be reached: the other end matters as much
            acks.provoke((client.destination, client.destination_port), (client.source, client.source_port))
        with contextlib.suppress(OSError):
            acks.provoke((server.destination, server.destination_port), (server.source, server.source_port))
        if not count % _AT_ONCE:
            gevent.sleep(0)
    return len(connections)
