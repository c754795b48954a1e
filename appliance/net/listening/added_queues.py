"""More accept queues for held addresses: sockets next to the first one, in an SO_REUSEPORT group.

The kernel spreads an address's new connections over all listening sockets of its group, by a hash of the
client's address and port. A connection stays in its queue: closing the queue resets it. So queues are added,
and closed only with their address. `add` binds; a new queue gets connections only after `open`, when workers
that have it are about to accept.

All sockets of a group keep SO_REUSEPORT, which lets another process of this user that sets it bind there,
too. Our own programs bind without it first, so a second appliance is refused.
"""

import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.listening_sockets import backlog, let_others_join, queue_beside, side_by_side

_SO_COOKIE: Final = 57
"""SO_COOKIE of asm-generic/socket.h, missing in the socket module: a number for each open socket."""


def cookie(each: socket.socket) -> int:
    """Return an id of this socket, unique on the machine and the same in every process."""
    return int.from_bytes(each.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8), "little")


class AddedQueues:
    """The queues of one program's addresses, except the first of each."""

    def __init__(self) -> None:
        self._listening: dict[Address, list[socket.socket]] = {}
        self._bound: dict[Address, list[socket.socket]] = {}  # until `open`

    def of(self, address: Address, *, bound: bool = False) -> Iterator[socket.socket]:
        """Yield the listening queues of an address; with `bound` also those that will listen."""
        yield from self._listening.get(address, ())
        if bound:
            yield from self._bound.get(address, ())

    def keep(self, address: Address, received: socket.socket) -> None:
        """Take ownership of a listening socket that another process sent."""
        self._listening.setdefault(address, []).append(received)

    def add(
        self, address: Address, first: socket.socket, number: int, *, beside: Iterable[socket.socket]
    ) -> None:
        """Bind more queues `beside` other sockets at the port; raises OSError, and keeps those bound."""
        let_others_join(first)
        with side_by_side(*beside):
            for _ in range(number):
                self._bound.setdefault(address, []).append(queue_beside(first))

    def open(self, first: Mapping[Address, socket.socket]) -> None:
        """Listen on the bound queues, next to the first socket of each held address; raises OSError."""
        if not self._bound:
            return
        with side_by_side(*first.values()):
            for address, bound in self._bound.items():
                while bound:
                    bound[0].listen(backlog())
                    self.keep(address, bound.pop(0))
        for address in self._bound:
            let_others_join(first[address])  # a process with a copy may have cleared it: see `side_by_side`
        self._bound.clear()

    def give_up(self) -> None:
        """Close the queues that are bound and do not listen yet."""
        for bound in self._bound.values():
            for each in bound:
                each.close()
        self._bound.clear()

    def close(self, address: Address) -> None:
        """Close all queues of an address."""
        for held in (self._listening, self._bound):
            for each in held.pop(address, ()):
                each.close()
