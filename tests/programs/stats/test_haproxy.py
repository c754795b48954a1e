"""What reads a real HAProxy reads us: both stand before the same masters, and have the same readers."""

import csv
import io
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path

import pytest
from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families
from support.network.ports import accepts, free_port
from support.peers.haproxy import HAProxy
from support.processes.processes import end
from support.processes.waiting import Late, wait_until
from support.run import tools
from support.stats import haproxy_clients
from support.stats.haproxy_clients import get, socket_answer
from support.stats.stats_site import StatsSite, stats_site

pytestmark = [pytest.mark.programs, pytest.mark.needs("haproxy")]

_USER = "Username:Password"
_CONFIG = """
global
  stats socket {control} mode 600 level admin
defaults
  mode tcp
  timeout connect 5s
  timeout client 1m
  timeout server 1m
  timeout check 5s
  retries 3
  maxconn 40000
frontend kube-api
  bind :::%(port)d v4v6
  default_backend masters
backend masters
  balance roundrobin
  option httpchk GET /readyz HTTP/1.0
  default-server check inter 250 fall 2 rise 2 weight 1
%(servers)s
frontend narrow
  bind 127.0.0.1:%(narrow)d
  default_backend narrow
backend narrow
  server only 127.0.0.1:%(master)d maxconn 1
frontend statistics
  bind 127.0.0.1:%(page)d
  mode http
  stats enable
  stats uri /haproxy_stats
  stats auth Username:Password
frontend exporter
  bind 127.0.0.1:%(metrics)d
  mode http
  http-request use-service prometheus-exporter
"""
_EQUAL = (
    *("stot", "bin", "bout", "dreq", "dresp", "ereq", "econ", "eresp", "wretr", "wredis", "status", "weight"),
    *("act", "bck", "sid", "type", "lbtot", "check_status", "check_code", "check_rise", "check_fall"),
    *("check_health", "check_desc", "chkdown", "cli_abrt", "srv_abrt", "mode", "conn_tot"),
    *("connect", "uweight", "scur", "qcur", "pid", "dcon", "dses", "rate_lim"),
)
"""Columns that mean the same, and are equal when both have had the same clients."""

_THEIRS_ALONE = frozenset(
    {
        *("comp_in", "comp_out", "comp_byp", "comp_rsp", "req_rate", "req_rate_max", "req_tot"),  # HTTP's
        *(
            "srv_icur",
            "idle_conn_cur",
            "safe_conn_cur",
            "used_conn_cur",
            "need_conn_est",
        ),  # its pool of connections
        *("agg_server_status", "agg_server_check_status", "agg_check_status"),  # metrics of the exporter only
    }
)
_SHOWN_TO_ADMINS = ("addr", "algo")
"""Columns that HAProxy's page has with `stats show-legends`, and its socket always."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The appliance and HAProxy; `narrow` are the ports of both that lead to a server for one at a time."""

    site: StatsSite
    haproxy: HAProxy
    control: Path
    port: int
    page: int
    metrics: int
    narrow: tuple[int, int]

    @property
    def places(self) -> tuple[tuple[str, str, str], ...]:
        """Return of HAProxy and of us where the page is, and the user."""
        return (
            (f"http://127.0.0.1:{self.page}/haproxy_stats", _USER, str(self.control)),
            (self.site.url("/haproxy_stats"), _USER, str(self.site.socket)),
        )


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    """Run both before three masters and a server that is not there, and let each serve the same clients."""
    with stats_site(workers=1) as site:
        gone, *narrow = free_port(), free_port(), free_port()
        config = _config(site, gone, narrow[1])
        answer = site.cluster.appliance.reload(config)
        assert answer["ok"], answer
        port, page, metrics = free_port(), free_port(), free_port()
        masters = [*((each.name, each.port) for each in site.cluster.masters), ("gone", gone)]
        servers = "\n".join(f"  server {name} 127.0.0.1:{to}{_limit(name)}" for name, to in masters)
        text = _CONFIG % {
            "port": port,
            "page": page,
            "metrics": metrics,
            "servers": servers,
            "narrow": narrow[0],
            "master": site.cluster.masters[0].port,
        }
        with HAProxy(text) as haproxy:
            made = Pair(
                site=site,
                haproxy=haproxy,
                control=haproxy.control,
                port=port,
                page=page,
                metrics=metrics,
                narrow=(narrow[0], narrow[1]),
            )
            _settle(made)
            for number in (port, site.cluster.port):
                _use(number)
            wait_until(lambda: _used(made), what="both have counted everything")
            yield made


def _config(site: StatsSite, gone: int, narrow: int) -> dict[str, object]:
    config = json.loads(json.dumps(site.config(auth={"user": "Username", "password": "Password"})))
    pool = config["pools"]["masters"]
    pool["servers"]["gone"] = {"address": f"127.0.0.1:{gone}", "max_connections": 10}
    pool["check"] = {"type": "http", "path": "/readyz", "interval": "250ms", "fall": 2, "rise": 2}
    config["api"]["frontends"]["narrow"] = {"bind": [f"127.0.0.1:{narrow}"], "pool": "narrow"}
    only = {"address": f"127.0.0.1:{site.cluster.masters[0].port}", "max_connections": 1}
    config["pools"]["narrow"] = {"servers": {"only": only}}
    return dict(config)


def _limit(name: str) -> str:
    return " maxconn 10" if name == "gone" else ""


def _settle(made: Pair) -> None:
    for url, user, _ in made.places:
        wait_until(
            lambda url=url, user=user: _states(url, user) == ["UP", "UP", "UP", "DOWN"],
            what=f"{url} has judged its servers",
        )


def _states(url: str, user: str) -> list[str]:
    rows = haproxy_clients.telegraf(get(f"{url};csv", user=user)[1])
    return [row["status"] for (pool, _), row in rows.items() if pool == "masters" and row["type"] == "2"]


def _use(port: int) -> None:
    """Make nine requests, one after the other, so that roundrobin gives each master three."""
    for _ in range(9):
        client = HTTPConnection("127.0.0.1", port, timeout=30)
        client.request("GET", "/who", headers={"Connection": "close"})
        assert client.getresponse().read()
        client.close()


def _used(made: Pair) -> bool:
    first, second = (
        haproxy_clients.telegraf(get(f"{url};csv", user=user)[1])["kube-api", "FRONTEND"]
        for url, user, _ in made.places
    )
    return (first["bout"], first["scur"]) == (second["bout"], second["scur"]) and first["stot"] == "9"


def _telegraf(pair: Pair) -> list[dict[tuple[str, str], haproxy_clients.Row]]:
    """Return what Telegraf reads of HAProxy and of us, of the proxies that both have.

    While HAProxy checks a server it shows the last result with an asterisk.
    """

    def settled() -> list[dict[tuple[str, str], haproxy_clients.Row]]:
        found = _read(pair)
        checking = any(row["check_status"].startswith("*") for row in found[0].values())
        return [] if checking else found

    return wait_until(settled, what="HAProxy checks nothing at this moment")


def _read(pair: Pair) -> list[dict[tuple[str, str], haproxy_clients.Row]]:
    found = [haproxy_clients.telegraf(get(f"{url};csv", user=user)[1]) for url, user, _ in pair.places]
    return [
        {place: row for place, row in each.items() if place[0] in {"kube-api", "masters"}} for each in found
    ]


@pytest.mark.slow("a whole appliance and its readers")
def test_telegraf(pair: Pair):
    """The same rows in the same order, and in each the same figures in the same columns."""
    theirs, ours = _telegraf(pair)

    assert list(ours) == list(theirs)
    for place, row in theirs.items():
        differ = {name: (row[name], ours[place][name]) for name in _EQUAL if ours[place][name] != row[name]}
        assert differ == {}, place


@pytest.mark.promise("docs/monitoring.md", "what reads HAProxy reads us")
def test_telegraf_over_the_socket(pair: Pair):
    """The socket says what the page does."""
    for url, user, control in pair.places:
        by_socket = haproxy_clients.telegraf(socket_answer(Path(control), "show stat\n"))
        by_page = haproxy_clients.telegraf(get(f"{url};csv", user=user)[1])
        assert list(by_socket) == list(by_page)


def test_a_column_that_has_a_figure_there_has_one_here(pair: Pair):
    """With a few exceptions that are named; and none has one here that has none there."""
    theirs, ours = _telegraf(pair)
    for place, row in theirs.items():
        filled = {name for name, value in row.items() if value and name in ours[place]}
        mine = {name for name, value in ours[place].items() if value}
        assert filled - mine <= _THEIRS_ALONE | {"-"}, place
        assert mine - filled <= {"last_chk", *_SHOWN_TO_ADMINS}, place


def test_times_mean_the_same(pair: Pair):
    """Queue, connect and the whole session of two clients of a server that takes one at a time.

    What the clients have waited for by their own clocks is a bound of each figure, from below or from above.
    """
    for (url, user, _), port in zip(pair.places, pair.narrow, strict=True):
        begun = time.monotonic()
        waited = _one_after_the_other(port, lambda url=url, user=user: _narrow(url, user))
        rows = wait_until(lambda url=url, user=user: _timed(_narrow(url, user)), what="both have ended")
        whole = time.monotonic() - begun
        for place, row in rows.items():
            found = {name: int(row[name]) / 1000 for name in _TIMES}
            assert waited - 0.01 <= found["qtime_max"] <= whole, (url, place)
            assert waited - 0.01 <= found["ttime_max"] <= whole, (url, place)
            assert 0 <= found["ctime_max"] <= whole - waited, (url, place)
            assert found["qtime"] > 0, (url, place)
            assert waited - 0.01 <= found["ttime"], (url, place)
            # HAProxy divides by the sessions that it has balanced, and leaves out who comes from the queue.
            balanced = int(row["lbtot"])
            assert balanced * found["qtime"] <= found["qtime_max"] + 0.01, (url, place)
            assert balanced * found["ttime"] <= 2 * found["ttime_max"] + 0.01, (url, place)
            assert found["rtime"] == found["rtime_max"] == 0, (url, place)


_TIMES = ("qtime", "ctime", "rtime", "ttime", "qtime_max", "ctime_max", "rtime_max", "ttime_max")


def _one_after_the_other(port: int, rows: Callable[[], Mapping[str, haproxy_clients.Row]]) -> float:
    """Let two clients come; return for how many seconds at least the second one has waited for the first."""
    with _client(port) as first:
        assert first.recv(100)
        with _client(port) as second:
            wait_until(lambda: rows()["BACKEND"]["qcur"] == "1", what="the second one waits in the queue")
            seen = time.monotonic()
            wait_until(lambda: time.monotonic() > seen + 0.3, what="it has waited for long")
            waited = time.monotonic() - seen
            first.close()
            assert second.recv(100)
    return waited


def _client(port: int) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", port), timeout=30)
    client.sendall(b"line here\n")
    return client


def _narrow(url: str, user: str) -> Mapping[str, haproxy_clients.Row]:
    rows = haproxy_clients.telegraf(get(f"{url};csv", user=user)[1])
    return {server: rows["narrow", server] for server in ("only", "BACKEND")}


def _timed(rows: Mapping[str, haproxy_clients.Row]) -> Mapping[str, haproxy_clients.Row] | None:
    """Return the rows once two sessions have ended, and the means of their times are known."""
    ended = all((row["stot"], row["scur"]) == ("2", "0") for row in rows.values())
    known = all(row[name] not in {"", "0"} for row in rows.values() for name in ("qtime", "ttime"))
    return rows if ended and known else None


def test_the_columns_are_haproxys(pair: Pair):
    """In its order, up to those that its modules add."""
    heads = [get(f"{url};csv", user=user)[1].splitlines()[0].split(",") for url, user, _ in pair.places]
    theirs, ours = heads
    assert ours[:-1] == theirs[: len(ours) - 1]
    assert theirs[len(ours) - 1] == "-"


def test_datadog(pair: Pair):
    """Its legacy check, by the socket and by the page: version, uptime, rows."""
    for url, user, control in pair.places:
        info, rows = haproxy_clients.datadog_socket(Path(control))
        version, uptime = haproxy_clients.datadog_page(get(url, user=user)[1])
        assert (info["Version"].split(".")[:2], version.split(".")[:2]) == (["2", "6"], ["2", "6"])
        assert abs(int(info["Uptime_sec"]) - uptime) <= 5
        assert {row["svname"] for row in rows} >= {"FRONTEND", "BACKEND", "master-0"}


def test_zabbix(pair: Pair):
    """Its template by HTTP: the version in the page, and the columns that its items take."""
    for url, user, _ in pair.places:
        assert haproxy_clients.zabbix_page(get(url, user=user)[1]).startswith("2.6")
        kind, text = get(f"{url};csv", user=user)
        assert kind.startswith("text/plain")
        rows = csv.DictReader(io.StringIO(text.removeprefix("# ")))
        servers = [row for row in rows if row["type"] == "2" and row["pxname"] == "masters"]
        taken = (
            "status",
            "scur",
            "stot",
            "bin",
            "bout",
            "econ",
            "eresp",
            "qcur",
            "wretr",
            "wredis",
            "weight",
        )
        assert all(row[name] != "" for row in servers for name in taken)


def test_the_retired_exporters_positions(pair: Pair):
    """It takes the status from the eighteenth column, and the kind from the thirty-third."""
    theirs, ours = (
        haproxy_clients.haproxy_exporter(get(f"{url};csv", user=user)[1]) for url, user, _ in pair.places
    )
    for found in (theirs, ours):
        named = {(row[0], row[1]): (row[17], row[32]) for row in found}
        assert named["masters", "master-0"] == ("UP", "2")
        assert named["masters", "gone"] == ("DOWN", "2")
        assert named["kube-api", "FRONTEND"] == ("OPEN", "0")


@contextmanager
def _exporter(url: str, user: str) -> Iterator[str]:
    """Run Debian's prometheus-haproxy-exporter for a page, and give the address of its metrics."""
    port = free_port()
    scheme, _, rest = url.partition("://")
    command = [
        tools.path("prometheus-haproxy-exporter") or "prometheus-haproxy-exporter",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--haproxy.scrape-uri={scheme}://{user}@{rest};csv",
    ]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        wait_until(lambda: accepts(port), what="the exporter serves")
        yield f"http://127.0.0.1:{port}/metrics"
    finally:
        end(process)


def _masters(url: str) -> dict[tuple[str, str], float]:
    families = text_string_to_metric_families(get(url)[1])
    return {
        (sample.name, sample.labels.get("server", "")): sample.value
        for family in families
        for sample in family.samples
        if sample.labels.get("backend", sample.labels.get("frontend")) in {"masters", "kube-api"}
        and "code" not in sample.labels
    }


@pytest.mark.needs("prometheus-haproxy-exporter")
def test_debians_exporter_runs_unmodified(pair: Pair):
    """It reads us as it reads HAProxy: the same metrics, the same counts."""
    found = []
    for url, user, _ in pair.places:
        with _exporter(url, user) as metrics:
            assert "\nhaproxy_up 1\n" in get(metrics)[1]
            found.append(_masters(metrics))
    theirs, ours = found

    moving = ("max", "seconds", "rate", "limit", "check_failures", "downtime", "check_duration")
    assert {name for name, _ in theirs} - {name for name, _ in ours} <= {
        *(
            "haproxy_backend_http_total_time_average_seconds",
            "haproxy_server_http_total_time_average_seconds",
        ),
        *("haproxy_frontend_compressor_bytes_bypassed_total", "haproxy_frontend_compressor_bytes_in_total"),
        *("haproxy_frontend_compressor_bytes_out_total", "haproxy_frontend_http_responses_compressed_total"),
        *("haproxy_backend_compressor_bytes_bypassed_total", "haproxy_backend_compressor_bytes_in_total"),
        *("haproxy_backend_compressor_bytes_out_total", "haproxy_backend_http_responses_compressed_total"),
        "haproxy_frontend_http_requests_total",
    }
    differ = {
        name: (value, ours.get(name))
        for name, value in theirs.items()
        if name in ours and ours[name] != value and not any(each in name[0] for each in moving)
    }
    assert differ == {}
    assert ours["haproxy_server_sessions_total", "master-1"] == 3


def _families(text: str) -> Mapping[str, Metric]:
    return {each.name: each for each in text_string_to_metric_families(text)}


def test_haproxys_own_exporter(pair: Pair):
    """What we have of its metrics has its name, its kind, its labels, and the same values."""
    theirs = _families(get(f"http://127.0.0.1:{pair.metrics}/metrics")[1])
    ours = _families(pair.site.page("/metrics", user=_USER))
    known = [name for name in ours if name.startswith("haproxy_")]

    # HTTP responses of servers are left out by HAProxy where all are `mode tcp`; dashboards want them.
    extra = {name for name in known if name not in theirs}
    assert extra <= {f"haproxy_{kind}_http_responses" for kind in ("backend", "server")}
    assert {name: ours[name].type for name in known if name not in extra} == {
        name: theirs[name].type for name in known if name not in extra
    }
    found: dict[str, object] = {}

    def same() -> bool:
        found.clear()
        found.update(_differences(pair, set(known) - extra))
        return not found

    # While HAProxy checks a server, that server has no code.
    with suppress(Late):
        wait_until(same, what="the same values")
    assert found == {}


_MOVING = ("max", "seconds", "rate", "limit", "process", "failures")


def _differences(pair: Pair, names: Set[str]) -> dict[str, object]:
    """Return by metric and labels what HAProxy says and what we say, where that is not the same."""
    theirs = _families(get(f"http://127.0.0.1:{pair.metrics}/metrics")[1])
    ours = _families(pair.site.page("/metrics", user=_USER))
    return {
        f"{name} {sorted(key)}": (value, known[key])
        for name in names
        if not any(each in name for each in _MOVING)
        for known in [_values(ours[name])]
        for key, value in _values(theirs[name]).items()
        if key in known and known[key] != value
    }


def _values(metric: Metric) -> dict[frozenset[tuple[str, str]], float]:
    return {
        frozenset(sample.labels.items()): sample.value
        for sample in metric.samples
        if sample.labels.get("proxy") in {"kube-api", "masters"}
    }


_LINES = (
    "set server masters/zz state drain",
    "set server zz/master-0 state drain",
    "set server masters/master-0 state bad",
    "set server masters state ready",
    "set weight masters/master-0 500",
    "set weight masters/master-0 x",
    "set weight masters/master-0 7x",
    "set weight masters/master-0 50%%",
    "set weight masters/master-0 -1",
    "set weight masters/master-0 -1%",
    "set weight masters/master-0",
    "set weight zz/master-0 7",
    "set weight masters",
    "get weight masters/zz",
    "get weight masters/master-0",
    "disable server masters/zz",
    "enable server",
    "shutdown sessions server masters/zz",
    "shutdown sessions server zz/master-0",
    "shutdown sessions server masters/master-0",
    "show servers state zz",
    "show stat zz 7 -1",
    "set server masters/master-0 state ready",
)


@pytest.mark.parametrize("line", _LINES)
def test_the_same_words(pair: Pair, line: str):
    """What is refused, and what is done, is said as HAProxy says it."""
    theirs, ours = (socket_answer(Path(control), f"{line}\n") for *_, control in pair.places)
    assert ours == theirs


def test_the_unknown(pair: Pair):
    """The same first line, and a list of what may have been meant."""
    for line in ("foo", "", "set", "@1 show version"):
        theirs, ours = (socket_answer(Path(control), f"{line}\n") for *_, control in pair.places)
        assert ours.splitlines()[0] == theirs.splitlines()[0]
        assert "  quit                                    : disconnect\n" in theirs
        assert "  quit                                    : disconnect\n" in ours


def test_the_prompt(pair: Pair):
    """Lines are answered one after the other until `quit`, each with a prompt behind it."""
    said = []
    for *_, control in pair.places:
        lines = "prompt\nget weight masters/master-0;get weight masters/zz\nenable server masters/zz\nquit\n"
        said.append(socket_answer(Path(control), lines))
    assert said[0] == said[1]


def _state_rows(text: str) -> dict[str, list[str]]:
    lines = [line.split() for line in text.splitlines()[2:] if line]
    return {line[3]: line for line in lines if line[1] == "masters"}


def test_states_of_servers(pair: Pair):
    """The same numbers, but for the proxy's own, and the time of the last change."""
    wait_until(lambda: _state_differences(pair) == {}, what="no check is under way, and the states are equal")


def _state_differences(pair: Pair) -> dict[str, object]:
    """Return what differs; while HAProxy makes a check its result is unknown, so one looks again."""
    theirs, ours = (
        _state_rows(socket_answer(Path(control), "show servers state\n")) for *_, control in pair.places
    )
    assert list(ours) == list(theirs)
    differ = {
        name: [(at, value, ours[name][at]) for at, value in enumerate(line) if ours[name][at] != value]
        for name, line in theirs.items()
    }
    own = {0, 9}
    return {name: each for name, each in differ.items() if {at for at, *_ in each} - own}


def test_a_change_survives_a_reload(pair: Pair):
    """What HAProxy forgets at its next reload: a server in drain, set over the socket."""
    site = pair.site
    assert site.command("set server masters/master-2 state drain") == "\n"
    wait_until(lambda: _status(site, "master-2") == "DRAIN", what="the server drains")
    assert site.cluster.appliance.reload()["ok"]
    site.cluster.appliance.wait_for_restart("health", site.cluster.appliance.kill("health"))
    assert _status(site, "master-2") == "DRAIN"
    assert "server-drain" in site.cluster.appliance.log()
    assert site.command("enable server masters/master-2") == "\n"
    wait_until(lambda: _status(site, "master-2") == "UP", what="the server is back")
    assert site.command("set weight masters/master-2 0") == "\n"
    wait_until(lambda: _status(site, "master-2") == "DRAIN", what="weight 0 is drain")
    assert site.command("set weight masters/master-2 100%") == "\n"
    wait_until(lambda: _status(site, "master-2") == "UP", what="the server is back again")


def test_a_weight_is_taken_and_kept(pair: Pair):
    """Both say the same after each change; ours holds after a reload and a restart of health."""
    site = pair.site
    asked = "get weight masters/master-1"
    for given in ("7", "250%", "300", "0", "100%", "20"):
        answers = [
            [
                socket_answer(Path(control), f"{line}\n")
                for line in (f"set weight masters/master-1 {given}", asked)
            ]
            for *_, control in pair.places
        ]
        assert answers[0][0] == answers[1][0], given
        wait_until(
            lambda said=answers[0][1]: site.command(asked) == said, what=f"ours has the weight, too: {given}"
        )
    appliance = site.cluster.appliance
    assert appliance.reload()["ok"]
    appliance.wait_for_restart("health", appliance.kill("health"))
    wait_until(lambda: site.command(asked) == "20 (initial 1)\n\n", what="the weight is kept")
    assert "operator-weight-kept" in appliance.log()
    assert _row(site, "master-1")["uweight"] == "20"
    for *_, control in pair.places:
        assert socket_answer(Path(control), "set server masters/master-1 weight 100%\n") == "\n"


def test_a_whole_pool_is_down(pair: Pair):
    """Each time is counted, with its seconds; ours goes on over a restart of health."""
    before, begun = [_backend(url, user) for url, user, _ in pair.places], time.monotonic()
    masters = pair.site.cluster.masters
    for each in masters:
        each.ready(500)
    _wait_for_backends(pair, "DOWN")
    health = pair.site.cluster.appliance
    health.wait_for_restart("health", health.kill("health"))
    seen = time.monotonic()
    wait_until(lambda: time.monotonic() > seen + 2, what="both have been down for two seconds")
    waited = time.monotonic() - seen
    for each in masters:
        each.ready(200)
    _wait_for_backends(pair, "UP")
    whole = time.monotonic() - begun
    for (url, user, _), first in zip(pair.places, before, strict=True):
        row = _backend(url, user)
        assert int(row["chkdown"]) == int(first["chkdown"]) + 1, url
        assert waited - 1 <= int(row["downtime"]) - int(first["downtime"]) <= whole + 2, url
    # A worker learns it with its next tick.
    wait_until(lambda: _is_served(pair.site), what="a client has an answer")


def _is_served(site: StatsSite) -> bool:
    with suppress(ConnectionResetError), socket.create_connection(("127.0.0.1", site.cluster.port)) as client:
        client.sendall(b"line here\n")
        return bool(client.recv(100))
    return False


def _wait_for_backends(pair: Pair, status: str) -> None:
    for url, user, _ in pair.places:
        wait_until(
            lambda url=url, user=user: _backend(url, user)["status"] == status, what=f"{url}: {status}"
        )


def _backend(url: str, user: str) -> haproxy_clients.Row:
    return haproxy_clients.telegraf(get(f"{url};csv", user=user)[1])["masters", "BACKEND"]


def _row(site: StatsSite, server: str) -> dict[str, str]:
    return haproxy_clients.telegraf(site.command("show stat masters 4 -1"))["masters", server]


def _status(site: StatsSite, server: str) -> str:
    return _row(site, server)["status"]


def test_sessions_are_shown_and_ended(pair: Pair):
    """A session by its client, frontend and server; `shutdown sessions server` ends it."""
    site = pair.site
    with socket.create_connection(("127.0.0.1", site.cluster.port), timeout=30) as client:
        client.sendall(b"line here\n")
        name = client.recv(100).split()[0].decode()
        host, port = client.getsockname()[:2]
        shown = wait_until(
            lambda: next(
                (line for line in site.command("show sess").splitlines() if f":{port} " in line), ""
            ),
            what="the session is shown",
        )
        assert f"fe=kube-api be=masters srv={name} " in shown
        assert host in shown
        assert site.command(f"shutdown sessions server masters/{name}") == "\n"
        with pytest.raises(ConnectionResetError):
            client.recv(100)


@pytest.mark.slow("a whole appliance and its readers")
def test_the_socket_is_its_owners(pair: Pair):
    """Who may connect may change servers: nobody else."""
    assert pair.site.socket.stat().st_mode & 0o777 == 0o600
    pair.site.socket.unlink()
    wait_until(pair.site.socket.exists, what="the socket is made again")
    assert pair.site.command("show version").startswith("2.6")
