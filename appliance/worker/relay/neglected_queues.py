"""Accept queues of other workers in which somebody waits for too long.

Their worker hangs, has ended, has reached a limit or is too busy. They are looked at on each tick, and not
watched: the kernel would ask every worker that watches a queue for each connection, and one that has nothing
to do would take what another one is about to take.
"""

import select
from typing import Final

from appliance.worker.relay.acceptor import Acceptor

_MOST: Final = 16
"""Connections that are taken from one queue at a time, one at first: more would let the own ones wait."""


class NeglectedQueues:
    """The queues of others, and how many each may lose at the next look if somebody still waits in it."""

    def __init__(self) -> None:
        self._acceptors: dict[int, Acceptor] = {}
        self._poll = select.poll()
        self._waiting: dict[int, int] = {}

    def add(self, acceptor: Acceptor) -> None:
        """Look at a queue from now on."""
        self._acceptors[acceptor.descriptor] = acceptor
        self._poll.register(acceptor.descriptor, select.POLLIN)

    def remove(self, acceptor: Acceptor) -> None:
        """Look at it no more; before it is closed."""
        if self._acceptors.pop(acceptor.descriptor, None):
            self._poll.unregister(acceptor.descriptor)

    def look(self) -> None:
        """Take some connections where there are any as there were at the last look."""
        if not self._acceptors:
            return
        before, self._waiting = self._waiting, {}
        for descriptor, _ in self._poll.poll(0):
            most = before.get(descriptor, 0)
            self._acceptors[descriptor].take(most)
            self._waiting[descriptor] = min(2 * most, _MOST) or 1
