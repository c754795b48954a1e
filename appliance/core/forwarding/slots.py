"""The slots of a frontend: the server for each of the numbers that a connection draws or hashes to.

The number of slots never changes, so that `jhash saddr mod SLOTS` gives a client the same slot whichever
servers there are. A server has slots in proportion to its weight, so slow start is a matter of slots too.
"""

import heapq
from collections.abc import Sequence
from typing import Final

from appliance.core.balancing.algorithms import highest
from appliance.core.balancing.pool_member import PoolMember
from appliance.model.snapshot.pools import Balance

SLOTS: Final = 1021
"""How many there are: a prime, as in Maglev's tables; one is a thousandth of the connections."""

HASHED: Final = frozenset({Balance.SOURCE, Balance.HASH})
"""The algorithms in which a connection's addresses determine its slot."""


def slots(members: Sequence[PoolMember], balance: Balance) -> tuple[str, ...]:
    """Return the name of the server of each slot; empty if no member takes connections."""
    if not members:
        return ()
    return _hashed(members) if balance in HASHED else _interleaved(members)


def _hashed(members: Sequence[PoolMember]) -> tuple[str, ...]:
    """Give each slot to the member with the highest score for it: a member that leaves moves only its own."""
    return tuple(highest(members, slot.to_bytes(2, "big")).name for slot in range(SLOTS))


def _interleaved(members: Sequence[PoolMember]) -> tuple[str, ...]:
    """Give the slots in turn, by stride scheduling, so that they are a weighted round robin."""
    turns = [(0.5 / member.weight, position) for position, member in enumerate(members)]
    heapq.heapify(turns)
    found = []
    for _ in range(SLOTS):
        turn, position = turns[0]
        found.append(members[position].name)
        heapq.heapreplace(turns, (turn + 1.0 / members[position].weight, position))
    return tuple(found)
