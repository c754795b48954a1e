"""Connections of one address, as the kernel lists sockets: real ones, of both families."""

import contextlib
import socket
from collections.abc import Iterator

import pytest
from support.processes.waiting import wait_until

from appliance.net.netlink.socket_connections import SocketConnections

pytestmark = pytest.mark.sockets

_ADDRESS = "127.0.77.1"
_CLIENT = "127.0.77.2"


@contextlib.contextmanager
def _connected(listener: socket.socket, source: str) -> Iterator[int]:
    """Connect from an address to the listener's, and give the client's port."""
    to = (_ADDRESS, listener.getsockname()[1])
    with socket.create_connection(to, source_address=(source, 0), timeout=10) as client:
        taken, _ = listener.accept()
        with taken:
            yield client.getsockname()[1]


@pytest.mark.promise("kernel", "lists of sockets (netlink)")
@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_connections_of_others_are_listed_and_counted(family: socket.AddressFamily):
    """Those that another address has begun, whatever family the listener is of; a closed one is gone."""
    host = _ADDRESS if family == socket.AF_INET else "::"
    dual = {"dualstack_ipv6": True} if family == socket.AF_INET6 else {}
    with socket.create_server((host, 0), family=family, **dual) as listener:
        port = listener.getsockname()[1]
        found = SocketConnections()
        with contextlib.closing(found):
            assert (found.at(_ADDRESS), found.count(_ADDRESS)) == ((), 0)
            with _connected(listener, _CLIENT) as client, _connected(listener, _ADDRESS):
                (one,) = found.at(_ADDRESS)
                assert (one.client, one.client_port, one.address, one.port) == (
                    _CLIENT,
                    client,
                    _ADDRESS,
                    port,
                )
                assert found.count(_ADDRESS) == 1
                assert found.count("::1") == 0
            wait_until(lambda: found.count(_ADDRESS) == 0, what="the kernel has ended them")


def test_many_are_counted():
    """More than the kernel tells in one message."""
    with socket.create_server((_ADDRESS, 0), backlog=500) as listener, contextlib.ExitStack() as stack:
        for _ in range(500):
            stack.enter_context(_connected(listener, _CLIENT))
        with contextlib.closing(SocketConnections()) as found:
            assert len(found.at(_ADDRESS)) == found.count(_ADDRESS) == 500
