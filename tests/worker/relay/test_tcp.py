"""Socket options reach the connections that they are for."""

import os
import socket
from collections import deque

import pytest

from appliance.model.snapshot.frontends import KeepAlive
from appliance.wire import sockaddr
from appliance.worker.relay import raw_sockets, tcp

pytestmark = pytest.mark.sockets


def _accepted(listener: socket.socket) -> tuple[socket.socket, socket.socket, bytes]:
    client = socket.create_connection(listener.getsockname()[:2], timeout=10)
    descriptor = raw_sockets.accept(listener.fileno())
    return client, socket.socket(fileno=descriptor), raw_sockets.peer()


def test_accepted_connection_is_ready_for_use(listener: socket.socket):
    """It does not block, is not inherited, has its listener's options, and its address is the client's."""
    tcp.set_options(listener.fileno(), tcp.options(KeepAlive(idle=9, interval=3, count=2), 7.5))
    client, server, raw = _accepted(listener)
    with client, server:
        assert not os.get_blocking(server.fileno())
        assert not os.get_inheritable(server.fileno())
        assert (sockaddr.host(raw), sockaddr.port(raw)) == client.getsockname()[:2]
        assert tcp.local_address(server.fileno()) == client.getpeername()[:2]
        options = [socket.TCP_NODELAY, socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT]
        assert [server.getsockopt(socket.IPPROTO_TCP, option) for option in options] == [1, 9, 3, 2]
        assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 7500
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1


def test_options_are_taken_back(listener: socket.socket):
    """A later configuration without keepalive leaves none behind."""
    tcp.set_options(listener.fileno(), tcp.options(KeepAlive(idle=9, interval=3, count=2), 7.5))
    tcp.set_options(listener.fileno(), tcp.NO_OPTIONS + tcp.options(None, None))
    client, server, _ = _accepted(listener)
    with client, server:
        assert server.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0
        assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 0
        assert server.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_refused_options_are_found_without_a_connection():
    """An option that the kernel does not take is told with its reason; the others are left."""
    wanted = tcp.options(KeepAlive(idle=43200, interval=3, count=2), 4e9)
    idle = (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 43200)
    timeout = (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 4_000_000_000_000)
    assert set(tcp.refused(wanted)) == {idle, timeout}
    assert tcp.accepted(wanted) == tuple(each for each in wanted if each not in {idle, timeout})


def test_unacknowledged_bytes_are_counted(listener: socket.socket):
    """What the peer's kernel has no room for stays with ours."""
    client, server, _ = _accepted(listener)
    with client, server:
        assert tcp.unacknowledged(server.fileno()) == 0
        with pytest.raises(BlockingIOError):
            deque((server.send(bytes(1 << 16)) for _ in range(1000)), maxlen=0)
        assert tcp.unacknowledged(server.fileno()) > 0
