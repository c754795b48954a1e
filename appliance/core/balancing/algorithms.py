"""The balance algorithms: which of the eligible members takes a connection.

The names are HAProxy's `balance` words. Algorithms keep their state in the members' `turn` (a virtual time
that grows by 1/weight with each connection) or have none, so members may come, go and change weight at any
moment. A weight is the effective one that `health` publishes: the configured weight, less during a slow
start; `first` does not use it.
"""

import hashlib
from collections.abc import Sequence
from math import log
from random import Random
from typing import Final, Protocol, assert_never

from appliance.core.balancing.pool_member import PoolMember
from appliance.model.snapshot.pools import Balance

_MASK: Final = (1 << 64) - 1
_CACHE_SIZE: Final = 8192
"""Keys whose member is cached: one client makes many connections, and each score costs a logarithm."""


class Balancer(Protocol):
    """Chooses a member; `members` is never empty and all weights are above 0."""

    sticky: bool
    """Whether a key belongs to one member, so that it waits for that member when it is full."""

    def choose(self, members: Sequence[PoolMember], key: bytes) -> PoolMember:
        """Return the member that takes the next connection of `key`."""
        ...

    def reweigh(self, member: PoolMember, weight: float) -> None:
        """Give the member another weight."""
        ...

    def members_changed(self) -> None:
        """Store that other members are eligible now; the pool calls it after every change."""
        ...


class RoundRobin:
    """Stride scheduling (Waldspurger): the member with the first turn; a connection delays it by 1/weight.

    The order is that of smooth weighted round robin, with weights that may be fractions and that change while
    they are used, as in a slow start.
    """

    sticky = False

    def __init__(self) -> None:
        self._now = 0.0
        # How many connections a member may lag behind its turn; it does not make up for more.
        self._max_lag = 1.0

    def choose(self, members: Sequence[PoolMember], key: bytes) -> PoolMember:  # noqa: ARG002  # of no use here
        """Return the member whose turn it is."""
        chosen = members[0]
        for member in members:
            if member.turn < chosen.turn:
                chosen = member
        self.postpone(chosen)
        return chosen

    def postpone(self, chosen: PoolMember) -> None:
        """Delay the member's turn by one connection."""
        step = 1.0 / chosen.weight
        turn = chosen.turn
        earliest = self._now - step * self._max_lag
        if turn > self._now:
            self._now = turn
        elif turn < earliest:
            # It was down or full: it gets its share from now on. To make up for all it missed would be a
            # burst of connections to a server that has just come back.
            turn = earliest
        chosen.turn = turn + step

    def reweigh(self, member: PoolMember, weight: float) -> None:
        """Give the member another weight; the wait for its turn shrinks or grows with it."""
        if member.weight and weight:
            member.turn = self._now + (member.turn - self._now) * member.weight / weight
        member.weight = weight

    def members_changed(self) -> None:
        """Do nothing: turns hold for any set of members."""


class LeastConnections(RoundRobin):
    """The member with the fewest connections for its weight; in turn among equals."""

    def choose(self, members: Sequence[PoolMember], key: bytes) -> PoolMember:  # noqa: ARG002  # of no use here
        """Return the least loaded member."""
        chosen = min(members, key=_load)
        self.postpone(chosen)
        return chosen


class RandomOfTwo(RoundRobin):
    """The less loaded of two members drawn by weight; in turn if they are equal.

    HAProxy's `random(2)`: several load balancers that each see only their own connections do not all choose
    the same server (Mitzenmacher, "The Power of Two Choices"). Short connections leave no load behind to
    compare; the turns keep the shares even then.
    """

    def __init__(self, random: Random) -> None:
        super().__init__()
        self._max_lag = 64.0
        self._random = random

    def choose(self, members: Sequence[PoolMember], key: bytes) -> PoolMember:  # noqa: ARG002  # of no use here
        """Return the less loaded one of two."""
        first = self._draw(members)
        others = [member for member in members if member is not first]
        chosen = min(first, self._draw(others), key=_load) if others else first
        self.postpone(chosen)
        return chosen

    def _draw(self, members: Sequence[PoolMember]) -> PoolMember:
        return self._random.choices(members, [member.weight for member in members])[0]


class First(RoundRobin):
    """The first member that is not full (HAProxy's `first`): as few servers as possible are used."""

    def choose(self, members: Sequence[PoolMember], key: bytes) -> PoolMember:  # noqa: ARG002  # of no use here
        """Return the first member."""
        return members[0]


class Rendezvous:
    """Weighted rendezvous hashing: each member has a score for a key, the highest takes it.

    The scores depend only on key, name and weight: they are the same in every worker, generation and
    appliance, and a member that leaves moves only its own keys (HAProxy's `hash-type consistent`).
    """

    sticky = True

    def __init__(self) -> None:
        self._known: dict[bytes, PoolMember] = {}
        self._members: Sequence[PoolMember] = ()

    def choose(self, members: Sequence[PoolMember], key: bytes) -> PoolMember:
        """Return the member that the key belongs to."""
        if members is not self._members:
            self._known, self._members = {}, members
        chosen = self._known.get(key)
        if chosen is None:
            if len(self._known) >= _CACHE_SIZE:
                self._known.clear()
            chosen = self._known[key] = highest(members, key)
        return chosen

    def reweigh(self, member: PoolMember, weight: float) -> None:
        """Give the member another weight."""
        member.weight = weight
        self.members_changed()

    def members_changed(self) -> None:
        """Forget which member the keys belong to."""
        self._known, self._members = {}, ()


def highest(members: Sequence[PoolMember], key: bytes) -> PoolMember:
    """Return the member with the highest weight / -ln(uniform hash) (Schindelhauer and Schomaker)."""
    digest = seed(key)
    return max(members, key=lambda member: -member.weight / log(_uniform(digest ^ member.seed)))


def seed(data: bytes) -> int:
    """Return 64 bits of `data`, the same in every process."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def balancer(kind: Balance, *, random: Random) -> Balancer:
    """Return the algorithm of that name; `random` is used by the algorithm `random` alone."""
    match kind:
        case Balance.ROUNDROBIN:
            return RoundRobin()
        case Balance.LEASTCONN:
            return LeastConnections()
        case Balance.RANDOM:
            return RandomOfTwo(random)
        case Balance.SOURCE | Balance.HASH:
            return Rendezvous()
        case Balance.FIRST:
            return First()
        case _:
            assert_never(kind)


def _load(member: PoolMember) -> tuple[float, float]:
    return member.current / member.weight, member.turn


def _uniform(bits: int) -> float:
    """Return a number between 0 and 1 from 64 bits, mixed by the finaliser of splitmix64."""
    bits = (bits ^ bits >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    bits = (bits ^ bits >> 27) * 0x94D049BB133111EB & _MASK
    return ((bits ^ bits >> 31) + 0.5) / 2.0**64
