"""The page that has every metric: name, kind, labels and what it tells, as a scrape has them."""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Final

from support.documents.pages import ROOT
from support.values import boards
from support.values.observations import NOW, answers, observations
from support.values.shared_ips import announcing, bgp, neighbor, session, shared_ip, shared_status
from support.values.snapshots import snapshot, virtual_router
from support.vrrp.vrrp_boards import vrrp_board

from appliance.core.haproxy.activity import Activity
from appliance.core.haproxy.process import process_figures, process_metrics
from appliance.core.haproxy.statistics import Row
from appliance.core.metrics.appliance import appliance_metrics
from appliance.core.metrics.haproxy import haproxy_metrics
from appliance.core.metrics.keepalived import keepalived_metrics
from appliance.core.metrics.programs import WorkerDescriptors, program_metrics
from appliance.core.metrics.shared_ips import shared_ip_metrics
from appliance.core.metrics.sources import source_metrics
from appliance.core.metrics.sync import sync_metrics
from appliance.core.status.assessment import assess
from appliance.core.status.connection_room import ConnectionRoom
from appliance.core.status.observations import Observations
from appliance.core.status.status import RedirectedFrontendStatus
from appliance.model.drop_reasons import DropReason
from appliance.model.end_reasons import EndReason
from appliance.model.take_overs import TakenOver, TakeOvers
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.ended_workers import EndedWorkers
from appliance.wire.boards.worker_board import CONNECT_BOUNDS, PoolTimes
from appliance.wire.exposition import Metric
from appliance.wire.lines.discovery_status import SourceStatus
from appliance.wire.lines.forward_status import ForwardStatus, SyncStatus
from appliance.wire.lines.linger_status import LingerStatus, OtherNode, SharedAddress
from appliance.wire.lines.migrate_status import DepartureStatus, MigrateStatus
from appliance.wire.lines.reload_status import LastReload, ReloadStatus
from appliance.wire.lines.vrrp_status import PriorityPartStatus, RouterStatus, VrrpStatus

_SOURCE: Final = ROOT / "appliance" / "core" / "metrics"
_HEAD: Final = """# Every metric

*For operators who know what they look for. To look things up.*

The metrics of `/metrics` of the program `stats` ([Watching it](../monitoring.md)), generated from the code
(`make pages`). A metric without a known value is absent. Counters do not decrease when a worker or a
generation ends. `haproxy_` and `keepalived_` have the names, labels and meanings of HAProxy's own exporter
and of keepalived_exporter: dashboards and alerts for those continue to work. `metallb_` are names of
MetalLB's speaker for sessions, for the same reason.
"""
_SOURCE_OF_SERVERS: Final = SourceStatus(
    name="masters",
    pools=("masters",),
    servers=(),
    seen_at=NOW,
    changed_at=None,
    hold=None,
    proxy=False,
    resources=(),
)
_REDIRECT: Final = RedirectedFrontendStatus(name="kube-api", sources=(), state="on", since=None, reason=None)
_LINGER: Final = LingerStatus(
    program="linger",
    pid=78,
    started_at=NOW,
    snapshot=1,
    shared=(SharedAddress(address="198.51.100.10"),),
    strays={"led": 1},
    nodes=(OtherNode(name="lb-1"),),
)
_MIGRATE: Final = MigrateStatus(
    departures=(DepartureStatus(address="192.0.2.1", stay={"it connects to its server": 1}),)
)
_FORWARD: Final = ForwardStatus(program="forward", pid=79, started_at=NOW, snapshot=1, sync=SyncStatus())
_DESCRIPTORS: Final = WorkerDescriptors(program="proxy-api", generation=1, index=0, open=40, limit=1024)
_LABEL: Final = re.compile(r'(\w+)="')


@cache
def metrics() -> list[Metric]:
    """Return every metric, with values of a machine on which all of them are known."""
    found = _observations()
    status = replace(assess(found, NOW), discovery=(_SOURCE_OF_SERVERS,), redirects=(_REDIRECT,))
    process = process_figures(status, found, Activity(), version="0.1.0", node="lb-0", pid=42)
    return [
        *appliance_metrics(status, found, configuration_hash="abc"),
        *program_metrics(status, found, (_DESCRIPTORS,)),
        *source_metrics(status),
        *shared_ip_metrics(status, found),
        *sync_metrics(found),
        *process_metrics(process),
        *haproxy_metrics(_rows()),
        *keepalived_metrics(found),
    ]


def written_names() -> frozenset[str]:
    """Return the names of our own metrics, as the sources have them."""
    return frozenset(_names())


def metrics_page() -> str:
    """Return the page."""
    every = metrics()
    parts = [_HEAD]
    for beginning, heading in (
        ("appliance_", "Of the appliance"),
        ("haproxy_", "As HAProxy's"),
        ("keepalived_", "As keepalived's"),
        ("metallb_", "As MetalLB's"),
    ):
        parts.append(f"## {heading}\n\n" + _table(each for each in every if each.name.startswith(beginning)))
    return "\n".join(parts)


def _table(every: Iterable[Metric]) -> str:
    rows = (f"| `{each.name}` | {each.kind} | {_labels(each)} | {each.help} |\n" for each in every)
    return "| metric | kind | labels | meaning |\n|---|---|---|---|\n" + "".join(rows)


def _labels(metric: Metric) -> str:
    given = [name for labels, _ in metric.samples for name in _LABEL.findall(labels)]
    given += [name for each in metric.histograms for name in each.labels]
    return ", ".join(f"`{name}`" for name in dict.fromkeys(given))


def _rows() -> Iterator[Row]:
    """Yield a row of each kind, with a number in every column that the metrics read."""
    source = (_SOURCE / "haproxy.py").read_text()
    columns = re.findall(r'"(\w+)", _(?:COUNTER|GAUGE)', source)
    for kind, name, status in ((0, "FRONTEND", "OPEN"), (1, "BACKEND", "UP"), (2, "master-0", "UP")):
        said = {"type": kind, "pxname": "masters", "svname": name, "status": status, "check_status": "L7OK"}
        yield {**dict.fromkeys(columns, 1), **said}


def _observations() -> Observations:
    reload = ReloadStatus(version="0.1.0", reloads={"done": 1}, last=LastReload(at=180.0, ok=True))
    counted = boards.server_counters(current=1)
    times = (PoolTimes(pool="pool", connects=(1,) * (len(CONNECT_BOUNDS) + 1)),)
    old = boards.worker(generation=1, phase=WorkerPhase.DRAINING, sessions=1, servers=(counted,), pools=times)
    new = boards.worker(generation=2, reasons={EndReason.COMPLETED: 1})
    router = RouterStatus(
        name="api",
        state="active",
        addresses=("10.0.0.200/24",),
        parts=(PriorityPartStatus(track="ready", up=True),),
    )
    return observations(
        connection_room=ConnectionRoom(used=7, limit=100),
        snapshot=snapshot(
            number=7, virtual_routers=[virtual_router()], shared_ips=(shared_ip(),), bgp=bgp(neighbor())
        ),
        answers=answers(reload=reload, linger=_LINGER, migrate=_MIGRATE, forward=_FORWARD),
        workers=(old, new),
        ended={"proxy-api": EndedWorkers(workers=5)},
        accepted_at=120.0,
        take_overs=TakeOvers().with_done(TakenOver(when=180.0, version="0.0.9", pid=77, by="0.1.0")),
        vrrp=VrrpStatus(routers=(router,)),
        announce=announcing(shared_status(), by=(session(),)),
        vrrp_board=vrrp_board(name="api", drops={DropReason.CHECKSUM: 2}),
    )


def _names() -> Iterator[str]:
    for path in _SOURCE.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and path.stem != "keepalived":
                yield from _named(node.func.id, node)


def _named(function: str, call: ast.Call) -> Iterator[str]:
    first = call.args[0] if call.args else None
    kind = function.lstrip("_")
    if kind in {"gauge", "counter"} and isinstance(first, ast.Constant):
        beginning = "appliance_" if function.startswith("_") else ""
        yield f"{beginning}{first.value}" + ("_total" if kind == "counter" else "")
    if function == "Metric":
        named = (each.value for each in call.keywords if each.arg == "name")
        yield from (str(each.value) for each in named if isinstance(each, ast.Constant))
