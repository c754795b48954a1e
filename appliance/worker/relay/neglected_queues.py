"""Accept queues of other workers in which clients wait too long.

Their worker hangs, has exited, has reached a limit or is too busy. The queues are polled on each tick, and
not watched: the kernel would wake every worker that watches a queue for each connection, and an idle one
would take what another one is about to take.
"""

import select
from typing import Final

from appliance.worker.relay.acceptor import Acceptor

_MOST: Final = 16
"""Most connections taken from one queue at a time, beginning with one: more would make its own ones wait."""


class NeglectedQueues:
    """The queues of others, and how many each may lose at the next poll if clients still wait in it."""

    def __init__(self) -> None:
        self._acceptors: dict[int, Acceptor] = {}
        self._poll = select.poll()
        self._waiting: dict[int, int] = {}

    def add(self, acceptor: Acceptor) -> None:
        """Poll a queue from now on."""
        self._acceptors[acceptor.descriptor] = acceptor
        self._poll.register(acceptor.descriptor, select.POLLIN)

    def remove(self, acceptor: Acceptor) -> None:
        """Poll it no more; call this before it is closed."""
        if self._acceptors.pop(acceptor.descriptor, None):
            self._poll.unregister(acceptor.descriptor)

    def __len__(self) -> int:
        return len(self._acceptors)

    def are_waited_in(self) -> bool:
        """Return whether a client waits in one of them."""
        return bool(self._poll.poll(0))

    def look(self) -> None:
        """Take some connections from queues that have some now and had some at the last poll."""
        if not self._acceptors:
            return
        before, self._waiting = self._waiting, {}
        for descriptor, _ in self._poll.poll(0):
            most = before.get(descriptor, 0)
            self._acceptors[descriptor].take(most)
            self._waiting[descriptor] = min(2 * most, _MOST) or 1
