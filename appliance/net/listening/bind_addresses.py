"""The addresses of a bind, and which of them take the connections of others."""

import errno
import socket
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from gevent.socket import getaddrinfo

from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.bind_refusals import BindRefused

_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL)
_EVERYWHERE: Final = frozenset({"::", "0.0.0.0", "localhost"})  # noqa: S104  # compared only


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a bound socket: a literal address, a port, and the interface of a link-local address."""

    host: str
    port: int
    scope: int = 0

    @property
    def family(self) -> int:
        """Return the address family."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    @property
    def sockaddr(self) -> tuple[str, int] | tuple[str, int, int, int]:
        """Return the address as the socket functions expect it."""
        if self.family == socket.AF_INET:
            return (self.host, self.port)
        return (self.host, self.port, 0, self.scope)

    def __str__(self) -> str:
        return str(Bind(host=self.host, port=self.port))


def candidates(bind: Bind) -> tuple[Address, ...]:
    """Return the addresses of a bind; a name may have several. Raises BindRefused."""
    try:
        found = getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise BindRefused(f"name not resolved: {error.strerror or error}") from error
    return tuple(dict.fromkeys(address_from(sockaddr) for *_, sockaddr in found))


def falls_back_to_ipv4(address: Address, error: OSError, wanted: Iterable[Address]) -> bool:
    """Return whether the kernel has no IPv6, and IPv4 serves what the operator wants of a bind."""
    if address.family != socket.AF_INET6 or error.errno not in _NO_IPV6:
        return False
    return address.host == "::" or any(each.family == socket.AF_INET for each in wanted)


def address_from(sockaddr: tuple[str, int] | tuple[str, int, int, int]) -> Address:
    """Return the address as an object; a scope such as `%eth0` is in its number."""
    host = sockaddr[0].partition("%")[0]
    return Address(host, sockaddr[1], sockaddr[3] if len(sockaddr) == 4 else 0)


def overlap(bind: Bind, address: Address) -> bool:
    """Return whether a bind of the new configuration takes connections of an old socket."""
    if bind.port != address.port:
        return False
    return bind.host == address.host or not {bind.host, address.host}.isdisjoint(_EVERYWHERE)


def covers(wide: Address, narrow: Address) -> bool:
    """Return whether a wildcard also takes the connections of another address of its port."""
    if wide.port != narrow.port or wide == narrow:
        return False
    return wide.host == "::" or (wide.host == "0.0.0.0" and narrow.family == socket.AF_INET)  # noqa: S104  # compared only


def same_or_covers(wide: Address, narrow: Address) -> bool:
    """Return whether an address takes the connections of another: as a wildcard, or as the same address."""
    return wide == narrow or covers(wide, narrow)
