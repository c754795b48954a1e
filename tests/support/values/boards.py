"""Boards as programs write them, with the few fields that a test is about."""

from dataclasses import replace

from msgspec import structs

from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.health_board import HealthBoard, ServerHealthRecord
from appliance.wire.boards.worker_board import FrontendCounters, ServerCounters, WorkerBoard

_HEALTH = ServerHealthRecord(
    pool="pool",
    server="server-0",
    verdict=HealthVerdict.UP,
    admin=AdminState.READY,
    weight=1.0,
    since=100.0,
    checked_at=190.0,
    duration=0.004,
    result=CheckResult.L7OK,
    status=200,
    streak=3,
    failed=0,
    host="127.0.0.1",
    port=8080,
    detail="OK",
    unreachable=False,
)
_WORKER = WorkerBoard(
    program="proxy-api",
    generation=1,
    index=0,
    pid=4242,
    phase=WorkerPhase.ACCEPTING,
    snapshot=1,
    started_at=100.0,
    written_at=200.0,
    drain_deadline=0.0,
    sessions=0,
    frontends=(),
    servers=(),
    reasons={},
)


def health(server: str = "server-0", *, pool: str = "pool", **changes: object) -> ServerHealthRecord:
    """Return what the prober knows of a server: up, checked with HTTP."""
    return structs.replace(_HEALTH, server=server, pool=pool, **changes)


def health_board(*servers: ServerHealthRecord, pid: int = 4241) -> HealthBoard:
    """Return the prober's payload."""
    return HealthBoard(snapshot=1, pid=pid, written_at=200.0, servers=servers)


def worker(**changes: object) -> WorkerBoard:
    """Return a worker's payload: accepting, idle."""
    return replace(_WORKER, **changes)


def frontend_counters(name: str = "frontend", *, current: int = 0, total: int = 0) -> FrontendCounters:
    """Return a frontend's counters; four of each five bytes went out."""
    return FrontendCounters(
        name=name, current=current, total=total, denied=1, failed=2, bytes_in=10 * total, bytes_out=40 * total
    )


def server_counters(
    server: str = "server-0", *, pool: str = "pool", current: int = 0, total: int = 0
) -> ServerCounters:
    """Return a server's counters."""
    return ServerCounters(
        pool=pool,
        server=server,
        current=current,
        total=total,
        failed=1,
        queued=2,
        bytes_in=10 * total,
        bytes_out=40 * total,
    )
