"""Socket calls on raw descriptors do what the standard library's do on objects."""

import errno
import os
import resource
import socket

import pytest
from support.network.ports import free_port

from appliance.wire import literal, sockaddr
from appliance.worker.relay import raw_sockets

pytestmark = pytest.mark.sockets

_NO_DELAY = (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
_IMPOSSIBLE = (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 43200)


def _accepted(listener: socket.socket) -> tuple[socket.socket, socket.socket]:
    client = socket.create_connection(listener.getsockname()[:2], timeout=10)
    descriptor = raw_sockets.accept(listener.fileno())
    return client, socket.socket(fileno=descriptor)


def test_nothing_to_accept_is_an_errno(listener: socket.socket):
    """An empty queue and a bad descriptor are told by their negative errno, without an exception."""
    assert raw_sockets.accept(listener.fileno()) == -errno.EAGAIN
    assert raw_sockets.accept(-1) == -errno.EBADF


def test_end_and_reset_are_told_apart(listener: socket.socket):
    """A FIN is an end, a RST an error."""
    client, server = _accepted(listener)
    with client:
        raw_sockets.shutdown_write(server.fileno())
        assert client.recv(10) == b""
    server.close()
    client, server = _accepted(listener)
    with client:
        raw_sockets.reset(server.detach())
        with pytest.raises(ConnectionResetError):
            client.recv(10)
    raw_sockets.shutdown_write(-1)


def test_connected_socket_is_ready_for_use(listener: socket.socket):
    """It goes where it was told to, does not block, is not inherited and has its options."""
    fd = raw_sockets.connect(listener.getsockname()[:2], (_NO_DELAY,))
    with socket.socket(fileno=fd) as client:
        assert client.getpeername() == listener.getsockname()
        assert not os.get_blocking(fd)
        assert not os.get_inheritable(fd)
        assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_failed_connect_is_an_errno_and_leaves_no_descriptor(listener: socket.socket):
    """What the kernel refuses at once is told by a negative errno: option, address, one descriptor more."""
    address = listener.getsockname()[:2]
    before = os.listdir("/proc/self/fd")  # noqa: PTH208  # a directory of the kernel
    assert raw_sockets.connect(address, (_IMPOSSIBLE,)) == -errno.EINVAL
    assert raw_sockets.connect(("255.255.255.255", free_port()), ()) == -errno.ENETUNREACH
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limit[1]))
    try:
        assert raw_sockets.connect(address, ()) == -errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limit)
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208  # a directory of the kernel


def test_what_cannot_be_closed_is_an_error():
    """A descriptor that is closed twice is a bug, which must not pass in silence."""
    one, two = os.pipe()
    os.close(one)
    raw_sockets.close(two)
    for close in (raw_sockets.close, raw_sockets.reset):
        with pytest.raises(OSError, match="Bad file descriptor"):
            close(two)


def _other(listener: socket.socket) -> str:
    """Return an address of this machine of the listener's version of IP."""
    return "::1" if listener.family == socket.AF_INET6 else "127.0.0.9"


def _raw(address: str) -> bytes:
    return sockaddr.raw(literal.packed(address))


def test_a_connection_may_come_from_an_address(listener: socket.socket):
    """Address and port are those that it was told, and it is ready for use as any other one."""
    source, port = _other(listener), free_port()
    fd = raw_sockets.connect_from(listener.getsockname()[:2], (_NO_DELAY,), _raw(source), port)
    with socket.socket(fileno=fd) as client:
        seen = listener.accept()[1]
        assert seen[:2] == (source, port)
        assert raw_sockets.local(fd) == literal.packed(source)
        assert not os.get_blocking(fd)
        assert not os.get_inheritable(fd)
        assert client.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1


def test_a_source_that_is_not_to_be_had_is_an_errno(listener: socket.socket):
    """An address of another machine, a port in use, other failures: nothing is left open."""
    address, again = listener.getsockname()[:2], (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    source, port = _other(listener), free_port()
    foreign = "2001:db8::9" if ":" in source else "192.0.2.9"
    first = raw_sockets.connect_from(address, (again,), _raw(source), port)
    before = os.listdir("/proc/self/fd")  # noqa: PTH208  # a directory of the kernel
    assert raw_sockets.connect_from(address, (), _raw(foreign), 0) == -errno.EADDRNOTAVAIL
    assert raw_sockets.connect_from(address, (again,), _raw(source), port) == -errno.EADDRINUSE
    assert raw_sockets.connect_from(address, (_IMPOSSIBLE,), _raw(source), 0) == -errno.EINVAL
    assert raw_sockets.connect_from(("255.255.255.255", 9), (), _raw("127.0.0.9"), 0) == -errno.ENETUNREACH
    assert (
        raw_sockets.connect_from(address, (), _raw("127.0.0.9" if ":" in source else "::1"), 0)
        == -errno.EAFNOSUPPORT
    )
    assert os.listdir("/proc/self/fd") == before  # noqa: PTH208  # a directory of the kernel
    os.close(first)


def test_an_ipv4_client_of_an_ipv6_socket_came_by_ipv4():
    """Its address has 4 bytes, as that of any other one."""
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both:
        address = "127.0.0.9", both.getsockname()[1]
        with socket.create_connection(address, timeout=10), both.accept()[0] as server:
            assert raw_sockets.local(server.fileno()) == literal.packed("127.0.0.9")
