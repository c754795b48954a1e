"""Which worker of a group takes connections from which accept queue of an address.

An address has a queue for each worker, and the kernel divides new connections among them. One worker has the
first claim to a queue and is notified of new connections. Some others poll it: they take connections that
wait while the first worker is busy, hangs, has reached a limit or is being replaced. The number of workers
and of queues may differ: a queue is never closed while its address is served, since connections that wait in
it would be reset.
"""

from typing import Final

from appliance.model.accept_claims import AcceptClaim

CLAIMS: Final = 4
"""Workers with a claim to one queue, if each worker has one: not all should hang at the same time."""

_MOST: Final = 240
"""Queues of all addresses together: a message takes 250 descriptors (`net/control/descriptor_passing.py`)."""


def claim(*, queue: int, queues: int, worker: int, workers: int) -> AcceptClaim | None:
    """Return the claim of a worker to a queue, None if it has none; both count from 0."""
    if workers == 1:
        return AcceptClaim.SOLE
    pairs = min(queues, workers)
    distance = (queue - worker) % pairs
    if distance:
        return AcceptClaim.SPARE if distance < CLAIMS else None
    return AcceptClaim.FIRST if workers <= queues else AcceptClaim.EQUAL


def queues(*, workers: int, addresses: int) -> int:
    """Return how many queues each address of a group gets.

    A worker that has a claim to all of them can transfer them to another process in one message.
    """
    return max(1, min(workers, _MOST // max(1, addresses)))
