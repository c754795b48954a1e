"""The appliance as one HAProxy process, for `show info` and the metrics `haproxy_process_*`.

The numbers are of all workers together. The start is that of the first worker whose counters are in the sums,
so neither a reload nor a restart of a program looks like another process.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.haproxy.activity import Activity, ProxyKind
from appliance.core.status.observations import Observations
from appliance.core.status.status import Status
from appliance.wire.exposition import Metric, MetricKind
from appliance.wire.haproxy.statistics import duration_text

COMPATIBLE: Final = "2.6.0"
"""The version of HAProxy whose statistics these are: some clients read the first two numbers."""


_RELEASED: Final = "2022/05/31"
"""Release date of that version; hatop wants to show one."""


_PIPES: Final = {"Maxpipes": 0, "PipesUsed": 0, "PipesFree": 0}
"""Not counted here, but hatop does not start without the fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessFigures:
    """The figures of the process; times are Unix seconds."""

    version: str
    node: str
    pid: int
    workers: int
    started_at: float
    uptime: float
    sessions: int
    limit: int
    total: int
    rate: int
    most_rate: int
    bytes_out: int
    listeners: int


def process_figures(
    status: Status, observations: Observations, activity: Activity, *, version: str, node: str, pid: int
) -> ProcessFigures:
    """Return the figures; `pid` is the process that reports them."""
    starts = [each.started_at for each in observations.workers]
    starts += [each.since for each in observations.ended.values() if each.since]
    started_at = min(starts, default=status.at)
    counted = [each for board in observations.workers for each in board.frontends]
    counted += [each for ended in observations.ended.values() for each in ended.frontends]
    trends = [activity.trend((ProxyKind.FRONTEND, each.name, "")) for each in status.frontends]
    return ProcessFigures(
        version=f"{COMPATIBLE}-appliance-{version}",
        node=node,
        pid=pid,
        workers=len(observations.workers),
        started_at=started_at,
        uptime=max(0.0, status.at - started_at),
        sessions=sum(each.sessions for each in observations.workers),
        limit=sum(each.max_connections for each in status.frontends),
        total=sum(each.total for each in counted),
        rate=sum(each.rate for each in trends),
        most_rate=sum(each.most_rate for each in trends),
        bytes_out=sum(each.bytes_out for each in counted),
        listeners=sum(len(each.binds) for each in status.frontends),
    )


def info_fields(process: ProcessFigures) -> Mapping[str, int | str]:
    """Return the fields of `show info` that this appliance has a figure for, in HAProxy's order."""
    return {
        "Name": "HAProxy",
        "Version": process.version,
        "Release_date": _RELEASED,
        "Nbthread": max(1, process.workers),
        "Nbproc": 1,
        "Process_num": 1,
        "Pid": process.pid,
        "Uptime": duration_text(process.uptime),
        "Uptime_sec": int(process.uptime),
        "Maxconn": process.limit,
        "Hard_maxconn": process.limit,
        "CurrConns": process.sessions,
        "CumConns": process.total,
        "CumReq": process.total,
        "CurrSslConns": 0,
        "CumSslConns": 0,
        **_PIPES,
        "ConnRate": process.rate,
        "ConnRateLimit": 0,
        "MaxConnRate": process.most_rate,
        "SessRate": process.rate,
        "SessRateLimit": 0,
        "MaxSessRate": process.most_rate,
        "SslRate": 0,
        "Tasks": process.sessions,
        "Run_queue": 0,
        "node": process.node,
        "Stopping": 0,
        "Listeners": process.listeners,
        "ActivePeers": 0,
        "ConnectedPeers": 0,
        "TotalBytesOut": process.bytes_out,
        "Start_time_sec": int(process.started_at),
    }


def process_metrics(process: ProcessFigures) -> Iterator[Metric]:
    """Yield the metrics of HAProxy's exporter about the process."""
    yield _gauge(
        "start_time_seconds", "Unix time at which the first worker started.", int(process.started_at)
    )
    yield _gauge("uptime_seconds", "Seconds since the first worker started.", int(process.uptime))
    yield _gauge("nbthread", "Workers.", max(1, process.workers))
    yield _gauge("nbproc", "Processes, as HAProxy counts them.", 1)
    yield _gauge("max_connections", "Limit of concurrent connections.", process.limit)
    yield _gauge("current_connections", "Current connections.", process.sessions)
    yield _counter("connections_total", "Total connections.", process.total)
    yield _counter("requests_total", "Total connections: requests are not parsed.", process.total)
    yield _gauge("current_session_rate", "New sessions in the last second.", process.rate)
    yield _gauge("max_session_rate", "Highest number of new sessions in a second.", process.most_rate)
    yield _gauge("current_connection_rate", "New connections in the last second.", process.rate)
    yield _gauge("listeners", "Listening addresses.", process.listeners)
    yield _counter("bytes_out_total", "Bytes to clients.", process.bytes_out)


def _gauge(name: str, about: str, value: float) -> Metric:
    return Metric(name=f"haproxy_process_{name}", kind=MetricKind.GAUGE, help=about, samples=[("", value)])


def _counter(name: str, about: str, value: float) -> Metric:
    return Metric(name=f"haproxy_process_{name}", kind=MetricKind.COUNTER, help=about, samples=[("", value)])
