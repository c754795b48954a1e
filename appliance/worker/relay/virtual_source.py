"""Connects to servers from the virtual IP that a client has connected to (`source: virtual-ip` of a pool).

The ports are this node's own, so that no two nodes connect from one address and port to one server. The
kernel chooses among them (IP_LOCAL_PORT_RANGE, Linux 6.3) if all are in `net.ipv4.ip_local_port_range`: it
ignores other bounds silently. Otherwise a port is chosen here, by chance, a few times.

A client that came by another address, or goes to a server of the other version of IP, is connected as by
`source: node`, and so is one for which no port is free, or whose virtual IP has just left this machine.

Plain Python that Cython compiles unchanged; `virtual_source.pxd` gives it types.
"""

import socket
from collections.abc import Callable, Iterable
from errno import EADDRINUSE, EADDRNOTAVAIL, EAFNOSUPPORT
from ipaddress import ip_address
from pathlib import Path
from random import random
from typing import Final

from appliance.wire import sockaddr
from appliance.worker.relay import tcp
from appliance.worker.relay.raw_sockets import Option, connect, connect_from, local

_TRIES: Final = 16
"""Ports that are tried where the kernel does not choose: all are taken by chance if nearly all are in use."""

_PASSED_OVER: Final = 16
"""Next connects to a server without a free port that do not look for one: the kernel tries every port."""

_BIND_ADDRESS_NO_PORT: Final = (socket.IPPROTO_IP, 24, 1)
"""The port is chosen at the connect, for the server's address: linux/in.h, which `socket` does not have."""

_LOCAL_PORT_RANGE: Final = 51
"""Linux's number of this option, the same."""

_REUSE: Final = (socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
"""Connections to different servers may have the same port."""

_KERNELS_PORTS: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


class VirtualSource:
    """The virtual IPs and ports of one pool; `options` are those of its connects.

    `addresses` are the virtual IPs by their bytes, ready for the kernel.

    `on_failure` is called with the virtual IP and the errno when a connect cannot come from it: EADDRINUSE if
    no port is free, EADDRNOTAVAIL if this machine does not have it.
    """

    __slots__ = (
        "_chosen_here",
        "_count",
        "_from_node",
        "_full",
        "_low",
        "_on_failure",
        "_options",
        "_tries",
        "addresses",
    )

    def __init__(
        self,
        addresses: Iterable[str],
        ports: tuple[int, int],
        options: tuple[Option, ...],
        on_failure: Callable[[str, int], None],
    ) -> None:
        self._low = ports[0]
        self._count = ports[1] - ports[0] + 1
        # A link-local address needs an interface, and reaches no server beyond its segment.
        self.addresses = {
            each.packed: sockaddr.raw(each.packed)
            for each in map(ip_address, addresses)
            if not each.is_link_local
        }
        by_kernel = (_BIND_ADDRESS_NO_PORT, _port_range(ports))
        self._chosen_here = not within_kernels_ports(ports) or bool(tcp.refused(by_kernel))
        self._from_node = options
        self._options = (*options, *((_REUSE,) if self._chosen_here else by_kernel))
        self._tries = _TRIES if self._chosen_here else 1
        self._on_failure = on_failure
        self._full: dict[tuple[str, int], int] = {}

    def connect(self, client: int, address: tuple[str, int]) -> int:
        """Begin to connect for a client; return the descriptor, or minus the errno."""
        source = self.addresses.get(local(client))
        if source is None:
            return connect(address, self._from_node)
        fd = -EADDRINUSE
        tries = 0 if self._full and self._passes_over(address) else self._tries
        looked = tries > 0
        while fd == -EADDRINUSE and tries > 0:
            tries -= 1
            port = self._low + int(random() * self._count) if self._chosen_here else 0  # noqa: S311  # no secret
            fd = connect_from(address, self._options, source, port)
        if fd >= 0:
            return fd
        if fd in (-EADDRINUSE, -EADDRNOTAVAIL):
            if looked and fd == -EADDRINUSE:
                self._full[address] = _PASSED_OVER
            self._on_failure(sockaddr.host(source), -fd)
        elif fd != -EAFNOSUPPORT:
            return fd
        return connect(address, self._from_node)

    def _passes_over(self, address: tuple[str, int]) -> bool:
        """Return whether a server had no free port a few connects ago."""
        left = self._full.pop(address, 0)
        if left > 1:
            self._full[address] = left - 1
        return left > 0


def within_kernels_ports(ports: tuple[int, int]) -> bool:
    """Return whether the kernel chooses among these ports; False if that cannot be read."""
    try:
        low, high = map(int, _KERNELS_PORTS.read_text().split())
    except (OSError, ValueError):
        return False
    return low <= ports[0] and ports[1] <= high


def _port_range(ports: tuple[int, int]) -> Option:
    """Return the option with the highest port in the upper half of its 32 bits, as a signed C int."""
    bounds = ports[1] << 16 | ports[0]
    return socket.IPPROTO_IP, _LOCAL_PORT_RANGE, bounds - (1 << 32) if bounds >> 31 else bounds
