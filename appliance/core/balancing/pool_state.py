"""The balancing decision: which server takes a connection, whether it waits, or why it is refused.

One `PoolState` for each pool of a worker. It moves no bytes and uses no socket: `place` decides, `release`
returns the next connection of the queue.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from operator import attrgetter
from random import Random
from typing import Final

from appliance.core.balancing.algorithms import Balancer, balancer, seed
from appliance.core.balancing.eligible_members import eligible_members, is_up
from appliance.core.balancing.pool_member import Address, PoolMember
from appliance.core.balancing.pool_queue import PoolQueue, Waiter, Wish
from appliance.core.balancing.worker_shares import share
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import AdminState, ServerState
from appliance.model.snapshot.pools import OnDown, OnUp, Pool, Server
from appliance.wire.boards.health_board import ServerVerdict
from appliance.wire.literal import is_literal

Health = Mapping[tuple[str, str], ServerVerdict]
"""The records of the health board by the names of pool and server."""

_OUT_OF_SERVICE: Final = frozenset({ServerState.DOWN, ServerState.MAINT})
_KNOWN_TO_SERVE: Final = frozenset({ServerState.UP, ServerState.DRAIN})
_APART: Final = 1e-6
"""Distance of the first turns: it orders members of one weight, and is negligible against any 1/weight."""


class MustWait(Enum):
    """The decision that a connection waits in the queue.

    Either every server that could take it has as many connections as its `max_connections` (HAProxy's
    `maxconn` of a server), or the first checks of the servers are still under way.
    """

    WAIT = "wait"


WAIT: Final = MustWait.WAIT


@dataclass(frozen=True, slots=True, kw_only=True)
class LostMembers:
    """The members that a change has taken out of service, for their sessions.

    `down` has just gone down or into maintenance: a session that is not connected there yet goes elsewhere.
    `closing` are those whose connected sessions end too, by the pool's `on_down` (HAProxy's `on-marked-down
    shutdown-sessions`). `relieved` are backups whose sessions end as another server has come up, by `on_up`
    (`on-marked-up shutdown-backup-sessions`).
    """

    down: tuple[PoolMember, ...]
    closing: tuple[PoolMember, ...]
    relieved: tuple[PoolMember, ...] = ()


class PoolState:
    """A pool in one of `workers` workers; every limit is this worker's share.

    Each worker begins the round with another server, so that several workers together stay even.
    """

    def __init__(self, config: Pool, *, workers: int, index: int, random: Random) -> None:
        self.config = config
        self.members: tuple[PoolMember, ...] = ()
        self._removed: dict[str, PoolMember] = {}
        self._workers, self._index, self._random = workers, index, random
        self._health: Health = {}
        self._queue = PoolQueue()
        self._waiting = self._queue.waiting  # the same dict: used at every end, where a call would cost
        self._eligible: tuple[PoolMember, ...] = ()
        self._checking = False
        self._has_up = False
        self._balancer = balancer(config.balance, random=random)
        self.apply(config)

    @property
    def counted(self) -> tuple[PoolMember, ...]:
        """Members, and those that were removed from the configuration and still have sessions."""
        return (*self.members, *self._removed.values())

    @property
    def eligible(self) -> tuple[PoolMember, ...]:
        """Members that take new connections."""
        return self._eligible

    @property
    def has_up(self) -> bool:
        """Whether a server that is up takes new connections, and not only one that is tried in a panic."""
        return self._has_up

    @property
    def queued(self) -> int:
        """How many connections wait."""
        return len(self._waiting)

    def apply(self, config: Pool) -> LostMembers:
        """Use another configuration; members that stay keep their counters and sessions.

        So does one that comes back while it still has sessions. Returns the result of `observe`.
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
            self._start_balancer(balancer(config.balance, random=self._random))
        self._limited = any(member.limit for member in self.members)
        self._max_queue = share(config.max_queue, workers=self._workers, index=self._index)
        return self.observe(self._health)

    def observe(self, health: Health) -> LostMembers:
        """Apply the health board's states, weights and addresses; return the members thereby lost."""
        self._health = health
        unreachable = [member for member in self.members if member.unreachable]
        down, came_up = list[PoolMember](), False
        for member in self.members:
            before = member.state
            self._update(member, health.get((member.pool, member.name)))
            if member.state in _OUT_OF_SERVICE:
                if before not in _OUT_OF_SERVICE:
                    down.append(member)
            elif before not in _KNOWN_TO_SERVE and is_up(member) and not member.config.backup:
                came_up = True
        self._eligible = self._select()
        self._has_up = any(map(is_up, self._eligible))
        self._checking = any(member.state is ServerState.CHECKING for member in self.members)
        self._balancer.members_changed()
        return LostMembers(
            down=tuple(down),
            closing=tuple(self._closing(down, unreachable)),
            relieved=tuple(self._relieved()) if came_up else (),
        )

    def _closing(self, down: list[PoolMember], unreachable: list[PoolMember]) -> Iterable[PoolMember]:
        """Return members whose sessions end, by on_down; `unreachable` are those that were so before."""
        if self.config.on_down is OnDown.KEEP:
            return ()
        if self.config.on_down is OnDown.CLOSE_SESSIONS:
            return down
        return (member for member in self.members if member.unreachable and member not in unreachable)

    def _relieved(self) -> Iterable[PoolMember]:
        """Return the backups whose sessions end by on_up, those included that are no longer configured."""
        if self.config.on_up is OnUp.KEEP:
            return ()
        return (member for member in self.counted if member.config.backup)

    def place(self, key: bytes, avoid: Collection[PoolMember] = ()) -> PoolMember | MustWait | EndReason:
        """Return the member that takes a connection, which now counts there, or another decision.

        `key` is the input of the algorithms `source` and `hash`. Members in `avoid` are used only if there is
        no other one (HAProxy's `option redispatch`).
        """
        eligible = self._without(avoid) if avoid else self._eligible
        if not eligible:
            return WAIT if self._checking else EndReason.NO_SERVER
        if self._limited:
            return self._place_limited(eligible, key)
        return _count(self._balancer.choose(eligible, key))

    def join(self, server: Server) -> PoolMember:
        """Count a connection of another worker at its server, whatever the server's state.

        A server that is no longer configured is kept for as long as it has connections.
        """
        known = {member.name: member for member in self.counted}
        member = known.get(server.name)
        if member is None:
            place = seed(server.name.encode())  # as it would be here, if the server comes back
            member = PoolMember(
                pool=self.config.name, config=server, address=None, limit=0, seed=place, turn=0.0
            )
            self._removed[server.name] = member
        member.current += 1
        return member

    def has_others(self, avoid: Collection[PoolMember]) -> bool:
        """Return whether a member outside `avoid` takes new connections."""
        return any(member not in avoid for member in self._eligible)

    def enqueue(self, waiter: Waiter, key: bytes, *, avoid: Collection[PoolMember] = ()) -> EndReason | None:
        """Put a connection at the end of the queue; return the reason if `max_queue` already wait.

        It does not wait for members in `avoid` as long as there is another.
        """
        if 0 < self._max_queue <= len(self._waiting):
            return EndReason.QUEUE_FULL
        self.wait(waiter, key, avoid=avoid)
        return None

    def wait(self, waiter: Waiter, key: bytes, *, avoid: Collection[PoolMember] = ()) -> None:
        """Put a connection at the end of the queue, however many wait: another worker had accepted it."""
        member = self._wanted(key, avoid) if self._eligible else None
        self._queue.add(waiter, member, avoid=avoid)

    def dequeue(self, waiter: Waiter) -> None:
        """Take a connection out of the queue; do nothing if it does not wait."""
        self._queue.remove(waiter)

    def release(self, member: PoolMember) -> Waiter | None:
        """Count a connection off; return the one that may try `place` instead, taken out of the queue."""
        member.current -= 1
        if self._removed and not member.current:
            self._removed.pop(member.name, None)
        if not self._waiting or member.full or member not in self._eligible:
            return None
        return self._take_from_queue(member)

    def _take_from_queue(self, member: PoolMember) -> Waiter | None:
        # Compiled, `release` can have no function in it (its declaration is `cpdef`).
        return self._queue.take_first(lambda wish: self._suits(wish, member))

    def depart(self, member: PoolMember) -> None:
        """Count a connection off that continues in another worker: its server is as busy as before."""
        member.current -= 1
        if self._removed and not member.current:
            self._removed.pop(member.name, None)

    def dequeue_all(self, *, but: Callable[[Waiter], bool] | None = None) -> list[Waiter]:
        """Return in order who may try `place` after a change of members; those in `but` stay in the queue."""
        if not self._eligible and self._checking:
            return []
        return self._queue.take_all(but=but)

    def _place_limited(self, eligible: tuple[PoolMember, ...], key: bytes) -> PoolMember | MustWait:
        """Skip full members, unless the key belongs to one."""
        if not self._balancer.sticky:
            eligible = tuple(member for member in eligible if not member.full)
            if not eligible:
                return WAIT
        chosen = self._balancer.choose(eligible, key)
        return WAIT if chosen.full else _count(chosen)

    def _without(self, avoid: Collection[PoolMember]) -> tuple[PoolMember, ...]:
        """Return the eligible members outside `avoid`, or all if there are no others."""
        if not avoid:
            return self._eligible
        return tuple(member for member in self._eligible if member not in avoid) or self._eligible

    def _wanted(self, key: bytes, avoid: Collection[PoolMember]) -> PoolMember:
        """Return the member that a connection waits for; if any will do, the one with the fewest queued."""
        eligible = self._without(avoid)
        if self._balancer.sticky:
            return self._balancer.choose(eligible, key)
        return min(eligible, key=attrgetter("queued"))

    def _suits(self, wish: Wish, member: PoolMember) -> bool:
        """Return whether a connection in the queue would be placed at this member."""
        wanted, avoid = wish
        if self._balancer.sticky:
            return wanted is member
        return not avoid or member in self._without(avoid)

    def _member(self, server: Server, position: int, known: PoolMember | None) -> PoolMember:
        limit = share(server.max_connections, workers=self._workers, index=self._index + position)
        if known is not None:
            known.config, known.limit = server, limit
            if known.name in self._removed:
                # The algorithm may have been replaced meanwhile, and with it the time of its turn.
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

    def _start_balancer(self, chosen: Balancer) -> None:
        """Switch to another algorithm: its time starts again, and so do the turns, which use the old time."""
        self._balancer = chosen
        for position, member in enumerate(self.members):
            member.turn = self._first_turn(position)

    def _first_turn(self, position: int) -> float:
        return (position - self._index) % len(self.config.servers) * _APART

    def _update(self, member: PoolMember, health: ServerVerdict | None) -> None:
        """Apply the board's record of a member."""
        member.state = health.state if health is not None else ServerState.CHECKING
        member.admin = health.admin if health is not None else AdminState.READY
        member.operator_weight = health.operator_weight if health is not None else None
        member.unreachable = health is not None and health.unreachable
        member.address = _address(member.config, health)
        weight = health.weight if health is not None else float(member.config.weight)
        if weight != member.weight:
            self._balancer.reweigh(member, weight)

    def _select(self) -> tuple[PoolMember, ...]:
        """Return the members that take new connections; in a panic each has its full weight.

        The board gives a server that is down the weight 0, which no algorithm can use.
        """
        selected = eligible_members(
            self.members,
            panic=self.config.panic,
            all_backups=self.config.all_backups,
            serving=self._eligible,
        )
        if selected.panic:
            for member in selected.members:
                if member.weight <= 0.0:
                    self._balancer.reweigh(member, member.whole_weight)
        return selected.members


def _count(member: PoolMember) -> PoolMember:
    member.current += 1
    member.total += 1
    return member


def _address(server: Server, health: ServerVerdict | None) -> Address | None:
    """Return the address of a server: the configured one, or the one `health` has resolved its name to."""
    if is_literal(server.host):
        return server.host, server.port
    if health is not None and health.host:
        return health.host, server.port
    return None
