"""More accept queues for addresses that are held: sockets beside the first one, in a group of SO_REUSEPORT.

The kernel divides an address's new connections among all sockets of its group that listen, by a hash of the
client's address and port. A connection stays in the queue that it came to: closing that resets it. So queues
are added, and closed with their address only. `add` binds; nobody comes to a new queue before `open`, when
workers that know of it are about to accept.

All sockets of a group keep SO_REUSEPORT, which lets another process of this user bind there too, if it asks
for that. Our own programs bind without it first, so that a second appliance is refused.
"""

import socket
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from appliance.net.listening.bind_addresses import Address
from appliance.net.listening.listening_sockets import backlog, let_others_join, queue_beside, side_by_side

_SO_COOKIE: Final = 57
"""SO_COOKIE of asm-generic/socket.h, which the socket module does not name: a number for each open socket."""


def cookie(each: socket.socket) -> int:
    """Return what tells this socket from all others of the machine, in whichever process it is."""
    return int.from_bytes(each.getsockopt(socket.SOL_SOCKET, _SO_COOKIE, 8), "little")


class AddedQueues:
    """The queues of one program's addresses, but for the first of each."""

    def __init__(self) -> None:
        self._listening: dict[Address, list[socket.socket]] = {}
        self._bound: dict[Address, list[socket.socket]] = {}  # until `open`

    def of(self, address: Address, *, bound: bool = False) -> Iterator[socket.socket]:
        """Yield those of an address that listen, and with `bound` those that will."""
        yield from self._listening.get(address, ())
        if bound:
            yield from self._bound.get(address, ())

    def keep(self, address: Address, received: socket.socket) -> None:
        """Own a socket that listens, and that another process sent."""
        self._listening.setdefault(address, []).append(received)

    def add(
        self, address: Address, first: socket.socket, number: int, *, beside: Iterable[socket.socket]
    ) -> None:
        """Bind so many more queues for an address; raises OSError, and keeps those that it could bind.

        `beside` is whatever else is held at this port.
        """
        let_others_join(first)
        with side_by_side(*beside):
            for _ in range(number):
                self._bound.setdefault(address, []).append(queue_beside(first))

    def open(self, first: Mapping[Address, socket.socket]) -> None:
        """Listen on what was bound, beside the first socket of each address that is held; raises OSError."""
        if not self._bound:
            return
        with side_by_side(*first.values()):
            for address, bound in self._bound.items():
                while bound:
                    bound[0].listen(backlog())
                    self.keep(address, bound.pop(0))
        for address in self._bound:
            let_others_join(first[address])  # who had a copy may have taken that back: see `side_by_side`
        self._bound.clear()

    def give_up(self) -> None:
        """Close what was bound and does not listen yet."""
        for bound in self._bound.values():
            for each in bound:
                each.close()
        self._bound.clear()

    def close(self, address: Address) -> None:
        """Close all of an address."""
        for held in (self._listening, self._bound):
            for each in held.pop(address, ()):
                each.close()
