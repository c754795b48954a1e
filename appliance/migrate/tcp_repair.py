"""TCP_REPAIR: takes a connection out of one kernel, and puts it into another one (linux/tcp.h).

A socket in this mode sends nothing, and can be closed without its peer noticing. It needs CAP_NET_ADMIN, and
a kernel with CONFIG_CHECKPOINT_RESTORE. Packets of the connection must be held back meanwhile, by both
kernels: one without the socket would answer with a reset.
"""

import errno
import fcntl
import socket
import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from appliance.wire.tcp_state import MOST_QUEUED, WINDOW, Place, TcpState

OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY),
    (socket.SOL_SOCKET, socket.SO_OOBINLINE),
)
"""Options of a socket that go with it. Keep-alive starts with the times set by then."""

_TCP: Final = socket.IPPROTO_TCP
_REPAIR, _QUEUE, _SEQUENCE, _NEGOTIATED, _TIMESTAMP, _WINDOW = 19, 20, 21, 22, 24, 29  # TCP_REPAIR, ...
_ON, _OFF, _OFF_SILENTLY = 1, 0, -1  # the last one sends no window probe
_NO_QUEUE, _RECEIVED, _SENT = 0, 1, 2
_OPTION: Final = struct.Struct("=II")  # struct tcp_repair_opt
_MSS, _SCALE, _SACK, _STAMPS = 2, 3, 4, 8  # TCPOPT_...
_HAS_STAMPS, _HAS_SACK, _HAS_SCALE = 1, 2, 4  # TCPI_OPT_...
_INFO: Final = 8  # the first bytes of struct tcp_info
_ESTABLISHED, _FIN_WAIT1, _FIN_WAIT2, _CLOSE_WAIT, _LAST_ACK, _CLOSING = 1, 4, 5, 8, 9, 11
_SHUT: Final = frozenset({_FIN_WAIT1, _FIN_WAIT2, _LAST_ACK, _CLOSING})
_PEER_SHUT: Final = frozenset({_CLOSE_WAIT, _LAST_ACK, _CLOSING})
_FIN_UNACKNOWLEDGED: Final = frozenset({_FIN_WAIT1, _LAST_ACK, _CLOSING})
_UNREAD, _UNACKNOWLEDGED, _UNSENT = 0x541B, 0x5411, 0x894B  # SIOCINQ, SIOCOUTQ, SIOCOUTQNSD
_SEND_FORCE, _RECEIVE_FORCE, _BUFFER_LOCK = 32, 33, 72  # SO_SNDBUFFORCE, SO_RCVBUFFORCE, SO_BUF_LOCK
_ORDINARY: Final = 1 << 19
_FREE_BIND, _FREE_BIND6 = 15, 78  # IP_FREEBIND, IPV6_FREEBIND
_PIECE: Final = 1 << 15
TOO_MUCH: Final = "too many bytes wait in its queues"
_LEAST_MSS, _MOST_MSS = 88, 32767  # TCP_MIN_MSS, MAX_TCP_WINDOW


class CannotMove(Exception):  # noqa: N818  # a state of the connection, not a mistake
    """Why a connection stays where it is."""


def unsupported() -> str:
    """Return why this process cannot move connections on this kernel, "" if it can."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        try:
            trial.setsockopt(_TCP, _REPAIR, _ON)
        except OSError as error:
            if error.errno == errno.EPERM:
                return (
                    "TCP_REPAIR is refused: a kernel without CONFIG_CHECKPOINT_RESTORE, or no CAP_NET_ADMIN"
                )
            return f"TCP_REPAIR: {error.strerror}"
    return ""


def state_of(connection: socket.socket) -> tuple[TcpState, bool]:
    """Return the state of a connection whose packets are held back, and whether its peer has sent FIN.

    The connection continues to exist as it was. Raises CannotMove and OSError.
    """
    with _repaired(connection):
        info = connection.getsockopt(_TCP, socket.TCP_INFO, _INFO)
        phase, negotiated, scales = info[0], info[5], info[6]
        if phase not in (_ESTABLISHED, *_SHUT, *_PEER_SHUT):
            raise CannotMove("it is not connected")
        shut, fin = phase in _SHUT, phase in _FIN_UNACKNOWLEDGED
        received, received_next = _queue(connection, _RECEIVED, _count(connection, _UNREAD))
        unsent = _count(connection, _UNSENT)
        waiting = _count(connection, _UNACKNOWLEDGED) - fin
        sent, sent_next = _queue(connection, _SENT, waiting)
        behind = max(0, unsent - fin)
        state = TcpState(
            local=_place(connection.getsockname()),
            peer=_place(connection.getpeername()),
            ipv6=connection.family == socket.AF_INET6,
            mss=connection.getsockopt(_TCP, socket.TCP_MAXSEG),
            scales=(scales & 15, scales >> 4) if negotiated & _HAS_SCALE else None,
            sack=bool(negotiated & _HAS_SACK),
            timestamp=_word(connection.getsockopt(_TCP, _TIMESTAMP)) if negotiated & _HAS_STAMPS else None,
            received=received,
            received_next=received_next,
            sent=sent[: len(sent) - behind],
            unsent=sent[len(sent) - behind :],
            sent_next=_word(sent_next - shut),
            shut=shut,
            window=connection.getsockopt(_TCP, _WINDOW, WINDOW),
            options=tuple(connection.getsockopt(*each) for each in OPTIONS),
        )
        return state, phase in _PEER_SHUT


def restored(state: TcpState) -> socket.socket:
    """Return a socket in repair mode that has the state; `release` lets it send. Raises OSError."""
    connection = socket.socket(
        socket.AF_INET6 if state.ipv6 else socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK
    )
    try:
        _restore(connection, state)
    except BaseException:
        connection.close()
        raise
    return connection


def release(connection: socket.socket, state: TcpState) -> None:
    """Let a restored connection send: first a window probe, whose answer shows what the peer has."""
    connection.setsockopt(_TCP, _REPAIR, _OFF)
    _share_port(connection)
    left = memoryview(state.unsent)
    while left:
        left = left[connection.send(left) :]
    if state.shut and state.unsent:
        connection.shutdown(socket.SHUT_WR)
    connection.setsockopt(socket.SOL_SOCKET, _SEND_FORCE, _ORDINARY)
    _unlock_buffers(connection)


def reset_if_lost(connection: socket.socket, *, wanted: bool) -> None:
    """Have the end of this process reset the connection: a FIN would mean that the peer has all data."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", wanted, 0))


def close_silently(connection: socket.socket) -> None:
    """Close a connection that another kernel continues; if it has ended here, there is nothing to do."""
    try:
        connection.setsockopt(_TCP, _REPAIR, _ON)
    except OSError:  # reset meanwhile: nothing would be sent
        pass
    finally:
        connection.close()


def _restore(connection: socket.socket, state: TcpState) -> None:
    connection.setsockopt(_TCP, _REPAIR, _ON)
    # The address may be on its way to this node.
    connection.setsockopt(
        *((socket.IPPROTO_IPV6, _FREE_BIND6) if state.ipv6 else (socket.IPPROTO_IP, _FREE_BIND)), 1
    )
    # The kernel doubles these sizes, and counts its own overhead. A larger buffer would grow with each move.
    received, sent = len(state.received), len(state.sent) + len(state.unsent)
    if received > _PIECE:
        connection.setsockopt(socket.SOL_SOCKET, _RECEIVE_FORCE, received // 2 + received // 32 + _PIECE)
    if sent > _PIECE:
        connection.setsockopt(socket.SOL_SOCKET, _SEND_FORCE, sent // 2 + sent // 8 + _ORDINARY)
    if _LEAST_MSS <= state.mss <= _MOST_MSS:
        # The size of segments is computed in connect: from 536 bytes (RFC 9293, 3.7.1) without this.
        connection.setsockopt(_TCP, socket.TCP_MAXSEG, state.mss)
    connection.bind((state.local.host, state.local.port))
    _begin(connection, _RECEIVED, state.received_next - len(state.received))
    _begin(connection, _SENT, state.sent_next - len(state.unsent) - len(state.sent))
    connection.connect((state.peer.host, state.peer.port))
    connection.setsockopt(_TCP, _NEGOTIATED, _negotiated(state))
    if state.timestamp is not None:
        connection.setsockopt(_TCP, _TIMESTAMP, _signed(state.timestamp))
    _fill(connection, _RECEIVED, state.received)
    _fill(connection, _SENT, state.sent)
    if state.shut and not state.unsent:
        connection.shutdown(socket.SHUT_WR)  # in this mode only counted as sent
    connection.setsockopt(_TCP, _QUEUE, _NO_QUEUE)
    connection.setsockopt(_TCP, _WINDOW, state.window)
    for place, value in zip(OPTIONS, state.options, strict=False):
        if value:
            connection.setsockopt(*place, value)
    _unlock_buffers(connection)


@contextmanager
def _repaired(connection: socket.socket) -> Iterator[None]:
    connection.setsockopt(_TCP, _REPAIR, _ON)
    try:
        yield
    finally:
        connection.setsockopt(_TCP, _QUEUE, _NO_QUEUE)
        connection.setsockopt(_TCP, _REPAIR, _OFF_SILENTLY)
        _share_port(connection)


def _share_port(connection: socket.socket) -> None:
    """Let listeners of later workers bind the port: the end of the mode takes that away (SK_NO_REUSE)."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)


def _queue(connection: socket.socket, queue: int, size: int) -> tuple[bytes, int]:
    """Return the bytes of a queue, and the sequence number after it."""
    if size > MOST_QUEUED:
        raise CannotMove(TOO_MUCH)
    connection.setsockopt(_TCP, _QUEUE, queue)
    after = _word(connection.getsockopt(_TCP, _SEQUENCE))
    data = connection.recv(size, socket.MSG_PEEK | socket.MSG_DONTWAIT) if size > 0 else b""
    if len(data) != max(size, 0):
        raise CannotMove("its queue cannot be read")
    return data, after


def _begin(connection: socket.socket, queue: int, sequence: int) -> None:
    connection.setsockopt(_TCP, _QUEUE, queue)
    connection.setsockopt(_TCP, _SEQUENCE, _signed(_word(sequence)))


def _fill(connection: socket.socket, queue: int, data: bytes) -> None:
    connection.setsockopt(_TCP, _QUEUE, queue)
    left = memoryview(data)
    while left:
        left = left[connection.send(left[:_PIECE]) :]


def _negotiated(state: TcpState) -> bytes:
    found = [_OPTION.pack(_MSS, state.mss)]
    if state.scales is not None:
        found.append(_OPTION.pack(_SCALE, state.scales[0] | state.scales[1] << 16))
    if state.sack:
        found.append(_OPTION.pack(_SACK, 0))
    if state.timestamp is not None:
        found.append(_OPTION.pack(_STAMPS, 0))
    return b"".join(found)


def _unlock_buffers(connection: socket.socket) -> None:
    """Let the kernel size the buffers again, where it can (Linux 5.15)."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, _BUFFER_LOCK, 0)
    except OSError as error:
        if error.errno != errno.ENOPROTOOPT:
            raise


def _count(connection: socket.socket, request: int) -> int:
    return int.from_bytes(fcntl.ioctl(connection.fileno(), request, bytes(4)), sys.byteorder)


def _place(name: tuple[str, int]) -> Place:
    return Place(name[0].partition("%")[0], name[1])


def _word(value: int) -> int:
    return value & 0xFFFFFFFF


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value
