"""Every server of the configuration with its health: what a reload or the operator changes in it.

A server is identified by its pool and name. Its health is kept as long as its address stays the same; a
server at another address is another machine, of which nothing is known yet.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from appliance.core.checks.check_schedule import HealthSettings, health_settings, places
from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.model.server_states import AdminState, ServerState
from appliance.model.server_weights import OperatorWeight, asked_weight
from appliance.model.snapshot.pools import Pool, Server
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.wire.literal import is_literal

Key = tuple[str, str]
"""Pool and server."""

_SPREAD: Final = 0.005
"""Seconds between first checks: three masters are judged at once, a thousand servers make no burst."""


class UnknownServerError(Exception):
    """There is no such pool or server; the message lists the existing ones."""


@dataclass(slots=True, kw_only=True)
class CheckedServer:
    """One server of a pool, with its health.

    `host` is the literal address for checks and sessions, "" while the server's name has none. `weight` is
    the operator's, None if the configured weight holds.
    """

    pool: str
    server: Server
    health: ServerHealth
    host: str
    weight: OperatorWeight | None = None

    @property
    def key(self) -> Key:
        """Pool and server."""
        return self.pool, self.server.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckChanges:
    """What a new configuration changed: `stopped` and `started` are servers whose checks end and begin.

    A server whose check is replaced by another one is in both. `kept` are servers of which nothing differs.
    `events` are the changes of servers that result.
    """

    stopped: frozenset[Key]
    started: frozenset[Key]
    kept: frozenset[Key]
    events: tuple[tuple[Key, HealthEvent], ...]


class CheckedServers:
    """The servers of the snapshot that was applied last.

    `admins` are the operator states by server, including servers that are not configured now: a server that
    leaves the configuration in maint is in maint when it comes back. `weights` are the operator's weights,
    kept alike.
    """

    def __init__(
        self, *, admins: Mapping[Key, AdminState], weights: Mapping[Key, OperatorWeight] | None = None
    ) -> None:
        self.admins = dict(admins)
        self.weights = dict(weights or {})
        self.snapshot: Snapshot | None = None
        self.servers: dict[Key, CheckedServer] = {}
        self._tallies: dict[str, Counter[ServerState]] = {}

    @property
    def states(self) -> Counter[ServerState]:
        """How many servers are in each state."""
        return sum(self._tallies.values(), Counter())

    def differs(self, snapshot: Snapshot) -> bool:
        """Return whether applying the snapshot would change an address, a weight or a check."""
        if self.snapshot is None:
            return True
        before, after = ({each.name: each for each in one.pools} for one in (self.snapshot, snapshot))
        return any(
            _health_relevant(before.get(name)) != _health_relevant(after.get(name))
            for name in before.keys() | after.keys()
            if before.get(name) != after.get(name)
        )

    def apply(self, snapshot: Snapshot, *, now: float) -> CheckChanges:
        """Follow the servers of a snapshot from now on; return what that changed.

        First checks are spread over a window that grows with the number of servers, but is no longer than an
        interval: three masters are judged at once, and a thousand servers do not all get a handshake at once.
        """
        before = {each.name: each for each in self.snapshot.pools} if self.snapshot else {}
        old, self.servers, self.snapshot = self.servers, {}, snapshot
        tallies, self._tallies = self._tallies, {}
        started: set[Key] = set()
        kept: set[Key] = set()
        events = []
        count = sum(len(pool.servers) for pool in snapshot.pools)
        for pool in snapshot.pools:
            if before.get(pool.name) is pool:  # a pool that stays is decoded only once
                keys = [(pool.name, server.name) for server in pool.servers]
                self.servers.update((key, old[key]) for key in keys)
                self._tallies[pool.name] = tallies[pool.name]
                kept.update(keys)
                continue
            tally = self._tallies[pool.name] = Counter()
            for server in pool.servers:
                key = pool.name, server.name
                checked, event = self._checked(old.get(key), pool, server, tally, now=now, count=count)
                if checked is not old.get(key) or checked.server.check != server.check:
                    started.add(key)
                checked.server, checked.weight = server, self.weights.get(key)
                self.servers[key] = checked
                events += [(key, event)] if event else []
        gone = frozenset(key for key, checked in old.items() if self.servers.get(key) is not checked)
        return CheckChanges(
            stopped=gone | (started & old.keys()),
            started=frozenset(started),
            kept=frozenset(kept),
            events=tuple(events),
        )

    def restore(self, records: tuple[ServerHealthRecord, ...], *, now: float, wall: float) -> None:
        """Continue from the records of an earlier process, for servers whose address has not changed since.

        A server with a name begins with the last address of the name: a restart must not move it.
        """
        for record in records:
            checked = self.servers.get((record.pool, record.server))
            if checked is None or record.port != checked.server.port:
                continue
            if not is_literal(checked.server.host):
                checked.host = record.host
            elif record.host != checked.server.host:
                continue
            checked.health.restore(record, now=now, wall=wall)

    def set_admin(self, pool: str, server: str, admin: AdminState, *, now: float) -> HealthEvent | None:
        """Put a server into the operator's state; return what that changed. Raises UnknownServerError."""
        checked = self.find(pool, server)
        self.admins = self.admins_with(checked.key, admin)
        return checked.health.set_admin(admin, now=now)

    def admins_with(self, key: Key, admin: AdminState) -> dict[Key, AdminState]:
        """Return the operator states including this one; servers that are ready have none."""
        others = {known: state for known, state in self.admins.items() if known != key}
        return others if admin is AdminState.READY else {**others, key: admin}

    def set_weight(self, key: Key, weight: OperatorWeight | None, *, now: float) -> bool:
        """Set the operator's weight, None for the configured; True if changed. Raises UnknownServerError."""
        checked = self.find(*key)
        self.weights = self.weights_with(key, weight)
        if checked.weight == weight:
            return False
        checked.weight = weight
        asked = asked_weight(checked.server.weight, weight)
        checked.health.change_settings(replace(checked.health.settings, weight=asked), now=now)
        return True

    def weights_with(self, key: Key, weight: OperatorWeight | None) -> dict[Key, OperatorWeight]:
        """Return the operator's weights including this one."""
        others = {known: each for known, each in self.weights.items() if known != key}
        return others if weight is None else {**others, key: weight}

    def find(self, pool: str, server: str) -> CheckedServer:
        """Return a server; raises UnknownServerError."""
        checked = self.servers.get((pool, server))
        if checked is not None:
            return checked
        pools = sorted({known for known, _ in self.servers})
        if pool not in pools:
            raise UnknownServerError(f"unknown pool {pool!r}; known: {', '.join(pools) or 'none'}")
        servers = sorted(name for known, name in self.servers if known == pool)
        raise UnknownServerError(f"unknown server {pool}/{server}; known in {pool}: {', '.join(servers)}")

    def hosts(self, name: str, addresses: Sequence[str]) -> dict[Key, str]:
        """Return which address each server of a name should have, "" for none.

        Servers of one pool with the same name and port have different addresses, as in HAProxy: each keeps
        its own as long as the name has it. A server that is alone has the first address.
        """
        sharing: dict[tuple[str, int], list[CheckedServer]] = {}
        for checked in self.servers.values():
            if checked.server.host == name:
                sharing.setdefault((checked.pool, checked.server.port), []).append(checked)
        return {key: host for each in sharing.values() for key, host in _shared(each, addresses)}

    def set_host(self, key: Key, host: str, *, now: float) -> bool:
        """Store the present address of a server's name, "" if it has none now; True for a change.

        The health of a server that had an address then starts again: it is another machine.
        """
        checked = self.servers[key]
        if host == checked.host:
            return False
        if checked.host:
            before, tally = checked.health, checked.health.tally
            before.count_in(Counter())
            checked.health = self._begin(key, before.settings, tally, now=now, window=0.0)
        checked.host = host
        return True

    def up(self, pool: str) -> tuple[int, int]:
        """Return how many servers of a pool take traffic, and how many there are."""
        tally = self._tally(pool)
        return tally[ServerState.UP], tally.total()

    def unchecked(self, pool: str) -> int:
        """Return how many servers of a pool have no first verdict yet."""
        return self._tally(pool)[ServerState.CHECKING]

    def _tally(self, pool: str) -> Counter[ServerState]:
        return self._tallies.get(pool, Counter())

    def _checked(
        self,
        old: CheckedServer | None,
        pool: Pool,
        server: Server,
        tally: Counter[ServerState],
        *,
        now: float,
        count: int,
    ) -> tuple[CheckedServer, HealthEvent | None]:
        weight = self.weights.get((pool.name, server.name))
        settings = health_settings(pool, server, weight, places=places(count))
        window = min(_SPREAD * count, server.check.interval) if server.check else 0.0
        if old is not None and (old.server.host, old.server.port) == (server.host, server.port):
            old.health.count_in(tally)
            return old, old.health.change_settings(settings, now=now, window=window)
        health = self._begin((pool.name, server.name), settings, tally, now=now, window=window)
        host = server.host if is_literal(server.host) else ""
        return CheckedServer(pool=pool.name, server=server, health=health, host=host), None

    def _begin(
        self,
        key: Key,
        settings: HealthSettings,
        tally: Counter[ServerState],
        *,
        now: float,
        window: float,
    ) -> ServerHealth:
        admin = self.admins.get(key, AdminState.READY)
        return ServerHealth(settings, now=now, window=window, admin=admin, tally=tally)


def _shared(servers: Sequence[CheckedServer], addresses: Sequence[str]) -> Iterator[tuple[Key, str]]:
    if len(servers) == 1:
        yield servers[0].key, addresses[0]
        return
    owners = {each.host: each.key for each in reversed(servers) if each.host in addresses}
    free = iter([each for each in addresses if each not in owners])
    for each in servers:
        yield each.key, each.host if owners.get(each.host) == each.key else next(free, "")


def _health_relevant(pool: Pool | None) -> dict[str, tuple[str, int, HealthSettings]]:
    if pool is None:
        return {}
    return {each.name: (each.host, each.port, health_settings(pool, each)) for each in pool.servers}
