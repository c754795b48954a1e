"""Every server of the configuration with its health: what a new configuration or the operator changes in it.

A server is known by its pool and name. Its health is kept as long as its address stays the same; a server at
another address is another machine, of which nothing is known yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from appliance.core.checks.server_health import HealthEvent, HealthSettings, ServerHealth, phase
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.pools import Pool, Server
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.health_board import ServerHealthRecord

Key = tuple[str, str]
"""Pool and server."""

_SPREAD: Final = 0.005
"""Seconds between first checks: three masters are known at once, a thousand servers make no burst."""


class UnknownServerError(Exception):
    """There is no such pool or server; the message lists those that there are."""


@dataclass(slots=True, kw_only=True)
class CheckedServer:
    """One server. `host` is the literal address that checks and sessions go to, "" when none is known."""

    pool: str
    server: Server
    health: ServerHealth
    host: str

    @property
    def key(self) -> Key:
        """Pool and server."""
        return self.pool, self.server.name


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckChanges:
    """What a new configuration did: `stopped` and `started` are the checks to end and to begin."""

    stopped: frozenset[Key]
    started: frozenset[Key]
    events: tuple[tuple[Key, HealthEvent], ...]


def is_literal(host: str) -> bool:
    """Return whether a host is an address; anything else is a name to resolve."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


class CheckedServers:
    """The servers of the snapshot applied last; `admins` are operator states by server."""

    def __init__(self, *, admins: Mapping[Key, AdminState]) -> None:
        self.admins = dict(admins)
        self.snapshot: Snapshot | None = None
        self.members: dict[Key, CheckedServer] = {}

    def differs(self, snapshot: Snapshot) -> bool:
        """Return whether applying the snapshot would change anything here."""
        return self.snapshot is None or _view(self.snapshot) != _view(snapshot)

    def apply(self, snapshot: Snapshot, *, now: float) -> CheckChanges:
        """Make the servers of the snapshot ours."""
        old, self.members, self.snapshot = self.members, {}, snapshot
        started, events = set(), []
        wanted = _servers(snapshot)
        for key, (pool, server) in wanted.items():
            window = _SPREAD * len(wanted)
            member, event = self._member(old.get(key), pool, server, now=now, window=window)
            if member is not old.get(key) or member.server.check != server.check:
                started.add(key)
            member.server = server
            self.members[key] = member
            events += [(key, event)] if event else []
        gone = frozenset(key for key, member in old.items() if self.members.get(key) is not member)
        return CheckChanges(
            stopped=gone | (started & old.keys()), started=frozenset(started), events=tuple(events)
        )

    def restore(self, records: tuple[ServerHealthRecord, ...], *, now: float, wall: float) -> None:
        """Go on from the records of an earlier process, for servers whose address has not changed since."""
        for record in records:
            member = self.members.get((record.pool, record.server))
            if member is None or record.port != member.server.port:
                continue
            if not is_literal(member.server.host):
                member.host = record.host
            elif record.host != member.server.host:
                continue
            member.health.restore(record, now=now, wall=wall)

    def operate(self, pool: str, server: str, admin: AdminState, *, now: float) -> HealthEvent | None:
        """Take the operator's word for a server; raises UnknownServerError."""
        member = self.find(pool, server)
        self.admins = self.admins_with(member.key, admin)
        return member.health.operate(admin, now=now)

    def admins_with(self, key: Key, admin: AdminState) -> dict[Key, AdminState]:
        """Return the operator states as they will be with this one; ready servers have none."""
        others = {known: state for known, state in self.admins.items() if known != key}
        return others if admin is AdminState.READY else {**others, key: admin}

    def find(self, pool: str, server: str) -> CheckedServer:
        """Return a server; raises UnknownServerError."""
        member = self.members.get((pool, server))
        if member is not None:
            return member
        pools = sorted({known for known, _ in self.members})
        if pool not in pools:
            raise UnknownServerError(f"unknown pool {pool!r}; known: {', '.join(pools) or 'none'}")
        servers = sorted(name for known, name in self.members if known == pool)
        raise UnknownServerError(f"unknown server {pool}/{server}; known in {pool}: {', '.join(servers)}")

    def relocate(self, key: Key, host: str, *, now: float) -> bool:
        """Note the address that a server's name stands for now; True when its checks have to begin anew."""
        member = self.members[key]
        if host == member.host:
            return False
        if member.host:
            member.health = self._begin(key, member.health.terms, now=now, window=0.0)
        member.host = host
        return True

    def up(self, pool: str) -> tuple[int, int]:
        """Return how many servers of a pool take traffic, and how many there are."""
        servers = [member.health for (name, _), member in self.members.items() if name == pool]
        fit = [
            each for each in servers if each.verdict is HealthVerdict.UP and each.admin is AdminState.READY
        ]
        return len(fit), len(servers)

    def _member(
        self, old: CheckedServer | None, pool: Pool, server: Server, *, now: float, window: float
    ) -> tuple[CheckedServer, HealthEvent | None]:
        terms = _terms(pool, server)
        window = min(window, server.check.interval) if server.check else 0.0
        if old is not None and (old.server.host, old.server.port) == (server.host, server.port):
            return old, old.health.revise(terms, now=now, window=window)
        health = self._begin((pool.name, server.name), terms, now=now, window=window)
        host = server.host if is_literal(server.host) else ""
        return CheckedServer(pool=pool.name, server=server, health=health, host=host), None

    def _begin(self, key: Key, terms: HealthSettings, *, now: float, window: float) -> ServerHealth:
        return ServerHealth(terms, now=now, window=window, admin=self.admins.get(key, AdminState.READY))


def record(member: CheckedServer, *, now: float, wall: float) -> ServerHealthRecord:
    """Return what the board says of a server; `wall` is `now` in Unix seconds."""
    health, server = member.health, member.server
    last, checked_at = health.last, health.checked_at
    return ServerHealthRecord(
        pool=member.pool,
        server=server.name,
        verdict=health.verdict,
        admin=health.admin,
        weight=health.weight,
        since=wall - (now - health.since),
        checked_at=0.0 if checked_at is None else wall - (now - checked_at),
        duration=last.duration,
        result=last.result,
        status=last.status,
        streak=health.streak,
        failed=health.failed,
        host=member.host,
        port=server.port,
        detail=last.detail,
        unreachable=health.unreachable,
    )


def _servers(snapshot: Snapshot) -> dict[Key, tuple[Pool, Server]]:
    return {(pool.name, server.name): (pool, server) for pool in snapshot.pools for server in pool.servers}


def _view(snapshot: Snapshot) -> dict[Key, tuple[str, int, HealthSettings]]:
    servers = _servers(snapshot).items()
    return {key: (server.host, server.port, _terms(pool, server)) for key, (pool, server) in servers}


def _terms(pool: Pool, server: Server) -> HealthSettings:
    return HealthSettings(
        check=server.check,
        weight=server.weight,
        slow_start=pool.slow_start,
        phase=phase(pool.name, server.name),
    )
