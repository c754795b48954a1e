"""The queue of a pool: connections that wait for a server with room, bounded by the pool's `max_queue`.

HAProxy has a queue for each server and one for the backend. Here there is only one, and each connection
stores whether it waits for one particular server: so it keeps its position when the servers change.
"""

from collections.abc import Callable, Collection
from typing import Protocol

from appliance.core.balancing.pool_member import PoolMember

Wish = tuple[PoolMember | None, Collection[PoolMember]]
"""The member that a connection counts as queued at, or None, and the members that it avoids."""


class Waiter(Protocol):
    """A connection as the queue sees it."""

    def __hash__(self) -> int: ...

    def place_free(self) -> None:
        """Try to find a server again: the pool has just taken this connection out of its queue."""
        ...


class PoolQueue:
    """Connections in the order in which they came."""

    def __init__(self) -> None:
        self.waiting: dict[Waiter, Wish] = {}

    def add(self, waiter: Waiter, member: PoolMember | None, *, avoid: Collection[PoolMember]) -> None:
        """Put a connection at the end; it is shown as queued at `member`."""
        self.waiting[waiter] = member, avoid
        if member is not None:
            member.queued += 1

    def remove(self, waiter: Waiter) -> None:
        """Take a connection out, at any position; do nothing if it does not wait."""
        if waiter not in self.waiting:
            return
        member, _ = self.waiting.pop(waiter)
        if member is not None:
            member.queued -= 1

    def take_first(self, suits: Callable[[Wish], bool]) -> Waiter | None:
        """Take out the first connection whose wish suits, None if there is none."""
        for waiter, wish in self.waiting.items():
            if suits(wish):
                self.remove(waiter)
                return waiter
        return None

    def take_all(self, *, but: Callable[[Waiter], bool] | None = None) -> list[Waiter]:
        """Take out all connections, in their order, but for those that `but` names."""
        waiters = [each for each in self.waiting if but is None or not but(each)]
        for waiter in waiters:
            self.remove(waiter)
        return waiters
