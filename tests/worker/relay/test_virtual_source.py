"""Connects from virtual IPs: the address and port that a server sees, and what happens without any."""

import socket
from collections.abc import Iterator
from contextlib import ExitStack
from errno import EADDRINUSE, EADDRNOTAVAIL
from pathlib import Path

import pytest
from support.worker.lone_sessions import LoneSessions

from appliance.model.end_reasons import EndReason
from appliance.model.snapshot.pools import SourceAddress
from appliance.wire import literal, sockaddr
from appliance.worker.relay import raw_sockets
from appliance.worker.relay.virtual_source import VirtualSource, within_kernels_ports

pytestmark = pytest.mark.sockets

VIRTUAL_IP = "127.0.0.9"
ELSEWHERE = "192.0.2.9"
KERNELS = tuple(map(int, Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()))
INSIDE = (KERNELS[1] - 99, KERNELS[1])
OUTSIDE = (KERNELS[0] - 99, KERNELS[0])


class _Site:
    """A client that has come by an address, and a server on 127.0.0.1 or another one."""

    def __init__(self, stack: ExitStack, came_by: str, server: str) -> None:
        self._stack = stack
        entrance = self._listen(came_by)
        stack.enter_context(socket.create_connection(entrance.getsockname()[:2], timeout=10))
        self.client, _ = entrance.accept()
        stack.enter_context(self.client)
        self.server = self._listen(server)
        self.address: tuple[str, int] = self.server.getsockname()[:2]
        self.failures: list[tuple[str, int]] = []

    def _listen(self, host: str) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        dual = host == "::"
        return self._stack.enter_context(socket.create_server((host, 0), family=family, dualstack_ipv6=dual))

    def source(self, ports: tuple[int, int], *virtual_ips: str) -> VirtualSource:
        """Return the source of a pool."""
        return VirtualSource(
            virtual_ips or (VIRTUAL_IP,),
            ports,
            (),
            lambda address, code: self.failures.append((address, code)),
        )

    def seen(self, source: VirtualSource) -> tuple[str, int]:
        """Return the address and the port that the server sees of a connect, which stays open."""
        fd = source.connect(self.client.fileno(), self.address)
        assert fd >= 0
        self._stack.enter_context(socket.socket(fileno=fd))
        connection, peer = self.server.accept()
        self._stack.enter_context(connection)
        return peer[0], peer[1]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    """Give a stack for sockets."""
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize("ports", [INSIDE, OUTSIDE], ids=["kernel", "here"])
def test_server_sees_the_virtual_ip(stack: ExitStack, ports: tuple[int, int]):
    """The port is one of the pool's, whoever chooses it, and each connection has its own."""
    site = _Site(stack, VIRTUAL_IP, "127.0.0.1")
    source = site.source(ports)

    found = [site.seen(source) for _ in range(20)]

    assert {host for host, _ in found} == {VIRTUAL_IP}
    assert all(ports[0] <= port <= ports[1] for _, port in found)
    assert (len(set(found)), site.failures) == (20, [])


def test_both_versions_of_ip(stack: ExitStack):
    """Over IPv6 it is the same; a client of a socket for both versions is one of its own version."""
    six = _Site(stack, "::1", "::1")
    assert six.seen(six.source(INSIDE, "::1"))[1] in range(INSIDE[0], INSIDE[1] + 1)
    mapped = _Site(stack, "127.0.0.1", "127.0.0.1")
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as both:
        stack.enter_context(socket.create_connection((VIRTUAL_IP, both.getsockname()[1]), timeout=10))
        mapped.client = stack.enter_context(both.accept()[0])
    assert mapped.seen(mapped.source(INSIDE))[0] == VIRTUAL_IP


@pytest.mark.parametrize(
    ("came_by", "server", "virtual_ips"),
    [
        ("127.0.0.1", "127.0.0.1", (VIRTUAL_IP,)),
        (VIRTUAL_IP, "::1", (VIRTUAL_IP,)),
        ("::1", "127.0.0.1", ("::1",)),
    ],
    ids=["another address", "server of IPv6", "server of IPv4"],
)
def test_others_connect_from_the_node(
    stack: ExitStack, came_by: str, server: str, virtual_ips: tuple[str, ...]
):
    """A client of another address, and a server of the other version of IP: no failure, and no bind."""
    site = _Site(stack, came_by, server)

    host, port = site.seen(site.source((2000, 2009), *virtual_ips))

    assert host == server
    assert port > 2009
    assert site.failures == []


@pytest.mark.parametrize("at", [KERNELS[1], KERNELS[0] - 1], ids=["kernel", "here"])
def test_without_a_free_port_it_is_the_node(stack: ExitStack, at: int):
    """The only port is taken by the first connection; the second one is made, and told."""
    site = _Site(stack, VIRTUAL_IP, "127.0.0.1")
    source = site.source((at, at))

    assert site.seen(source) == (VIRTUAL_IP, at)
    assert site.seen(source)[0] == "127.0.0.1"
    assert site.failures == [(VIRTUAL_IP, EADDRINUSE)]


def test_a_free_port_is_found_again(stack: ExitStack):
    """Not at once: for some connects nothing is looked for at that server, as looking takes long."""
    site = _Site(stack, VIRTUAL_IP, "127.0.0.1")
    source = site.source((KERNELS[1], KERNELS[1]))
    first = source.connect(site.client.fileno(), site.address)
    site.server.accept()[0].close()
    assert site.seen(source)[0] == "127.0.0.1"

    raw_sockets.reset(first)
    seen = [site.seen(source)[0] for _ in range(18)]

    assert seen == ["127.0.0.1"] * 16 + [VIRTUAL_IP, "127.0.0.1"]
    assert site.failures == [(VIRTUAL_IP, EADDRINUSE)] * 18


@pytest.mark.parametrize("at", [KERNELS[1], KERNELS[0] - 1], ids=["kernel", "here"])
def test_another_server_has_all_ports_again(stack: ExitStack, at: int):
    """A port is taken for one server's address only."""
    one, two = (_Site(stack, VIRTUAL_IP, "127.0.0.1") for _ in range(2))

    assert [each.seen(each.source((at, at))) for each in (one, two)] == [(VIRTUAL_IP, at)] * 2


@pytest.mark.parametrize("ports", [INSIDE, OUTSIDE], ids=["kernel", "here"])
def test_from_an_address_that_has_left_it_is_the_node(
    stack: ExitStack, ports: tuple[int, int], monkeypatch: pytest.MonkeyPatch
):
    """The client is served, and the failure told once, without a second try."""
    site = _Site(stack, VIRTUAL_IP, "127.0.0.1")
    source = site.source(ports)
    elsewhere = sockaddr.raw(literal.packed(ELSEWHERE))
    monkeypatch.setitem(source.addresses, literal.packed(VIRTUAL_IP), elsewhere)

    assert site.seen(source)[0] == "127.0.0.1"
    assert site.failures == [(ELSEWHERE, EADDRNOTAVAIL)]


def test_other_failures_are_the_servers(stack: ExitStack):
    """A server that cannot be reached is no reason to try again from the node."""
    site = _Site(stack, VIRTUAL_IP, "127.0.0.1")

    assert site.source(INSIDE).connect(site.client.fileno(), ("255.255.255.255", 9)) < 0
    assert site.failures == []


def test_a_link_local_address_is_no_source(stack: ExitStack):
    """It would need an interface: such clients connect as from the node."""
    site = _Site(stack, "127.0.0.1", "127.0.0.1")

    found = site.source(INSIDE, "fe80::9", "169.254.0.9", VIRTUAL_IP).addresses

    assert list(found) == [literal.packed(VIRTUAL_IP)]


def test_the_kernel_ignores_ports_outside_of_its_own():
    """It chooses only among ports that are all its own."""
    assert within_kernels_ports((KERNELS[0], KERNELS[1]))
    assert not within_kernels_ports(OUTSIDE)
    assert not within_kernels_ports((KERNELS[1], KERNELS[1] + 1))


def test_retries_come_from_the_virtual_ip_too(stack: ExitStack):
    """The first server refuses: the next one sees the virtual IP, as the first one would have."""
    setup = LoneSessions(stack, servers=2, source=SourceAddress.VIRTUAL_IP, source_ports=OUTSIDE)
    stack.callback(setup.traffic.close)
    stack.callback(setup.traffic.end_all, EndReason.KILLED)
    setup.origins[0].close()
    setup.backend.connect_from(frozenset({"127.0.0.1"}), lambda *_: None)

    setup.session(b"hello")
    setup.until(lambda: setup.traffic.reasons[EndReason.REDISPATCHED] == 1)

    assert setup.server(1).getpeername()[1] in range(OUTSIDE[0], OUTSIDE[1] + 1)
    assert not setup.faults
