"""The rows of HAProxy's statistics: each a frontend, a pool (`backend`), or a server.

The columns and their meaning are those of management.txt 9.1; a column that a row lacks is empty, as in
HAProxy. Counters of requests and responses are of HTTP and stay at 0, as in HAProxy for `mode tcp`. Two
columns of pools differ: `slim` is the sum of the limits of the frontends, while HAProxy writes `fullconn`,
and `econ` counts every session that ended without a server.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.haproxy.activity import Activity, ProxyKind, Trend
from appliance.core.haproxy.server_status import check_columns, server_status
from appliance.core.status.status import FrontendStatus, PoolStatus, ServerStatus, Status
from appliance.model.server_states import ServerState
from appliance.model.server_weights import asked_weight, operator_weight
from appliance.model.snapshot.pools import Pool, Server
from appliance.model.snapshot.snapshot import Snapshot

Row = Mapping[str, int | str]
"""One row by its columns. Times of connections and checks are milliseconds, all others seconds."""

_MILLI: Final = 1000
_FIRST_ID: Final = 2  # HAProxy's own first proxy, of its stats socket, is number 1
_HTTP: Final = {"dreq": 0, "dresp": 0, "wrew": 0, "eint": 0}
_REUSE: Final = {"reuse": 0, "rtime": 0, "rtime_max": 0}  # of HTTP too: TCP has no response to wait for
_SERVER_ALWAYS: Final[Row] = {"dresp": 0, "wrew": 0, "eint": 0, **_REUSE, "pid": 1, "type": 2, "mode": "tcp"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The source of the rows at one moment; `now` is Unix seconds."""

    status: Status
    snapshot: Snapshot
    activity: Activity
    now: float


def rows(observed: Observed) -> Iterator[Row]:
    """Yield all rows in HAProxy's order: frontends, then each pool's servers and the pool itself."""
    number = _FIRST_ID
    for frontend in observed.status.frontends:
        yield {**_frontend(frontend, observed), "iid": number}
        number += 1
    configured = {pool.name: pool for pool in observed.snapshot.pools}
    for pool in observed.status.pools:
        for position, (server, settings) in enumerate(
            zip(pool.servers, configured[pool.name].servers, strict=True), start=1
        ):
            yield {**_server(pool, server, settings, observed), "iid": number, "sid": position}
        yield {**_pool(pool, configured[pool.name], observed), "iid": number}
        number += 1


def _frontend(frontend: FrontendStatus, observed: Observed) -> dict[str, int | str]:
    trend = observed.activity.trend((ProxyKind.FRONTEND, frontend.name, ""))
    serving = any(each.workers for each in observed.status.programs if each.name == frontend.program)
    return {
        "pxname": frontend.name,
        "svname": "FRONTEND",
        "scur": frontend.current,
        "smax": max(trend.most_current, frontend.current),
        "slim": frontend.max_connections,
        "stot": frontend.total,
        "bin": frontend.bytes_in,
        "bout": frontend.bytes_out,
        **_HTTP,
        "ereq": 0,
        "status": "OPEN" if serving else "STOP",
        "pid": 1,
        "sid": 0,
        "type": 0,
        "rate": trend.rate,
        "rate_lim": 0,
        "rate_max": trend.most_rate,
        "mode": "tcp",
        "conn_rate": trend.rate,
        "conn_rate_max": trend.most_rate,
        "conn_tot": frontend.total + frontend.denied,
        "dcon": frontend.denied,
        "dses": 0,
    }


def _server(
    pool: PoolStatus, server: ServerStatus, settings: Server, observed: Observed
) -> dict[str, int | str]:
    trend = observed.activity.trend((ProxyKind.SERVER, pool.name, server.name))
    asked, effective = _asked(server), server.effective_weight
    row: dict[str, int | str] = {
        **_SERVER_ALWAYS,
        "pxname": pool.name,
        "svname": server.name,
        "qcur": server.queued,
        "qmax": max(trend.most_queued, server.queued),
        "scur": server.current,
        "smax": max(trend.most_current, server.current),
        "stot": server.total,
        "bin": server.bytes_in,
        "bout": server.bytes_out,
        "econ": server.given_up,
        "eresp": server.server_aborts,
        "wretr": server.retried,
        "wredis": server.redispatched,
        "status": server_status(server, settings.check),
        "weight": _whole(asked if effective is None else effective),
        "act": int(not server.backup),
        "bck": int(server.backup),
        "lastchg": _since(server.since, observed.now),
        "lbtot": server.total,
        "cli_abrt": server.client_aborts,
        "srv_abrt": server.server_aborts,
        "addr": server.address,
        "connect": server.connected,
        "uweight": _whole(asked),
        "qtime_max": round(server.longest_queue * _MILLI),
        "ctime_max": round(server.longest_connect * _MILLI),
        "ttime_max": round(server.longest_session * _MILLI),
        **_trend(trend, observed.now),
    }
    if settings.max_connections:
        row["slim"] = settings.max_connections
    if server.state is ServerState.UP and effective is not None and 0 < effective < asked:
        row["throttle"] = round(100 * effective / asked)
    if settings.check is not None:
        row |= check_columns(server, settings.check)
        row |= {
            "chkfail": server.failed_up,
            "chkdown": server.downs,
            "downtime": _downtime(server, observed.now),
        }
    return row


def _pool(pool: PoolStatus, settings: Pool, observed: Observed) -> dict[str, int | str]:
    trend = observed.activity.trend((ProxyKind.BACKEND, pool.name, ""))
    clients = [each for each in observed.status.frontends if pool.name in each.pools]
    shared = any(len(each.pools) > 1 for each in clients)
    up = [each for each in pool.servers if each.state is ServerState.UP and each.effective_weight]
    active, backup = sum(not each.backup for each in up), sum(each.backup for each in up)
    counting = [each for each in up if not each.backup] or (up if settings.all_backups else up[:1])
    return {
        "pxname": pool.name,
        "svname": "BACKEND",
        "qcur": pool.queued,
        "qmax": max(trend.most_queued, pool.queued),
        "scur": pool.current,
        "smax": max(trend.most_current, pool.current),
        "slim": sum(each.max_connections for each in clients),
        # If a server name decides, only those that got a server are known to be this pool's.
        "stot": pool.total if shared else sum(each.total for each in clients),
        "bin": sum(each.bytes_in for each in pool.servers),
        "bout": sum(each.bytes_out for each in pool.servers),
        **_HTTP,
        "econ": sum(each.failed for each in clients),
        "eresp": sum(each.server_aborts for each in pool.servers),
        "wretr": sum(each.retried for each in pool.servers),
        "wredis": sum(each.redispatched for each in pool.servers),
        "status": "UP" if up else "DOWN",
        "weight": sum(_effective(each) for each in counting),
        "act": active,
        "bck": backup,
        "chkdown": pool.downs,
        "lastchg": _since(_changed(pool), observed.now),
        "downtime": int(pool.down_seconds) + _since(pool.down_since, observed.now),
        "pid": 1,
        "sid": 0,
        "lbtot": pool.total,
        "type": 1,
        "cli_abrt": sum(each.client_aborts for each in pool.servers),
        "srv_abrt": sum(each.server_aborts for each in pool.servers),
        "mode": "tcp",
        "algo": settings.balance.value,
        "connect": sum(each.connected for each in pool.servers),
        "uweight": sum(_whole(_asked(each)) for each in counting),
        "qtime_max": round(max((each.longest_queue for each in pool.servers), default=0.0) * _MILLI),
        "ctime_max": round(max((each.longest_connect for each in pool.servers), default=0.0) * _MILLI),
        "ttime_max": round(max((each.longest_session for each in pool.servers), default=0.0) * _MILLI),
        **_trend(trend, observed.now),
        **_REUSE,
    }


def _trend(trend: Trend, now: float) -> dict[str, int | str]:
    return {
        "rate": trend.rate,
        "rate_max": trend.most_rate,
        "lastsess": -1 if trend.last_at is None else _since(trend.last_at, now),
        "qtime": round(trend.queue_mean * _MILLI),
        "ctime": round(trend.connect_mean * _MILLI),
        "ttime": round(trend.session_mean * _MILLI),
    }


def _asked(server: ServerStatus) -> float:
    """Return the full weight: the operator's, or the configured one."""
    text = server.operator_weight
    return asked_weight(server.weight, operator_weight(text) if text else None)


def _effective(server: ServerStatus) -> int:
    weight = server.effective_weight
    return _whole(_asked(server) if weight is None else weight)


def _whole(weight: float) -> int:
    """Return a weight as HAProxy writes it: an integer, and not 0 for a server that still gets traffic."""
    return max(1, round(weight)) if weight > 0 else 0


def _since(moment: float | None, now: float) -> int:
    return max(0, int(now - moment)) if moment else 0


def _downtime(server: ServerStatus, now: float) -> int:
    down = _since(server.since, now) if server.state is ServerState.DOWN else 0
    return int(server.down_seconds) + down


def _changed(pool: PoolStatus) -> float | None:
    """Return since when a pool has been up or down, as far as the states of its servers show."""
    up = [each.since for each in pool.servers if each.state is ServerState.UP and each.since]
    others = [each.since for each in pool.servers if each.since]
    return min(up) if up else max(others, default=None)
