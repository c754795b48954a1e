"""Which worker of a group takes connections from which accept queue of an address.

An address has a queue for each worker, and the kernel divides new connections among them. One worker has the
first claim to a queue and is told of what comes. Some others look at it now and then: they take what waits
while that one is busy, hangs, has reached a limit or is being replaced.

The number of workers and of queues may differ: a queue is never closed while its address is served, since
whoever waits in it would be reset.
"""

from typing import Final

from appliance.model.accept_claims import AcceptClaim

CLAIMS: Final = 4
"""Workers that have a claim to one queue, where each worker has one: all could not hang at the same time."""

_MOST: Final = 240
"""Queues of all addresses together: a message takes 250 descriptors (`net/control/descriptor_passing.py`)."""


def claim(*, queue: int, queues: int, worker: int, workers: int) -> AcceptClaim | None:
    """Return the claim of a worker to a queue, None where it has none; both count from 0."""
    if workers == 1:
        return AcceptClaim.SOLE
    pairs = min(queues, workers)
    distance = (queue - worker) % pairs
    if distance:
        return AcceptClaim.SPARE if distance < CLAIMS else None
    return AcceptClaim.FIRST if workers <= queues else AcceptClaim.EQUAL


def queues(*, workers: int, addresses: int) -> int:
    """Return how many queues each address of a group gets.

    A worker that has a claim to all of them can hand them to another process in one message.
    """
    return max(1, min(workers, _MOST // max(1, addresses)))
