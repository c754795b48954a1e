"""Connections between two nodes are taken out of the kernel, and put into it again."""

import contextlib
import os
import socket
import subprocess
import sys
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


def test_the_options_of_a_socket_go_with_it():
    """Without keep-alive and user time-out a dead peer would hold a moved session for ever."""
    wanted = {
        (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE): 33,
        (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL): 11,
        (socket.IPPROTO_TCP, socket.TCP_KEEPCNT): 4,
        (socket.SOL_SOCKET, socket.SO_KEEPALIVE): 1,
        (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT): 44_000,
        (socket.IPPROTO_TCP, socket.TCP_NODELAY): 1,
        (socket.SOL_SOCKET, socket.SO_OOBINLINE): 1,
    }
    with _connection() as (mine, _, segment):
        for place, value in wanted.items():
            assert mine.getsockopt(*place) != value
            mine.setsockopt(*place, value)
        with _moved(mine, segment) as made:
            assert {place: made.getsockopt(*place) for place in wanted} == wanted


@pytest.mark.needs("setpriv")
def test_a_process_that_cannot_move_connections_knows_why(monkeypatch: pytest.MonkeyPatch):
    """It lacks the capability, or the kernel does not know the option."""
    assert tcp_repair.unsupported() == ""
    code = "from appliance.migrate import tcp_repair; print(tcp_repair.unsupported())"
    without = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", sys.executable, "-c", code]
    done = subprocess.run(without, check=True, capture_output=True, text=True)
    assert done.stdout.startswith("TCP_REPAIR is refused: ")
    assert "no CAP_NET_ADMIN" in done.stdout
    monkeypatch.setattr(tcp_repair, "_REPAIR", 9999)
    assert tcp_repair.unsupported() == "TCP_REPAIR: Protocol not available"
