"""The generations of workers in a status, and how connections ended."""

from collections.abc import Iterable, Iterator
from itertools import groupby
from operator import attrgetter

from appliance.core.status.status import (
    GenerationPhase,
    GenerationStatus,
    ServerConnections,
)
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.ended_workers import EndedWorkers
from appliance.wire.boards.worker_board import WorkerBoard


def generation_statuses(workers: Iterable[WorkerBoard]) -> Iterator[GenerationStatus]:
    """Yield the generations of all proxies that have workers now, the oldest of each proxy first."""
    key = attrgetter("program", "generation")
    for (program, generation), members in groupby(sorted(workers, key=key), key):
        yield _generation(program, generation, tuple(members))


def _generation(program: str, generation: int, workers: tuple[WorkerBoard, ...]) -> GenerationStatus:
    return GenerationStatus(
        program=program,
        generation=generation,
        phase=_phase(workers),
        pids=tuple(worker.pid for worker in workers),
        configuration=max(worker.snapshot for worker in workers),
        started_at=min(worker.started_at for worker in workers),
        sessions=sum(worker.sessions for worker in workers),
        drain_deadline=max(worker.drain_deadline for worker in workers) or None,
        holds=_server_connections(workers),
        compiled=all(worker.compiled for worker in workers),
    )


def _phase(workers: tuple[WorkerBoard, ...]) -> GenerationPhase:
    # While its workers change phase one after the other, the generation has the phase of the foremost worker.
    phases = {worker.phase for worker in workers}
    if WorkerPhase.ACCEPTING in phases:
        return GenerationPhase.ACCEPTING
    return GenerationPhase.READY if WorkerPhase.READY in phases else GenerationPhase.DRAINING


def _server_connections(workers: Iterable[WorkerBoard]) -> tuple[ServerConnections, ...]:
    held: dict[tuple[str, str], int] = {}
    for worker in workers:
        for each in worker.servers:
            held[each.pool, each.server] = held.get((each.pool, each.server), 0) + each.current
    return tuple(
        ServerConnections(pool=pool, server=server, connections=count)
        for (pool, server), count in held.items()
        if count
    )


def ended_connections(workers: Iterable[WorkerBoard], gone: Iterable[EndedWorkers]) -> dict[str, int]:
    """Return how many connections ended for each reason, of living workers and of ended ones."""
    ended: dict[str, int] = {}
    counted: list[WorkerBoard | EndedWorkers] = [*workers, *gone]
    for each in counted:
        for reason, count in each.reasons.items():
            if count:
                ended[str(reason)] = ended.get(str(reason), 0) + count
    return ended
