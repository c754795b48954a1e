"""The pools and servers in a status: the findings of `health`, and the sums of all workers' counters."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from appliance.core.status.observations import Observations
from appliance.core.status.status import (
    CheckStatus,
    PoolStatus,
    ServerStatus,
)
from appliance.model.check_results import CheckResult
from appliance.model.server_states import ServerState
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.pools import Pool, Server
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.ended_workers import EndedWorkers
from appliance.wire.boards.health_board import PoolHealthRecord, ServerHealthRecord
from appliance.wire.boards.worker_board import ServerCounters, WorkerBoard, summed
from appliance.wire.lines.forward_status import ForwardStatus

_NOTHING: Final = ServerCounters("", "", *(0,) * 6)


def pool_statuses(snapshot: Snapshot, observations: Observations) -> tuple[PoolStatus, ...]:
    """Return every configured pool; its counters are those of all workers, including ended ones."""
    frontends = [frontend for group in snapshot.groups for frontend in group.frontends]
    named = [name for each in frontends for name in (*each.pools, each.needs)]
    in_use = frozenset(filter(None, (*named, snapshot.stats.needs if snapshot.stats else None)))
    figures = _server_figures(observations)
    return tuple(_pool(pool, figures, in_use) for pool in snapshot.pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ServerFigures:
    """Figures of servers, by pool and server; `unjudged` is the state where health has written nothing."""

    unjudged: ServerState | None
    health: Mapping[tuple[str, str], ServerHealthRecord]
    pools: Mapping[str, PoolHealthRecord]
    counters: Mapping[tuple[str, str], list[ServerCounters]]


def health_records(observations: Observations) -> dict[tuple[str, str], ServerHealthRecord]:
    """Return what `health` wrote last about servers, by pool and server; empty if no appliance runs."""
    board = observations.health if observations.living else None
    return board.by_name() if board else {}


def _server_figures(observations: Observations) -> _ServerFigures:
    counters: dict[tuple[str, str], list[ServerCounters]] = {}
    forward = observations.answer(ForwardStatus)
    all_counted: list[WorkerBoard | EndedWorkers | ForwardStatus] = [
        *observations.workers,
        *observations.ended.values(),
        *([forward] if forward else []),
    ]
    for counted in all_counted:
        for each in counted.servers:
            counters.setdefault((each.pool, each.server), []).append(each)
    unjudged = ServerState.CHECKING if observations.living else None
    pools = {each.pool: each for each in observations.health.pools} if observations.health else {}
    health = health_records(observations)
    return _ServerFigures(unjudged=unjudged, health=health, pools=pools, counters=counters)


def _pool(pool: Pool, figures: _ServerFigures, in_use: frozenset[str]) -> PoolStatus:
    servers = tuple(_server(pool, server, figures) for server in pool.servers)
    up = sum(server.state is ServerState.UP and server.effective_weight != 0 for server in servers)
    record = figures.pools.get(pool.name) or PoolHealthRecord(pool=pool.name)
    return PoolStatus(
        name=pool.name,
        balance=pool.balance,
        in_use=pool.name in in_use,
        ok=up > 0 or pool.name not in in_use,
        up=up,
        current=sum(server.current for server in servers),
        total=sum(server.total for server in servers),
        queued=sum(server.queued for server in servers),
        downs=record.downs,
        down_seconds=record.down_seconds,
        down_since=record.down_since or None,
        servers=servers,
    )


def _server(pool: Pool, server: Server, figures: _ServerFigures) -> ServerStatus:
    health = figures.health.get((pool.name, server.name))
    parts = figures.counters.get((pool.name, server.name))
    counted = summed(parts) if parts else _NOTHING
    return ServerStatus(
        name=server.name,
        address=_address(server.host, server.port),
        resolved=(health.host or None) if health else None,
        state=health.state if health else figures.unjudged,
        since=health.since if health else None,
        backup=server.backup,
        weight=server.weight,
        operator_weight=str(health.operator_weight) if health and health.operator_weight else None,
        effective_weight=health.weight if health else None,
        check=_check(health) if health else None,
        current=counted.current,
        total=counted.total,
        failed=counted.failed,
        queued=counted.queued,
        bytes_in=counted.bytes_in,
        bytes_out=counted.bytes_out,
        given_up=counted.given_up,
        retried=counted.retried,
        redispatched=counted.redispatched,
        client_aborts=counted.client_aborts,
        server_aborts=counted.server_aborts,
        connected=counted.connected,
        ended=counted.ended,
        queue_seconds=counted.queue_seconds,
        connect_seconds=counted.connect_seconds,
        session_seconds=counted.session_seconds,
        longest_queue=counted.longest_queue,
        longest_connect=counted.longest_connect,
        longest_session=counted.longest_session,
        downs=health.downs if health else 0,
        down_seconds=health.down_seconds if health else 0.0,
        failed_up=health.failed_up if health else 0,
    )


@lru_cache(maxsize=65536)
def _address(host: str, port: int) -> str:
    return str(Bind(host=host, port=port))


def _check(health: ServerHealthRecord) -> CheckStatus | None:
    if health.result is CheckResult.UNCHECKED:
        return None
    return CheckStatus(
        result=health.result,
        status=health.status or None,
        detail=health.detail,
        duration=health.duration,
        ended_at=health.checked_at,
        streak=health.streak,
        failed=health.failed,
    )
