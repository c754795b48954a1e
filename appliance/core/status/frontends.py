"""The frontends in a status, with the sums of what all workers count."""

from collections.abc import Iterator

from appliance.core.status.status import (
    FrontendStatus,
)
from appliance.model.snapshot.frontends import Frontend, Group
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.worker_board import WorkerBoard


def frontend_statuses(snapshot: Snapshot, workers: tuple[WorkerBoard, ...]) -> Iterator[FrontendStatus]:
    """Yield every configured frontend; its counters are those of the workers that are alive now."""
    for group in snapshot.groups:
        yield from (_frontend(frontend, group, workers) for frontend in group.frontends)


def _frontend(frontend: Frontend, group: Group, workers: tuple[WorkerBoard, ...]) -> FrontendStatus:
    parts = [
        counters
        for worker in workers
        if worker.program == group.program
        for counters in worker.frontends
        if counters.name == frontend.name
    ]
    current = sum(part.current for part in parts)
    return FrontendStatus(
        name=frontend.name,
        program=group.program,
        binds=tuple(map(str, frontend.binds)),
        pool=frontend.pool,
        respond=frontend.respond,
        max_connections=frontend.max_connections,
        # Each worker counts its own connections: only their sum can be held against the limit.
        full=0 < frontend.max_connections <= current,
        current=current,
        total=sum(part.total for part in parts),
        denied=sum(part.denied for part in parts),
        failed=sum(part.failed for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        bytes_out=sum(part.bytes_out for part in parts),
    )
