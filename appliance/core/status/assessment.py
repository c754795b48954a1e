"""From what can be found on the machine to one status: each source may be missing, none is waited for.

A program that does not run cannot say so. What is known of it then comes from the others: supervisord knows
its exit, the boards of workers outlive their master, and the accepted snapshot says what there should be.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby
from operator import attrgetter

from appliance.core.checks.stale_verdicts import outdated
from appliance.core.rollout.needed_programs import needed
from appliance.core.status.status import (
    CheckStatus,
    DegradedStart,
    FrontendStatus,
    GenerationPhase,
    GenerationStatus,
    PoolStatus,
    ProgramState,
    ProgramStatus,
    ServerConnections,
    ServerStatus,
    Status,
)
from appliance.core.status.virtual_ips import virtual_ips
from appliance.core.status.vrrp_status import VrrpStatus, troubles
from appliance.model.check_results import CheckResult
from appliance.model.guest.report import GuestReport
from appliance.model.server_states import ServerState
from appliance.model.snapshot.frontends import Bind, Frontend, Group
from appliance.model.snapshot.pools import Pool, Server
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.health_board import HealthBoard, ServerHealthRecord
from appliance.wire.boards.worker_board import ServerCounters, WorkerBoard
from appliance.wire.lines.control import AnswerProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class SupervisedProgram:
    """A program as supervisord sees it; `reason` says why it does not run, None when it does."""

    name: str
    state: ProgramState
    pid: int | None
    started_at: float | None
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusAnswer:
    """What a program answered to `status` on its control socket.

    `socket_failures` are those of `reload`: why it does not listen, by path. It tells the `version`, too.
    `not_kept` are files that a program cannot write, with the reason. `refused` is what was wrong with the
    last reload, nothing after a good one.
    """

    pid: int | None = None
    started_at: float | None = None
    snapshot: int | None = None
    generation: int | None = None
    version: str | None = None
    socket_failures: Mapping[str, str] = field(default_factory=dict)
    not_kept: Mapping[str, str] = field(default_factory=dict)
    refused: tuple[AnswerProblem, ...] = ()


class SupervisordNotAsked(StrEnum):
    """Why supervisord was not asked, which is no problem: the programs speak for themselves."""

    PERMISSION = "not asked: permission denied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observations:
    """All that was found. `snapshot` is a text where it could not be read: why. `vrrp` is its own answer.

    `supervised` is a text where supervisord did not answer: why; NotAsked where it answers not to everybody.
    `workers` are those alive. `failures` are what programs left to say why they could not start.
    """

    snapshot: Snapshot | str
    supervised: tuple[SupervisedProgram, ...] | SupervisordNotAsked | str
    said: Mapping[str, StatusAnswer]
    health: HealthBoard | None
    workers: tuple[WorkerBoard, ...]
    failures: Mapping[str, str]
    degraded: DegradedStart | None
    vrrp: VrrpStatus | None = None
    guest: GuestReport | None = None
    set_aside: tuple[str, ...] = ()

    @property
    def living(self) -> bool:
        """Whether anything of the appliance runs: without it boards tell of a time that is over."""
        return bool(self.said or self.workers) or isinstance(self.supervised, tuple)


def assess(evidence: Observations, now: float) -> Status:
    """Return the status at `now`, Unix seconds."""
    snapshot = evidence.snapshot if isinstance(evidence.snapshot, Snapshot) else None
    programs = tuple(_programs(evidence, snapshot, now))
    frontends = tuple(_frontends(snapshot, evidence.workers)) if snapshot else ()
    pools = _pools(snapshot, evidence) if snapshot else ()
    troubled = (
        *map(_complaint, _wrong(programs)),
        *_deaf(evidence.said),
        *_full(frontends),
        *_not_kept(evidence.said),
        *_refused(evidence.said),
        *_without_server(pools),
        *(outdated(snapshot, _known(evidence).health, now=now) if snapshot else ()),
        *(troubles(evidence.vrrp) if evidence.vrrp else ()),
    )
    problems = (
        *(_wrong_properties(evidence.guest) if evidence.guest else ()),  # what a console shows ends somewhere
        *_missing(evidence),
        *(troubled if evidence.living else ()),
    )
    reload = evidence.said.get("reload")
    return Status(
        ok=not problems,
        problems=problems,
        at=now,
        version=reload.version if reload else None,
        configuration=snapshot.number if snapshot else None,
        source=snapshot.source if snapshot else None,
        cluster=snapshot.cluster if snapshot else None,
        degraded=evidence.degraded,
        supervisor=None if isinstance(evidence.supervised, tuple) else str(evidence.supervised),
        programs=programs,
        frontends=frontends,
        pools=pools,
        generations=tuple(_generations(evidence.workers)),
        ended=_ended(evidence.workers),
        virtual_ips=virtual_ips(snapshot, evidence.vrrp) if snapshot else (),
        guest=evidence.guest,
        set_aside=evidence.set_aside,
    )


def _missing(evidence: Observations) -> Iterator[str]:
    if isinstance(evidence.snapshot, str):
        yield f"no accepted configuration: {evidence.snapshot}"
    if not evidence.living:
        yield f"the appliance does not run: {evidence.supervised}"
    elif not isinstance(evidence.supervised, (tuple, SupervisordNotAsked)):
        yield f"supervisord does not answer: {evidence.supervised}"


def _wrong(programs: Iterable[ProgramStatus]) -> Iterator[ProgramStatus]:
    return (program for program in programs if not program.ok)


def _complaint(program: ProgramStatus) -> str:
    return f"{program.name} is {program.state}" + (f": {program.reason}" if program.reason else "")


def _deaf(said: Mapping[str, StatusAnswer]) -> Iterator[str]:
    for each in said.values():
        yield from (f"reload socket {path}: {failure}" for path, failure in each.socket_failures.items())


def _full(frontends: Iterable[FrontendStatus]) -> Iterator[str]:
    return (
        f"frontend {each.name} is full: {each.current} of {each.max_connections} connections"
        for each in frontends
        if each.full
    )


def _refused(said: Mapping[str, StatusAnswer]) -> Iterator[str]:
    for each in said.values():
        yield from (f"the last reload was refused: {_told(problem)}" for problem in each.refused)


def _told(problem: AnswerProblem) -> str:
    line = f"line {problem.line}" if problem.line else None
    return ": ".join(part for part in (line, problem.path, problem.message) if part)


def _not_kept(said: Mapping[str, StatusAnswer]) -> Iterator[str]:
    for program, each in said.items():
        yield from (f"{program} cannot write {path}: {why}" for path, why in each.not_kept.items())


def _without_server(pools: Iterable[PoolStatus]) -> Iterator[str]:
    return (f"pool {pool.name} has no server up" for pool in pools if not pool.ok)


def _wrong_properties(report: GuestReport) -> Iterator[str]:
    return (f"property {each}" if each.key else str(each) for each in report.problems)


def _programs(evidence: Observations, snapshot: Snapshot | None, now: float) -> Iterator[ProgramStatus]:
    expected = ("reload", *(needed(snapshot) if snapshot else ()))
    supervised = evidence.supervised if isinstance(evidence.supervised, tuple) else ()
    known = {each.name: each for each in supervised}
    # Ours first, in the order of the picture in README; what else runs under this supervisord after them.
    for name in dict.fromkeys((*expected, *evidence.said, *sorted(known))):
        yield _program(name, known.get(name), evidence, expected=name in expected, now=now)


def _program(
    name: str, supervised: SupervisedProgram | None, evidence: Observations, *, expected: bool, now: float
) -> ProgramStatus:
    said = evidence.said.get(name)
    state = supervised.state if supervised else (ProgramState.RUNNING if said else ProgramState.GONE)
    reason = _reason(name, supervised, evidence, state, expected=expected)
    at = (said and said.started_at) or (supervised and supervised.started_at)
    return ProgramStatus(
        name=name,
        state=state,
        expected=expected,
        ok=not expected or (state is ProgramState.RUNNING and reason is None),
        pid=(said and said.pid) or (supervised.pid if supervised else None),
        uptime=max(0.0, now - at) if at and state is ProgramState.RUNNING else None,
        generation=said.generation if said else _accepting(name, evidence.workers),
        workers=_workers(name, evidence.workers),
        configuration=said.snapshot if said else None,
        reason=reason,
    )


def _reason(
    name: str,
    supervised: SupervisedProgram | None,
    evidence: Observations,
    state: ProgramState,
    *,
    expected: bool,
) -> str | None:
    if name in evidence.failures:
        return evidence.failures[name]
    if supervised and supervised.reason:
        return supervised.reason
    if not expected:
        return None
    accepting = _workers(name, evidence.workers)
    if state is not ProgramState.RUNNING:
        return f"its workers serve on without it: {accepting}" if accepting else None
    if name not in evidence.said:
        return "does not answer on its control socket"
    return "no worker of it accepts connections" if name.startswith("proxy-") and not accepting else None


def _workers(program: str, workers: Iterable[WorkerBoard]) -> int | None:
    if not program.startswith("proxy-"):
        return None
    return sum(each.program == program and each.phase is WorkerPhase.ACCEPTING for each in workers)


def _accepting(program: str, workers: Iterable[WorkerBoard]) -> int | None:
    generations = (
        each.generation for each in workers if each.program == program and each.phase is WorkerPhase.ACCEPTING
    )
    return max(generations, default=None)


def _frontends(snapshot: Snapshot, workers: tuple[WorkerBoard, ...]) -> Iterator[FrontendStatus]:
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
        full=0 < frontend.max_connections <= current,
        current=current,
        total=sum(part.total for part in parts),
        denied=sum(part.denied for part in parts),
        failed=sum(part.failed for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        bytes_out=sum(part.bytes_out for part in parts),
    )


def _pools(snapshot: Snapshot, evidence: Observations) -> tuple[PoolStatus, ...]:
    frontends = [frontend for group in snapshot.groups for frontend in group.frontends]
    in_use = frozenset(name for each in frontends for name in (each.pool, each.needs) if name)
    known = _known(evidence)
    return tuple(_pool(pool, known, in_use) for pool in snapshot.pools)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Known:
    """What health and the workers have written of servers, by pool and server.

    `unjudged` is the state of a server that health has written nothing of.
    """

    unjudged: ServerState | None
    health: Mapping[tuple[str, str], ServerHealthRecord]
    counters: Mapping[tuple[str, str], list[ServerCounters]]


def _known(evidence: Observations) -> _Known:
    servers = evidence.health.servers if evidence.health and evidence.living else ()
    counters: dict[tuple[str, str], list[ServerCounters]] = {}
    for worker in evidence.workers:
        for each in worker.servers:
            counters.setdefault((each.pool, each.server), []).append(each)
    unjudged = ServerState.CHECKING if evidence.living else None
    return _Known(
        unjudged=unjudged, health={(each.pool, each.server): each for each in servers}, counters=counters
    )


def _pool(pool: Pool, known: _Known, in_use: frozenset[str]) -> PoolStatus:
    servers = tuple(_server(pool, server, known) for server in pool.servers)
    up = sum(server.state is ServerState.UP for server in servers)
    return PoolStatus(
        name=pool.name,
        balance=pool.balance,
        in_use=pool.name in in_use,
        ok=up > 0 or pool.name not in in_use,
        up=up,
        current=sum(server.current for server in servers),
        total=sum(server.total for server in servers),
        queued=sum(server.queued for server in servers),
        servers=servers,
    )


def _server(pool: Pool, server: Server, known: _Known) -> ServerStatus:
    health = known.health.get((pool.name, server.name))
    parts = known.counters.get((pool.name, server.name), ())
    return ServerStatus(
        name=server.name,
        address=str(Bind(host=server.host, port=server.port)),
        resolved=(health.host or None) if health else None,
        state=health.state if health else known.unjudged,
        since=health.since if health else None,
        backup=server.backup,
        weight=server.weight,
        effective_weight=health.weight if health else None,
        check=_check(health) if health else None,
        current=sum(part.current for part in parts),
        total=sum(part.total for part in parts),
        failed=sum(part.failed for part in parts),
        queued=sum(part.queued for part in parts),
        bytes_in=sum(part.bytes_in for part in parts),
        bytes_out=sum(part.bytes_out for part in parts),
    )


def _check(health: ServerHealthRecord) -> CheckStatus | None:
    if health.result is CheckResult.UNCHECKED:
        return None
    return CheckStatus(
        result=health.result,
        status=health.status or None,
        detail=health.detail,
        duration=health.duration,
        ended_at=health.checked_at,
        streak=health.streak,
        failed=health.failed,
    )


def _generations(workers: Iterable[WorkerBoard]) -> Iterator[GenerationStatus]:
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
        holds=_holds(workers),
    )


def _phase(workers: tuple[WorkerBoard, ...]) -> GenerationPhase:
    phases = {worker.phase for worker in workers}
    if WorkerPhase.ACCEPTING in phases:
        return GenerationPhase.ACCEPTING
    return GenerationPhase.READY if WorkerPhase.READY in phases else GenerationPhase.DRAINING


def _holds(workers: Iterable[WorkerBoard]) -> tuple[ServerConnections, ...]:
    held: dict[tuple[str, str], int] = {}
    for worker in workers:
        for each in worker.servers:
            held[each.pool, each.server] = held.get((each.pool, each.server), 0) + each.current
    return tuple(
        ServerConnections(pool=pool, server=server, connections=count)
        for (pool, server), count in held.items()
        if count
    )


def _ended(workers: Iterable[WorkerBoard]) -> dict[str, int]:
    ended: dict[str, int] = {}
    for worker in workers:
        for reason, count in worker.reasons.items():
            if count:
                ended[reason.value] = ended.get(reason.value, 0) + count
    return ended
