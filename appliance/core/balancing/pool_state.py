"""The balancing decision: which server takes a connection, whether it waits, or why it is refused.

One `PoolState` for each pool of a worker. It moves no bytes and knows no socket: `place` decides, `end` says
whose turn in the queue has come. A waiter is anything hashable.
"""

from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from random import Random
from typing import Final, Generic, TypeVar

from appliance.core.balancing.algorithms import Balancer, balancer, seed
from appliance.core.balancing.pool_member import Address, PoolMember
from appliance.core.balancing.worker_shares import share
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import AdminState, ServerState
from appliance.model.snapshot.pools import OnDown, Pool, Server
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.wire.literal import is_literal

Waiter = TypeVar("Waiter", bound=Hashable)
Health = Mapping[tuple[str, str], ServerHealthRecord]

_CLOSED: Final = frozenset({ServerState.DOWN, ServerState.MAINT})
_APART: Final = 1e-6
"""Distance of the first turns: it orders members of one weight, and is nothing against any 1/weight."""


class MustWait(Enum):
    """The decision that a connection has to wait."""

    WAIT = "wait"


WAIT: Final = MustWait.WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class LostMembers:
    """What a change has cost: members that have just gone `down` or into maintenance, and whose sessions end.

    A session that has no connection to a member of `down` yet goes elsewhere. One that has a connection to a
    member of `closing` ends (the pool's `on_down`).
    """

    down: tuple[PoolMember, ...]
    closing: tuple[PoolMember, ...]


class PoolState(Generic[Waiter]):
    """A pool as one of `workers` workers sees it; every limit is this worker's share.

    Each worker begins the round with another server, so that several of them together stay even.
    """

    def __init__(self, config: Pool, *, workers: int, index: int, random: Random) -> None:
        self.config = config
        self.members: tuple[PoolMember, ...] = ()
        self._removed: dict[str, PoolMember] = {}
        self._workers, self._index, self._random = workers, index, random
        self._health: Health = {}
        self._waiting: dict[Waiter, tuple[PoolMember | None, Collection[PoolMember]]] = {}
        self._eligible: tuple[PoolMember, ...] = ()
        self._checking = False
        self._has_up = False
        self._balancer = balancer(config.balance, random=random)
        self.apply(config)

    @property
    def counted(self) -> tuple[PoolMember, ...]:
        """Members, and those that were removed and have sessions still."""
        return (*self.members, *self._removed.values())

    @property
    def eligible(self) -> tuple[PoolMember, ...]:
        """Members that take new connections."""
        return self._eligible

    @property
    def has_up(self) -> bool:
        """Whether a server takes new connections that is up, and not only tried in a panic."""
        return self._has_up

    @property
    def queued(self) -> int:
        """How many wait."""
        return len(self._waiting)

    def apply(self, config: Pool) -> LostMembers:
        """Obey another configuration; members that stay keep their counters and sessions.

        So does one that comes back while it has sessions still. Returns what `observe` does.
        """
        replaced = config.balance is not self.config.balance
        self.config = config
        known = {member.name: member for member in self.counted}
        self.members = tuple(
            self._member(server, position, known.get(server.name))
            for position, server in enumerate(config.servers)
        )
        for member in self.members:
            known.pop(member.name, None)
        self._removed = {name: member for name, member in known.items() if member.current}
        if replaced:
            self._begin(balancer(config.balance, random=self._random))
        self._limited = any(member.limit for member in self.members)
        self._max_queue = share(config.max_queue, workers=self._workers, index=self._index)
        return self.observe(self._health)

    def observe(self, health: Health) -> LostMembers:
        """Take the prober's view; return what has changed for the worse."""
        self._health = health
        silent = [member for member in self.members if member.unreachable]
        down = [
            member for member in self.members if self._update(member, health.get((member.pool, member.name)))
        ]
        self._eligible = tuple(self._select())
        self._has_up = any(map(_takes, self._eligible))
        self._checking = any(member.state is ServerState.CHECKING for member in self.members)
        self._balancer.forget()
        return LostMembers(down=tuple(down), closing=tuple(self._closing(down, silent)))

    def _closing(self, down: list[PoolMember], silent: list[PoolMember]) -> Iterable[PoolMember]:
        """Return members whose sessions end, by on_down; `silent` were unreachable before already."""
        if self.config.on_down is OnDown.KEEP:
            return ()
        if self.config.on_down is OnDown.CLOSE_SESSIONS:
            return down
        return (member for member in self.members if member.unreachable and member not in silent)

    def place(self, key: bytes, *, avoid: Collection[PoolMember] = ()) -> PoolMember | MustWait | EndReason:
        """Return the member that takes a connection, which now counts there, or what else happens to it.

        `avoid` are members not to be used as long as there is another.
        """
        eligible = self._without(avoid)
        if not eligible:
            return WAIT if self._checking else EndReason.NO_SERVER
        if self._limited:
            return self._place_limited(eligible, key)
        return _taken(self._balancer.choose(eligible, key))

    def has_others(self, avoid: Collection[PoolMember]) -> bool:
        """Return whether a member takes new connections that is not to be avoided."""
        return any(member not in avoid for member in self._eligible)

    def wait(self, waiter: Waiter, key: bytes, *, avoid: Collection[PoolMember] = ()) -> EndReason | None:
        """Put a connection at the end of the queue; return the reason where it is full.

        `avoid` are members that it does not wait for as long as there is another.
        """
        if 0 < self._max_queue <= len(self._waiting):
            return EndReason.QUEUE_FULL
        member = self._wanted(key, avoid) if self._eligible else None
        self._waiting[waiter] = member, avoid
        if member is not None:
            member.queued += 1
        return None

    def leave(self, waiter: Waiter) -> None:
        """Take a connection out of the queue, wherever it stands; nothing happens where it does not wait."""
        if waiter not in self._waiting:
            return
        member, _ = self._waiting.pop(waiter)
        if member is not None:
            member.queued -= 1

    def end(self, member: PoolMember) -> Waiter | None:
        """Count a connection off; return who may try `place` in its stead, taken out of the queue."""
        member.current -= 1
        if self._removed and not member.current:
            self._removed.pop(member.name, None)
        if not self._waiting or member.full or member not in self._eligible:
            return None
        return self._next(member)

    def released(self) -> list[Waiter]:
        """Return who may try `place` again after a change of members, taken out of the queue, in order."""
        if not self._eligible and self._checking:
            return []
        waiters = list(self._waiting)
        for waiter in waiters:
            self.leave(waiter)
        return waiters

    def _place_limited(self, eligible: tuple[PoolMember, ...], key: bytes) -> PoolMember | MustWait:
        """Pass over full members, except where the key belongs to one."""
        if not self._balancer.sticky:
            eligible = tuple(member for member in eligible if not member.full)
            if not eligible:
                return WAIT
        chosen = self._balancer.choose(eligible, key)
        return WAIT if chosen.full else _taken(chosen)

    def _without(self, avoid: Collection[PoolMember]) -> tuple[PoolMember, ...]:
        """Return the eligible members that are not to be avoided, or all where there are no others."""
        if not avoid:
            return self._eligible
        return tuple(member for member in self._eligible if member not in avoid) or self._eligible

    def _wanted(self, key: bytes, avoid: Collection[PoolMember]) -> PoolMember:
        """Return whom a connection waits for; where any will do, they are shown to share the queue."""
        eligible = self._without(avoid)
        if self._balancer.sticky:
            return self._balancer.choose(eligible, key)
        return min(eligible, key=attrgetter("queued"))

    def _next(self, member: PoolMember) -> Waiter | None:
        """Take the first out of the queue that would have this member."""
        sticky = self._balancer.sticky
        for waiter, (wanted, avoid) in self._waiting.items():
            if (wanted is member) if sticky else (not avoid or member in self._without(avoid)):
                self.leave(waiter)
                return waiter
        return None

    def _member(self, server: Server, position: int, known: PoolMember | None) -> PoolMember:
        limit = share(server.max_connections, workers=self._workers, index=self._index + position)
        if known is not None:
            known.config, known.limit = server, limit
            if known.name in self._removed:
                # The algorithm may have been replaced meanwhile, and with it the time that its turn is in.
                known.turn = self._first_turn(position)
            return known
        return PoolMember(
            pool=self.config.name,
            config=server,
            address=None,
            limit=limit,
            seed=seed(server.name.encode()),
            turn=self._first_turn(position),
        )

    def _begin(self, chosen: Balancer) -> None:
        """Go on with another algorithm: its time begins anew, and so do the turns, which old times are in."""
        self._balancer = chosen
        for position, member in enumerate(self.members):
            member.turn = self._first_turn(position)

    def _first_turn(self, position: int) -> float:
        return (position - self._index) % len(self.config.servers) * _APART

    def _update(self, member: PoolMember, health: ServerHealthRecord | None) -> bool:
        before = member.state
        member.state = health.state if health is not None else ServerState.CHECKING
        member.admin = health.admin if health is not None else AdminState.READY
        member.unreachable = health is not None and health.unreachable
        member.address = _address(member.config, health)
        weight = health.weight if health is not None else float(member.config.weight)
        if weight != member.weight:
            self._balancer.reweigh(member, weight)
        return member.state in _CLOSED and before not in _CLOSED

    def _select(self) -> Iterable[PoolMember]:
        """Primaries that are up; in a panic those that are down as well; backups as the last resort."""
        reachable = [member for member in self.members if member.address is not None]
        primaries = [member for member in reachable if not member.config.backup]
        up = [member for member in primaries if _takes(member)]
        if self._panics(primaries, up):
            return map(self._restore, filter(_wanted_in_panic, primaries))
        return up or [member for member in reachable if member.config.backup and _takes(member)]

    def _panics(self, primaries: list[PoolMember], up: list[PoolMember]) -> bool:
        """Return whether too few are up of those that the operator wants and the checks have judged.

        With none up the checks are waited for where they have not ended: the next one may be.
        """
        if not up and any(member.state is ServerState.CHECKING for member in primaries):
            return False
        return len(up) < sum(map(_wanted_in_panic, primaries)) * self.config.panic

    def _restore(self, member: PoolMember) -> PoolMember:
        """Give a server that the board weighs 0 because it is down its full part in a panic."""
        if member.weight <= 0.0:
            self._balancer.reweigh(member, float(member.config.weight))
        return member


def _taken(member: PoolMember) -> PoolMember:
    member.current += 1
    member.total += 1
    return member


def _takes(member: PoolMember) -> bool:
    return member.state is ServerState.UP and member.weight > 0.0


def _wanted_in_panic(member: PoolMember) -> bool:
    judged = member.state is not ServerState.CHECKING
    return judged and member.admin is AdminState.READY and member.config.weight > 0


def _address(server: Server, health: ServerHealthRecord | None) -> Address | None:
    if is_literal(server.host):
        return server.host, server.port
    if health is not None and health.host:
        return health.host, server.port
    return None
