"""The metrics of HAProxy's own exporter (its `addons/promex`), from the rows of its statistics.

Names, labels and kinds are HAProxy's: dashboards and alerts for HAProxy work. Metrics without a value in this
appliance are absent; metrics of HTTP are 0 if a dashboard would be empty without them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from operator import itemgetter
from typing import Final, NamedTuple, TypeGuard

from appliance.core.haproxy.statistics import Row
from appliance.wire.exposition import Labelled, Metric, MetricKind, Sample, labels

_Named = tuple[str, Row]
"""A row after its labels."""

_COUNTER, _GAUGE = MetricKind.COUNTER, MetricKind.GAUGE
_MILLI: Final = 0.001


class _Column(NamedTuple):
    """A metric: the end of its name, the column that it is taken from, and its description."""

    name: str
    column: str
    kind: MetricKind
    help: str
    scale: float | None = None


_SESSIONS: Final = (
    _Column("current_sessions", "scur", _GAUGE, "Current sessions."),
    _Column("max_sessions", "smax", _GAUGE, "Highest number of concurrent sessions."),
    _Column("limit_sessions", "slim", _GAUGE, "Limit of concurrent sessions."),
    _Column("sessions_total", "stot", _COUNTER, "Total sessions."),
    _Column("bytes_in_total", "bin", _COUNTER, "Bytes from clients."),
    _Column("bytes_out_total", "bout", _COUNTER, "Bytes to clients."),
    _Column("max_session_rate", "rate_max", _GAUGE, "Highest number of new sessions in a second."),
)
_FRONTEND: Final = (
    *_SESSIONS,
    _Column("requests_denied_total", "dreq", _COUNTER, "Denied requests: HTTP only, 0 here."),
    _Column("responses_denied_total", "dresp", _COUNTER, "Denied responses: HTTP only, 0 here."),
    _Column("request_errors_total", "ereq", _COUNTER, "Request errors: HTTP only, 0 here."),
    _Column("limit_session_rate", "rate_lim", _GAUGE, "Limit of new sessions per second, 0: no limit."),
    _Column(
        "connections_rate_max", "conn_rate_max", _GAUGE, "Highest number of new connections in a second."
    ),
    _Column("connections_total", "conn_tot", _COUNTER, "Total connections, including denied ones."),
    _Column("denied_connections_total", "dcon", _COUNTER, "Connections refused by allow and deny."),
    _Column("denied_sessions_total", "dses", _COUNTER, "Sessions denied after they were accepted."),
    _Column("internal_errors_total", "eint", _COUNTER, "Internal errors: HTTP only, 0 here."),
)
_SERVING: Final = (
    *_SESSIONS,
    _Column("current_queue", "qcur", _GAUGE, "Connections in the queue."),
    _Column("max_queue", "qmax", _GAUGE, "Highest number of connections in the queue."),
    _Column("responses_denied_total", "dresp", _COUNTER, "Denied responses: HTTP only, 0 here."),
    _Column(
        "connection_errors_total", "econ", _COUNTER, "Sessions that ended without a connection to a server."
    ),
    _Column("response_errors_total", "eresp", _COUNTER, "Connections aborted by servers."),
    _Column("retry_warnings_total", "wretr", _COUNTER, "Connects retried on the same server."),
    _Column("redispatch_warnings_total", "wredis", _COUNTER, "Connects retried on another server."),
    _Column("weight", "weight", _GAUGE, "Effective weight."),
    _Column("uweight", "uweight", _GAUGE, "Configured weight."),
    _Column("check_last_change_seconds", "lastchg", _GAUGE, "Seconds since the last change of state."),
    _Column("loadbalanced_total", "lbtot", _COUNTER, "Number of times it was chosen."),
    _Column("client_aborts_total", "cli_abrt", _COUNTER, "Connections aborted by clients."),
    _Column("server_aborts_total", "srv_abrt", _COUNTER, "Connections aborted by servers."),
    _Column("last_session_seconds", "lastsess", _GAUGE, "Seconds since the last session, -1: none yet."),
    _Column("queue_time_average_seconds", "qtime", _GAUGE, "Recent mean wait for a server.", _MILLI),
    _Column("connect_time_average_seconds", "ctime", _GAUGE, "Recent mean time to connect.", _MILLI),
    _Column("response_time_average_seconds", "rtime", _GAUGE, "Response time: HTTP only, 0 here.", _MILLI),
    _Column("total_time_average_seconds", "ttime", _GAUGE, "Recent mean length of a session.", _MILLI),
    _Column("max_queue_time_seconds", "qtime_max", _GAUGE, "Longest wait for a server.", _MILLI),
    _Column("max_connect_time_seconds", "ctime_max", _GAUGE, "Longest time to connect.", _MILLI),
    _Column("max_response_time_seconds", "rtime_max", _GAUGE, "Response time: HTTP only, 0 here.", _MILLI),
    _Column("max_total_time_seconds", "ttime_max", _GAUGE, "Longest completed session.", _MILLI),
    _Column("connection_attempts_total", "connect", _COUNTER, "Connections made to a server."),
    _Column("connection_reuses_total", "reuse", _COUNTER, "Reused connections: HTTP only, 0 here."),
    _Column("check_up_down_total", "chkdown", _COUNTER, "Transitions from up to down."),
    _Column("downtime_seconds_total", "downtime", _COUNTER, "Downtime in seconds."),
    _Column("internal_errors_total", "eint", _COUNTER, "Internal errors: HTTP only, 0 here."),
)
_BACKEND: Final = (
    *_SERVING,
    _Column("requests_denied_total", "dreq", _COUNTER, "Denied requests: HTTP only, 0 here."),
    _Column("active_servers", "act", _GAUGE, "Servers that are up and not backups."),
    _Column("backup_servers", "bck", _GAUGE, "Backup servers that are up."),
)
_SERVER: Final = (
    *_SERVING,
    _Column("check_failures_total", "chkfail", _COUNTER, "Checks that failed while it was up."),
    _Column("current_throttle", "throttle", _GAUGE, "Percentage of its weight during slow start."),
    _Column("check_code", "check_code", _GAUGE, "HTTP status of the last check."),
    _Column("check_duration_seconds", "check_duration", _GAUGE, "Duration of the last check.", _MILLI),
)
_CODES: Final = ("1xx", "2xx", "3xx", "4xx", "5xx", "other")
_PROXY_STATES: Final = ("DOWN", "UP")
_SERVER_STATES: Final = ("DOWN", "UP", "MAINT", "DRAIN", "NOLB")
_TYPE: Final = "type"
_IS_SERVER: Final = 2
_REMEMBERED: Final = 1 << 17  # states and results of checks of 40,000 servers
_CHECKS: Final = ("L4OK", "L4TOUT", "L4CON", "L6OK", "L6TOUT", "L6RSP", "L7OK", "L7TOUT", "L7RSP", "L7STS")


def haproxy_metrics(rows: Iterable[Row]) -> Iterator[Metric]:
    """Return the metrics of frontends, backends and servers."""
    given = [(_labels_of(row), row) for row in rows]
    frontends, backends, servers = ([each for each in given if each[1][_TYPE] == kind] for kind in range(3))
    yield from _of("frontend", _FRONTEND, frontends)
    yield _states("frontend", frontends, _PROXY_STATES)
    yield from _of("backend", _BACKEND, backends)
    yield _states("backend", backends, _PROXY_STATES)
    yield from _of("server", _SERVER, servers)
    yield _states("server", servers, _SERVER_STATES)
    yield _check_states(servers)
    for kind, of_kind in (("frontend", frontends), ("backend", backends), ("server", servers)):
        yield _http_responses(kind, of_kind)


def _of(kind: str, columns: Sequence[_Column], rows: Sequence[_Named]) -> Iterator[Metric]:
    names, cells = [named for named, _ in rows], [row for _, row in rows]
    for each, values in zip(columns, _by_column(columns, cells), strict=True):
        # A thousand servers have fifty thousand samples: a call for each would take most of a scrape's time.
        if _are_numbers(values):
            samples = _scaled(names, values, each.scale)
        else:
            there = {at: value for at, value in enumerate(values) if type(value) is int}
            samples = _scaled([names[at] for at in there], list(there.values()), each.scale)
        yield Metric(name=f"haproxy_{kind}_{each.name}", kind=each.kind, help=each.help, samples=samples)


def _scaled(names: Sequence[str], values: Sequence[int], scale: float | None) -> Labelled:
    return Labelled(names, values if scale is None else [each * scale for each in values])


def _by_column(columns: Sequence[_Column], rows: Sequence[Row]) -> Iterator[Sequence[int | str | None]]:
    """Yield the values of each column, None where a row has none, at once where all rows have them."""
    shared = [_TYPE, *(each.column for each in columns if rows and each.column in rows[0])]
    taken: dict[str, tuple[int | str, ...]] = {}
    while rows and len(shared) > 1 and not taken:
        try:
            taken = dict(zip(shared, zip(*map(itemgetter(*shared), rows), strict=True), strict=True))
        except KeyError as error:  # a row lacks that one
            shared.remove(error.args[0])
    for each in columns:
        yield taken[each.column] if each.column in taken else [row.get(each.column) for row in rows]


def _are_numbers(values: Sequence[int | str | None]) -> TypeGuard[Sequence[int]]:
    return set(map(type, values)) == {int}


def _labels_of(row: Row) -> str:
    return _labels(str(row["pxname"]), str(row["svname"]) if row[_TYPE] == _IS_SERVER else None)


# The caches: labels are the same in each scrape, so a comparison of two scrapes finds identical objects.
@lru_cache(maxsize=_REMEMBERED)
def _labels(proxy: str, server: str | None) -> str:
    return labels(proxy=proxy) if server is None else labels(proxy=proxy, server=server)


@lru_cache(maxsize=_REMEMBERED)
def _one_of(given: str, found: str, states: tuple[str, ...]) -> tuple[Sample, ...]:
    """Return a sample for each state, 1 for the current one."""
    return tuple((f'{given[:-1]},state="{state}"}}', int(state == found)) for state in states)


@lru_cache(maxsize=_REMEMBERED)
def _no_responses(given: str) -> tuple[Sample, ...]:
    return tuple((f'{given[:-1]},code="{code}"}}', 0) for code in _CODES)


def _states(kind: str, rows: Sequence[_Named], states: tuple[str, ...]) -> Metric:
    now = (_one_of(named, state_of(str(row["status"])), states) for named, row in rows)
    about = "1 for the current state, 0 for the others."
    samples = list(chain.from_iterable(now))
    return Metric(name=f"haproxy_{kind}_status", kind=_GAUGE, help=about, samples=samples)


def state_of(status: str) -> str:
    """Return the state for a status of the statistics, as HAProxy's exporter does."""
    word = status.partition(" ")[0]
    return {"OPEN": "UP", "no": "UP", "STOP": "DOWN"}.get(word, word)


def _check_states(servers: Sequence[_Named]) -> Metric:
    now = (
        _one_of(named, str(row["check_status"]), _CHECKS) for named, row in servers if "check_status" in row
    )
    about = "1 for the result of the last check, 0 for the others."
    samples = list(chain.from_iterable(now))
    return Metric(name="haproxy_server_check_status", kind=_GAUGE, help=about, samples=samples)


def _http_responses(kind: str, rows: Sequence[_Named]) -> Metric:
    """Return zeros: this metric is HTTP's, but dashboards take their lists of names and codes from it."""
    samples = list(chain.from_iterable(_no_responses(named) for named, _ in rows))
    name = f"haproxy_{kind}_http_responses_total"
    return Metric(
        name=name, kind=_COUNTER, help="HTTP responses: 0, TCP content is not parsed.", samples=samples
    )
