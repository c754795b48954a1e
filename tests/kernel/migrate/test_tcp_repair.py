"""Connections between two nodes are taken out of the kernel, and put into it again."""

import contextlib
import os
import socket
from collections.abc import Iterator

import pytest
from support.network.namespaces import Segment

from appliance.migrate import tcp_repair

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", root=True)]

_SECONDS = 10.0
_PORT = 7001


@contextlib.contextmanager
def _connection() -> Iterator[tuple[socket.socket, socket.socket, Segment]]:
    """Give both ends of a connection, and the segment."""
    with Segment() as segment, contextlib.ExitStack() as stack:
        here, there = segment.node("here"), segment.node("there")
        with there.inside():
            listener = stack.enter_context(socket.create_server(("", _PORT)))
        with here.inside():
            mine = stack.enter_context(socket.create_connection((there.address, _PORT), timeout=_SECONDS))
        theirs = stack.enter_context(listener.accept()[0])
        theirs.settimeout(_SECONDS)
        yield mine, theirs, segment


def _moved(connection: socket.socket, segment: Segment) -> socket.socket:
    """Close a connection silently, and return it restored."""
    state, _ = tcp_repair.state_of(connection)
    tcp_repair.close_silently(connection)
    with segment.nodes["here"].inside():
        made = tcp_repair.restored(state)
    tcp_repair.release(made, state)
    made.setblocking(True)  # noqa: FBT003  # the standard library's signature
    made.settimeout(_SECONDS)
    return made


def test_a_restored_connection_sends_segments_of_the_same_size():
    """The kernel would send 536 bytes at most, and need three times the packets."""
    with _connection() as (mine, theirs, segment):
        before = mine.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        with _moved(mine, segment) as made:
            assert before == made.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG) > 1400
            data = os.urandom(100_000)
            made.sendall(data)
            received = bytearray()
            while len(received) < len(data):
                received += theirs.recv(65536)
            assert received == data


def test_unread_bytes_and_those_that_the_peer_has_not_read():
    """Both queues go with it, and later bytes follow them."""
    with _connection() as (mine, theirs, segment):
        theirs.sendall(b"unread ")
        mine.sendall(b"sent ")
        assert mine.recv(3, socket.MSG_PEEK) == b"unr"
        with _moved(mine, segment) as made:
            theirs.sendall(b"later")
            made.sendall(b"more")
            assert made.recv(7, socket.MSG_PEEK) == b"unread "
            made.shutdown(socket.SHUT_WR)
            assert b"".join(iter(lambda: theirs.recv(100), b"")) == b"sent more"
            theirs.shutdown(socket.SHUT_WR)
            assert b"".join(iter(lambda: made.recv(100), b"")) == b"unread later"


def test_the_end_of_the_peer_is_reported():
    """FIN is reported beside the bytes before it, which are not read."""
    with _connection() as (mine, theirs, _):
        assert not tcp_repair.state_of(mine)[1]
        theirs.sendall(b"last")
        theirs.shutdown(socket.SHUT_WR)
        assert mine.recv(100, socket.MSG_PEEK | socket.MSG_WAITALL) == b"last"
        state, ended = tcp_repair.state_of(mine)
        assert (state.received, ended) == (b"last", True)
        assert mine.recv(100) == b"last"
