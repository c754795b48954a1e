"""Listening sockets of a proxy master: bound once, shared with its workers by inheritance.

A socket is known by the address it is bound to, not by the frontend it serves, so a bind may move from one
frontend to another, and a socket taken over from an orphaned worker finds its place. `reserve` binds what is
not there yet, all or nothing; nothing is closed before `keep_only`. One socket is shared by all workers: of
SO_REUSEPORT twins, closing one resets whoever is queued in it.

Where a bind overlaps one that is there, of ours or of another group's program, which lends it:

- the very same address is that socket, with whoever is queued in it;
- a narrower one is bound beside the wildcard, and listens from `open` on, when its workers are about to
  accept: from then on the kernel gives it the connections to its address;
- a wildcard is bound beside the narrower ones, which stay and serve it too: closing them would cost whoever
  is queued in them.

Linux lets such sockets stand side by side where all of them have SO_REUSEPORT at that moment. They have it
for that moment only: otherwise two appliances could share a port without anybody being told.
"""

import errno
import os
import socket
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from gevent.socket import getaddrinfo

from appliance.model.snapshot.frontends import Bind
from appliance.net.workers.port_owner import port_owner

_SOMAXCONN: Final = Path("/proc/sys/net/core/somaxconn")
_PRIVILEGED: Final = (
    "permission denied: ports below {first} need CAP_NET_BIND_SERVICE or net.ipv4.ip_unprivileged_port_start"
)
_FIRST_FREE_PORT: Final = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
# IP_FREEBIND and IPV6_FREEBIND of linux/in.h and linux/in6.h, which the socket module does not name.
_FREE_BIND: Final[dict[int, tuple[int, int]]] = {
    socket.AF_INET: (socket.IPPROTO_IP, 15),
    socket.AF_INET6: (socket.IPPROTO_IPV6, 78),
}
_GOING: Final = (
    "no interface will have this address: the virtual IP goes, and the next start could not bind it; "
    "change the bind as well"
)
_EVERYWHERE: Final = frozenset({"::", "0.0.0.0", "localhost"})  # noqa: S104  # compared only
_NO_IPV6: Final = (errno.EAFNOSUPPORT, errno.EPROTONOSUPPORT, errno.EADDRNOTAVAIL)


@dataclass(frozen=True, slots=True)
class Address:
    """What a socket is bound to: a literal address, a port, and the interface of a link-local address."""

    host: str
    port: int
    scope: int = 0

    @property
    def family(self) -> int:
        """Return the address family."""
        return socket.AF_INET6 if ":" in self.host else socket.AF_INET

    @property
    def sockaddr(self) -> tuple[str, int] | tuple[str, int, int, int]:
        """Return the address as the socket functions want it."""
        if self.family == socket.AF_INET:
            return (self.host, self.port)
        return (self.host, self.port, 0, self.scope)

    def __str__(self) -> str:
        return str(Bind(host=self.host, port=self.port))


@dataclass(frozen=True, slots=True, kw_only=True)
class BindProblem:
    """A bind that cannot be had, and why."""

    bind: Bind
    reason: str

    def __str__(self) -> str:
        return f"{self.bind}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedBinds:
    """Every wanted bind with the addresses of its sockets; `fresh` were bound for it, `notes` warn."""

    addresses: dict[Bind, tuple[Address, ...]]
    fresh: frozenset[Address]
    notes: tuple[BindProblem, ...]


Lend = Callable[[int], Iterable[socket.socket]]
"""Returns copies of what other programs of ours listen on at a port."""


class _BindRefused(Exception):  # noqa: N818  # it never leaves this module
    """A bind failed; the message says why."""


class Listeners:
    """The listening sockets of one program."""

    def __init__(self, lend: Lend = lambda _: ()) -> None:
        self._sockets: dict[Address, socket.socket] = {}
        self._lend = lend
        self._quiet: dict[Address, tuple[socket.socket, ...]] = {}  # with those beside which each will listen
        self._borrowed: list[socket.socket] = []
        self.borrowed_last = False

    def __iter__(self) -> Iterator[Address]:
        return iter(tuple(self._sockets))

    def fileno(self, address: Address) -> int:
        """Return the descriptor of a held address, still owned here."""
        return int(self._sockets[address].fileno())

    def take_over(self, descriptors: Iterable[int]) -> tuple[Address, ...]:
        """Own listening sockets that another process sent; what we hold already, or cannot use, is closed."""
        taken = []
        for descriptor in descriptors:
            received = socket.socket(fileno=descriptor)
            address = _address_of(received)
            if address is None or address in self._sockets:
                received.close()
                continue
            self._sockets[address] = received
            taken.append(address)
        return tuple(taken)

    def at(self, port: int) -> dict[Address, int]:
        """Return the descriptors of what listens on a port."""
        return {
            address: each.fileno()
            for address, each in self._sockets.items()
            if address.port == port and address not in self._quiet
        }

    def reserve(
        self, binds: Iterable[Bind], *, virtual: Container[str] = ()
    ) -> ReservedBinds | tuple[BindProblem, ...]:
        """Bind what is not held yet; with any problem, all are returned and nothing has changed.

        `virtual` are addresses that may come to this machine later: it binds them beforehand.
        """
        self.borrowed_last = False
        addresses: dict[Bind, tuple[Address, ...]] = {}
        fresh: set[Address] = set()
        problems: list[BindProblem] = []
        notes: list[BindProblem] = []
        for bind in binds:
            try:
                addresses[bind] = self._reserve(bind, fresh, notes, virtual)
            except _BindRefused as refused:
                problems.append(BindProblem(bind=bind, reason=str(refused)))
        if problems:
            self.release(fresh)
            return tuple(problems)
        return ReservedBinds(addresses=addresses, fresh=frozenset(fresh), notes=tuple(notes))

    def open(self, addresses: Iterable[Address]) -> None:
        """Listen where others stand in the way until now; raises OSError."""
        for address in addresses:
            if address in self._quiet:
                with _side_by_side(self._sockets[address], *self._quiet[address]):
                    self._sockets[address].listen(_backlog())
                del self._quiet[address]
        self._return_borrowed()

    def release(self, addresses: Iterable[Address]) -> None:
        """Close the sockets of these addresses, and what was borrowed to bind them."""
        for address in tuple(addresses):
            self._quiet.pop(address, None)
            self._sockets.pop(address).close()
        self._return_borrowed()

    def _return_borrowed(self) -> None:
        if not self._quiet:
            for each in self._borrowed:
                each.close()
            self._borrowed.clear()

    def keep_only(self, addresses: Iterable[Address]) -> tuple[Address, ...]:
        """Close every other socket; return their addresses."""
        surplus = tuple(self._sockets.keys() - set(addresses))
        self.release(surplus)
        return surplus

    def _reserve(
        self, bind: Bind, fresh: set[Address], notes: list[BindProblem], virtual: Container[str]
    ) -> tuple[Address, ...]:
        reserved = []
        candidates = _candidates(bind)
        for address in candidates:
            try:
                reserved += self._reserve_address(address, fresh, early=address.host in virtual)
            except OSError as error:
                if not self._without_ipv6(address, error, candidates):
                    raise _BindRefused(self._reason(address, error)) from error
                notes.append(BindProblem(bind=bind, reason=f"no IPv6 here, IPv4 only ({error.strerror})"))
                if address.host == "::":
                    reserved += self._reserve_address(Address("0.0.0.0", address.port), fresh)  # noqa: S104  # asked for
        return tuple(reserved)

    def _reserve_address(
        self, address: Address, fresh: set[Address], *, early: bool = False
    ) -> list[Address]:
        if address not in self._sockets:
            self._bind(address, fresh, early=early)
        return [address, *(each for each in self._sockets if _covers(address, each))]

    def _bind(self, address: Address, fresh: set[Address], *, early: bool) -> None:
        # What was `0.0.0.0` and is `::` now keeps its IPv4 socket, with whoever is queued in it.
        dual = Address("0.0.0.0", address.port) not in self._sockets  # noqa: S104  # compared only
        try:
            bound = _listening(address, dual=dual, early=early)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            self._bind_beside(address, fresh, dual=dual, early=early)
            return
        self._keep(bound, address, fresh)

    def _bind_beside(self, address: Address, fresh: set[Address], *, dual: bool, early: bool) -> None:
        """Bind where own sockets, or those of another program of ours, are in the way; raises OSError."""
        lent = {each: _address_of(each) for each in self._lend(address.port)}
        self.borrowed_last = self.borrowed_last or bool(lent)
        for each, place in lent.items():
            if place is not None and place not in self._sockets and _same_or_covers(address, place):
                self._sockets[place] = each
                fresh.add(place)
            else:
                self._borrowed.append(each)
        if address in self._sockets:
            return
        others = {place: each for place, each in self._sockets.items() if place.port == address.port}
        others |= {
            place: each for each, place in lent.items() if place is not None and each in self._borrowed
        }
        if not others:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        with _side_by_side(*others.values()):
            bound = _bound(address, dual=dual, early=early, shared=True)
        self._quiet[address] = tuple(others.values())
        self._keep(bound, address, fresh)
        if not any(_covers(place, address) for place in others):
            self.open([address])  # the narrower ones go on taking theirs: what it takes nobody has had

    def _keep(self, bound: socket.socket, address: Address, fresh: set[Address]) -> None:
        self._sockets[address] = bound
        fresh.add(address)

    def _without_ipv6(self, address: Address, error: OSError, candidates: tuple[Address, ...]) -> bool:
        """Say whether this is a kernel without IPv6 and IPv4 would do what the operator asked for."""
        if address.family != socket.AF_INET6 or error.errno not in _NO_IPV6:
            return False
        return address.host == "::" or any(each.family == socket.AF_INET for each in candidates)

    def _reason(self, address: Address, error: OSError) -> str:
        match error.errno:
            case errno.EACCES | errno.EPERM:
                return _PRIVILEGED.format(first=_first_free_port())
            case errno.EADDRINUSE:
                owner = port_owner(address.port)
                return f"address in use by {owner}" if owner else "address in use"
            case errno.EADDRNOTAVAIL:
                return "no interface has this address; bind [::] or set net.ipv4.ip_nonlocal_bind"
            case _:
                return error.strerror or str(error)


def overlap(bind: Bind, address: Address) -> bool:
    """Say whether a bind, of one valid configuration, takes connections of a socket of another one."""
    if bind.port != address.port:
        return False
    return bind.host == address.host or not {bind.host, address.host}.isdisjoint(_EVERYWHERE)


def lost(binds: Iterable[Bind], going: Container[str]) -> tuple[BindProblem, ...]:
    """Return the binds of addresses that are `going`: a socket outlives them, but is not made again."""
    problems = []
    for bind in binds:
        with suppress(_BindRefused):  # a name: whether it has an address is asked where it is bound
            if any(each.host in going for each in _candidates(bind)):
                problems.append(BindProblem(bind=bind, reason=_GOING))
    return tuple(problems)


def _candidates(bind: Bind) -> tuple[Address, ...]:
    """Return the addresses that a bind stands for; a name may have several."""
    try:
        found = getaddrinfo(bind.host, bind.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise _BindRefused(f"name not resolved: {error.strerror or error}") from error
    return tuple(dict.fromkeys(_address(sockaddr) for *_, sockaddr in found))


def _covers(wide: Address, narrow: Address) -> bool:
    """Say whether a wildcard takes the connections of another address of its port, too."""
    if wide.port != narrow.port or wide == narrow:
        return False
    return wide.host == "::" or (wide.host == "0.0.0.0" and narrow.family == socket.AF_INET)  # noqa: S104  # compared only


def _same_or_covers(wide: Address, narrow: Address) -> bool:
    return wide == narrow or _covers(wide, narrow)


@contextmanager
def _side_by_side(*sockets: socket.socket) -> Iterator[None]:
    """Let sockets be bound, and listen, where others are: all of them have to agree (socket(7))."""
    for each in sockets:
        _share(each, 1)
    try:
        yield
    finally:
        for each in sockets:
            _share(each, 0)


def _share(each: socket.socket, value: int) -> None:
    if each.fileno() >= 0:  # one that was closed meanwhile is in nobody's way
        each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, value)


def _listening(address: Address, *, dual: bool, early: bool) -> socket.socket:
    bound = _bound(address, dual=dual, early=early)
    try:
        bound.listen(_backlog())
    except OSError:
        bound.close()
        raise
    return bound


def _bound(address: Address, *, dual: bool, early: bool, shared: bool = False) -> socket.socket:
    listener = socket.socket(address.family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        # Accepted sockets inherit it: one system call less for each connection.
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if address.family == socket.AF_INET6:
            dual_stack = dual and address.host == "::"
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, int(not dual_stack))
        if early:  # HAProxy's `transparent`, without its privilege
            listener.setsockopt(*_FREE_BIND[address.family], 1)
        listener.setblocking(False)  # noqa: FBT003  # for workers, which share the open file
        with _side_by_side(*([listener] if shared else [])):
            listener.bind(address.sockaddr)
    except OSError:
        listener.close()
        raise
    return listener


def _address_of(listener: socket.socket) -> Address | None:
    """Return what a socket is bound to, None for one that is no TCP listener."""
    if listener.family not in (socket.AF_INET, socket.AF_INET6):
        return None
    if not listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
        return None
    return _address(listener.getsockname())


def _address(sockaddr: tuple[str, int] | tuple[str, int, int, int]) -> Address:
    host = sockaddr[0].partition("%")[0]
    return Address(host, sockaddr[1], sockaddr[3] if len(sockaddr) == 4 else 0)


def _backlog() -> int:
    try:
        return int(_SOMAXCONN.read_text())
    except (OSError, ValueError):
        return socket.SOMAXCONN


def _first_free_port() -> int:
    try:
        return int(_FIRST_FREE_PORT.read_text())
    except (OSError, ValueError):
        return 1024
