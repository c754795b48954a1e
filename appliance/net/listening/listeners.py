"""Listening sockets of a proxy master: bound once, shared with its workers by inheritance.

A socket is identified by its address, not by the frontend it serves, so a bind may move from one frontend to
another, and a socket taken over from an orphaned worker finds its place. `reserve` binds missing addresses,
all or nothing; nothing is closed before `keep_only`.

If several workers take an address's connections, it has one socket per accept queue (`added_queues.py`). The
master holds all of them as long as the address is served: when the last descriptor of a socket is closed, the
kernel resets every client that has finished its handshake and waits in the queue (socket(7);
net.ipv4.tcp_migrate_req is off by default). So a reload loses no client.

If a bind overlaps an existing one, ours or lent by another group's program:

- the same address uses that socket, with its queued clients;
- a narrower one is bound next to the wildcard, and listens from `open` on, when its workers are about to
  accept: from then on the kernel gives it the connections to its address;
- a wildcard is bound next to the narrower ones, which stay and serve it, too: closing them would reset their
  queued clients.

Linux allows such sockets if all of them have SO_REUSEPORT at that moment. They have it only for that moment:
otherwise two appliances could share a port unnoticed.
"""

import errno
import os
import socket
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass

from appliance.core.balancing import accept_queues
from appliance.model.snapshot.frontends import Bind
from appliance.net.listening.added_queues import AddedQueues, cookie
from appliance.net.listening.bind_addresses import (
    Address,
    candidates,
    covers,
    falls_back_to_ipv4,
    same_or_covers,
)
from appliance.net.listening.bind_refusals import BindProblem, BindRefused, PortOwners, reason
from appliance.net.listening.listening_sockets import (
    address_of,
    backlog,
    bound_socket,
    listening,
    side_by_side,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedBinds:
    """Every wanted bind with the addresses of its sockets; `fresh` were bound for it, `notes` warn."""

    addresses: dict[Bind, tuple[Address, ...]]
    fresh: frozenset[Address]
    notes: tuple[BindProblem, ...]


Lend = Callable[[int], Iterable[socket.socket]]
"""Returns copies of the listening sockets of our other programs at a port."""


class Listeners:
    """The listening sockets of one program. `borrowed_last`: the last `reserve` borrowed sockets.

    `_sockets` has the first of each address.
    """

    def __init__(self, lend: Lend = lambda _: ()) -> None:
        self._sockets: dict[Address, socket.socket] = {}
        self._queues = AddedQueues()
        self._lend = lend
        # Bound, and not listening before `open`; with the sockets next to which each will listen.
        self._not_listening: dict[Address, tuple[socket.socket, ...]] = {}
        self._borrowed: list[socket.socket] = []
        self.borrowed_last = False

    def __iter__(self) -> Iterator[Address]:
        return iter(tuple(self._sockets))

    def fileno(self, address: Address) -> int:
        """Return the descriptor of the first socket of a held address, still owned here."""
        return int(self._sockets[address].fileno())

    def descriptors(self, address: Address, *, opening: bool = False) -> tuple[int, ...]:
        """Return the descriptors of all its sockets, still owned here, in the same order in every process.

        `opening` includes those that listen from `open` on.
        """
        found = [self._sockets[address], *self._queues.of(address, bound=opening)]
        return tuple(each.fileno() for each in sorted(found, key=cookie))

    def take_over(self, descriptors: Iterable[int]) -> tuple[Address, ...]:
        """Take ownership of listening sockets from another process; close duplicates and unusable ones."""
        taken = []
        for descriptor in descriptors:
            received = socket.socket(fileno=descriptor)
            address = address_of(received)
            if address is None or self._holds(address, received):
                received.close()
            elif address in self._sockets:
                self._queues.keep(address, received)
            else:
                self._sockets[address] = received
                taken.append(address)
        return tuple(taken)

    def _holds(self, address: Address, received: socket.socket) -> bool:
        held = [self._sockets[address], *self._queues.of(address)] if address in self._sockets else []
        return cookie(received) in map(cookie, held)

    def at(self, port: int) -> dict[Address, tuple[int, ...]]:
        """Return the descriptors of the sockets that listen on a port."""
        return {
            address: self.descriptors(address)
            for address in self._sockets
            if address.port == port and address not in self._not_listening
        }

    def reserve(
        self, binds: Iterable[Bind], *, virtual: Container[str] = (), workers: int = 1
    ) -> ReservedBinds | tuple[BindProblem, ...]:
        """Bind the missing addresses; after any problem, return all problems and change nothing.

        `virtual` are addresses that may come to this machine later: they are bound beforehand. Each address
        gets one accept queue for each of `workers`.
        """
        self.borrowed_last = False
        addresses: dict[Bind, tuple[Address, ...]] = {}
        fresh: set[Address] = set()
        problems: list[BindProblem] = []
        notes: list[BindProblem] = []
        owners = PortOwners()
        for bind in binds:
            try:
                addresses[bind] = self._reserve(bind, fresh, notes, virtual, owners)
            except BindRefused as refused:
                problems.append(BindProblem(bind=bind, reason=str(refused)))
        if problems:
            self.release(fresh)
            return tuple(problems)
        notes += self._add_queues(addresses, workers)
        return ReservedBinds(addresses=addresses, fresh=frozenset(fresh), notes=tuple(notes))

    def open(self, addresses: Iterable[Address]) -> None:
        """Listen on sockets that had others in their way; raises OSError."""
        for address in addresses:
            if address in self._not_listening:
                with side_by_side(self._sockets[address], *self._not_listening[address]):
                    self._sockets[address].listen(backlog())
                del self._not_listening[address]
        self._queues.open(self._sockets)
        self._return_borrowed()

    def give_up(self, fresh: Iterable[Address]) -> None:
        """Close the sockets that the last `reserve` bound."""
        self._queues.give_up()
        self.release(fresh)

    def release(self, addresses: Iterable[Address]) -> None:
        """Close the sockets of these addresses, and those borrowed to bind them."""
        for address in tuple(addresses):
            self._not_listening.pop(address, None)
            self._sockets.pop(address).close()
            self._queues.close(address)
        self._return_borrowed()

    def _return_borrowed(self) -> None:
        if not self._not_listening:
            for each in self._borrowed:
                each.close()
            self._borrowed.clear()

    def keep_only(self, addresses: Iterable[Address]) -> tuple[Address, ...]:
        """Close all other sockets; return their addresses."""
        surplus = tuple(self._sockets.keys() - set(addresses))
        self.release(surplus)
        return surplus

    def _add_queues(self, addresses: Mapping[Bind, Iterable[Address]], workers: int) -> Iterator[BindProblem]:
        """Bind missing queues, one per worker; yield each failure."""
        self._queues.give_up()
        bind_of = {address: bind for bind, found in addresses.items() for address in found}
        wanted = accept_queues.queues(workers=workers, addresses=len(bind_of))
        for address, bind in bind_of.items():
            missing = wanted - len(self.descriptors(address))
            if missing <= 0:
                continue
            beside = [each for place, each in self._sockets.items() if place.port == address.port]
            try:
                self._queues.add(address, self._sockets[address], missing, beside=beside)
            except OSError as error:
                yield BindProblem(bind=bind, reason=f"fewer accept queues than workers ({error.strerror})")

    def _reserve(
        self,
        bind: Bind,
        fresh: set[Address],
        notes: list[BindProblem],
        virtual: Container[str],
        owners: PortOwners,
    ) -> tuple[Address, ...]:
        reserved = []
        wanted = candidates(bind)
        for address in wanted:
            try:
                reserved += self._reserve_address(address, fresh, early=address.host in virtual)
            except OSError as error:
                if not falls_back_to_ipv4(address, error, wanted):
                    raise BindRefused(reason(address.port, error, owners)) from error
                notes.append(BindProblem(bind=bind, reason=f"no IPv6 here, IPv4 only ({error.strerror})"))
                if address.host == "::":
                    reserved += self._reserve_address(Address("0.0.0.0", address.port), fresh)  # noqa: S104  # asked for
        return tuple(reserved)

    def _reserve_address(
        self, address: Address, fresh: set[Address], *, early: bool = False
    ) -> list[Address]:
        if address not in self._sockets:
            self._bind(address, fresh, early=early)
        return [address, *(each for each in self._sockets if covers(address, each))]

    def _bind(self, address: Address, fresh: set[Address], *, early: bool) -> None:
        # A bind that changes from `0.0.0.0` to `::` keeps its IPv4 socket, with its queued clients.
        dual = Address("0.0.0.0", address.port) not in self._sockets  # noqa: S104  # compared only
        try:
            bound = listening(address, dual=dual, early=early)
        except OSError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            self._bind_beside(address, fresh, dual=dual, early=early)
            return
        self._keep(bound, address, fresh)

    def _bind_beside(self, address: Address, fresh: set[Address], *, dual: bool, early: bool) -> None:
        """Bind where sockets of this or another program of ours are in the way; raises OSError."""
        lent = {each: address_of(each) for each in self._lend(address.port)}
        self.borrowed_last = self.borrowed_last or bool(lent)
        taken = {
            place
            for place in lent.values()
            if place is not None and place not in self._sockets and same_or_covers(address, place)
        }
        for each, place in lent.items():
            if place is None or place not in taken:
                self._borrowed.append(each)
            elif place in self._sockets:
                self._queues.keep(place, each)
            else:
                self._sockets[place] = each
        fresh |= taken
        if address in self._sockets:
            return
        others = {place: each for place, each in self._sockets.items() if place.port == address.port}
        others |= {
            place: each for each, place in lent.items() if place is not None and each in self._borrowed
        }
        if not others:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        with side_by_side(*others.values()):
            bound = bound_socket(address, dual=dual, early=early, shared=True)
        self._not_listening[address] = tuple(others.values())
        self._keep(bound, address, fresh)
        if not any(covers(place, address) for place in others):
            self.open([address])  # the narrower ones keep their connections: it takes only others

    def _keep(self, bound: socket.socket, address: Address, fresh: set[Address]) -> None:
        self._sockets[address] = bound
        fresh.add(address)
