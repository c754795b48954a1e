"""From observations of the machine to one status."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter

from appliance.core.status.observations import Observations
from appliance.core.status.pools import pool_statuses
from appliance.core.status.problems import problems
from appliance.core.status.programs import program_statuses
from appliance.core.status.shared_ips import bgp_status, shared_ips
from appliance.core.status.status import (
    FrontendStatus,
    GenerationPhase,
    GenerationStatus,
    RedirectedFrontendStatus,
    ServerConnections,
    Status,
    VirtualIpStatus,
)
from appliance.model.snapshot.frontends import Frontend, Group
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.ended_workers import EndedWorkers
from appliance.wire.boards.worker_board import FrontendCounters, WorkerBoard
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.discovery_status import DiscoveryStatus
from appliance.wire.lines.forward_status import ForwardStatus
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.redirect_status import RedirectStatus
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.vrrp_status import VrrpStatus


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


def frontend_statuses(snapshot: Snapshot, observations: Observations) -> Iterator[FrontendStatus]:
    """Yield every configured frontend; its counters are those of all workers and the kernel."""
    counters = _by_name(observations)
    for group in snapshot.groups:
        for frontend in group.frontends:
            yield _frontend(frontend, group, counters.get((group.program, frontend.name), ()))


def _by_name(observations: Observations) -> Mapping[tuple[str, str], list[FrontendCounters]]:
    found: dict[tuple[str, str], list[FrontendCounters]] = {}
    counted = [(each.program, each.frontends) for each in observations.workers]
    counted += [(program, each.frontends) for program, each in observations.ended.items()]
    forward = observations.answer(ForwardStatus)
    counted += [(each.program, each.frontends) for each in (forward.groups if forward else ())]
    for program, frontends in counted:
        for each in frontends:
            found.setdefault((program, each.name), []).append(each)
    return found


def _frontend(frontend: Frontend, group: Group, parts: Sequence[FrontendCounters]) -> FrontendStatus:
    current = sum(part.current for part in parts)
    return FrontendStatus(
        name=frontend.name,
        program=group.program,
        binds=tuple(map(str, frontend.binds)),
        pool=frontend.pool,
        pools=frontend.pools,
        respond=frontend.respond,
        max_connections=frontend.max_connections,
        # Each worker counts its own connections: only their sum compares to the limit.
        full=0 < frontend.max_connections <= current,
        current=current,
        total=sum(part.total for part in parts),
        denied=sum(part.denied for part in parts),
        failed=sum(part.failed for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        bytes_out=sum(part.bytes_out for part in parts),
    )


def virtual_ips(snapshot: Snapshot, vrrp: VrrpStatus | None) -> tuple[VirtualIpStatus, ...]:
    """Return every virtual IP of the configuration; one that `vrrp` does not report has no state."""
    return tuple(_virtual_ip(router, vrrp) for router in snapshot.virtual_routers)


def _virtual_ip(router: VirtualRouter, vrrp: VrrpStatus | None) -> VirtualIpStatus:
    running = vrrp.router(router.name) if vrrp else None
    return VirtualIpStatus(
        name=router.name,
        addresses=router.addresses,
        interface=router.interface,
        router_id=router.router_id,
        version=router.version,
        sync_group=router.sync_group,
        state=running.state if running else None,
        since=(running.since or None) if running else None,
        active=running.is_active if running else None,
        active_peer=running.active_peer if running else None,
        priority=running.priority if running else None,
        base=router.priority,
        yielded=running.yielded if running else False,
    )


def redirected_frontends(
    snapshot: Snapshot, redirect: RedirectStatus | None
) -> tuple[RedirectedFrontendStatus, ...]:
    """Return every redirect of the configuration; one that `redirect` does not report has no state."""
    return tuple(_redirects(snapshot, redirect))


def _redirects(snapshot: Snapshot, redirect: RedirectStatus | None) -> Iterator[RedirectedFrontendStatus]:
    for group in snapshot.groups:
        for frontend in group.frontends:
            if frontend.redirect is None:
                continue
            name = f"{group.name}/{frontend.name}"
            found = redirect.redirect(name) if redirect else None
            yield RedirectedFrontendStatus(
                name=name,
                sources=tuple(map(str, frontend.redirect.sources)),
                state=found.state if found else None,
                since=(found.since or None) if found else None,
                reason=found.reason if found else None,
            )


def assess(observations: Observations, now: float) -> Status:
    """Return the status at `now`, Unix seconds."""
    snapshot = observations.snapshot if isinstance(observations.snapshot, Snapshot) else None
    programs = tuple(program_statuses(observations, snapshot, now))
    frontends = tuple(frontend_statuses(snapshot, observations)) if snapshot else ()
    pools = pool_statuses(snapshot, observations) if snapshot else ()
    found = problems(observations, programs=programs, frontends=frontends, pools=pools, now=now)
    reload, discovery = observations.answer(ReloadStatus), observations.answer(DiscoveryStatus)
    announce, linger = observations.answer(AnnounceStatus), observations.answer(LingerStatus)
    return Status(
        ok=not found,
        problems=found,
        at=now,
        version=reload.version if reload else None,
        configuration=snapshot.number if snapshot else None,
        source=snapshot.source if snapshot else None,
        cluster=snapshot.cluster if snapshot else None,
        degraded=None if snapshot and snapshot.awaited else observations.degraded,
        supervisor=None if isinstance(observations.supervised, tuple) else str(observations.supervised),
        programs=programs,
        frontends=frontends,
        pools=pools,
        generations=tuple(generation_statuses(observations.workers)),
        ended=ended_connections(observations.workers, observations.ended.values()),
        virtual_ips=virtual_ips(snapshot, observations.answer(VrrpStatus)) if snapshot else (),
        shared_ips=shared_ips(snapshot, announce) if snapshot else (),
        bgp=bgp_status(snapshot.bgp, announce) if snapshot and snapshot.bgp else None,
        redirects=redirected_frontends(snapshot, observations.answer(RedirectStatus)) if snapshot else (),
        discovery=discovery.sources if discovery else (),
        guest=observations.guest,
        set_aside=observations.set_aside,
        left_out=snapshot.left_out if snapshot else (),
        take_overs=observations.take_overs,
        nodes=linger.nodes if linger else (),
        digest=reload.digest if reload else None,
    )
