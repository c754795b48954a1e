"""What a worker puts on its board."""

import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from appliance.core.balancing.frontend_state import FrontendState
from appliance.net.data.backend import Backend
from appliance.wire.boards.worker_board import FrontendCounters, ServerCounters, WorkerBoard

if TYPE_CHECKING:
    from appliance.programs.worker import Worker


def figures(worker: "Worker") -> WorkerBoard:
    """Return the board as it is now."""
    orders, traffic = worker.orders, worker.traffic
    return WorkerBoard(
        program=orders.program,
        generation=orders.generation,
        index=orders.index,
        pid=os.getpid(),
        phase=worker.phase,
        snapshot=worker.snapshot.number,
        started_at=worker.started_at,
        written_at=time.time(),
        drain_deadline=worker.drain_deadline,
        sessions=len(traffic.live),
        frontends=tuple(map(_frontend_counters, worker.frontends.values())),
        servers=tuple(_server_counters(worker.backends.values())),
        reasons=traffic.reasons,
    )


def _frontend_counters(frontend: FrontendState) -> FrontendCounters:
    return FrontendCounters(
        name=frontend.name,
        current=frontend.current,
        total=frontend.total,
        denied=frontend.denied,
        failed=frontend.failed,
        bytes_in=frontend.bytes_in,
        bytes_out=frontend.bytes_out,
    )


def _server_counters(backends: Iterable[Backend]) -> Iterator[ServerCounters]:
    for member in (member for backend in backends for member in backend.pool.counted):
        yield ServerCounters(
            pool=member.pool,
            server=member.name,
            current=member.current,
            total=member.total,
            failed=member.failed,
            queued=member.queued,
            bytes_in=member.bytes_in,
            bytes_out=member.bytes_out,
        )
