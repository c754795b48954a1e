"""What is wrong with the appliance. `appliance status` shows it, and exits with 1 if anything is."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from appliance.core.checks.stale_verdicts import outdated
from appliance.core.status.observations import Observations, SupervisordNotAsked
from appliance.core.status.pools import health_records
from appliance.core.status.problem_kinds import ProblemKind, StatusProblem
from appliance.core.status.shared_ips import shared_troubles
from appliance.core.status.status import FrontendStatus, PoolStatus, ProgramStatus, Status
from appliance.model.guest.report import GuestReport
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.announce_status import AnnounceStatus
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.discovery_status import DiscoveryStatus
from appliance.wire.lines.forward_status import ForwardStatus
from appliance.wire.lines.linger_status import LingerStatus, OtherNode
from appliance.wire.lines.migrate_status import MigrateStatus
from appliance.wire.lines.redirect_status import RedirectStatus
from appliance.wire.lines.reload_status import ReloadStatus
from appliance.wire.lines.status_answer import StatusAnswer
from appliance.wire.lines.vrrp_status import RouterStatus, VrrpStatus

_NAMED: Final = 3


def troubles(status: VrrpStatus) -> Iterator[StatusProblem]:
    """Yield each problem of the virtual IPs."""
    if status.missing:
        yield StatusProblem(ProblemKind.CAPABILITIES, detail=" and ".join(status.missing))
    if not status.takes_part:
        yield StatusProblem(ProblemKind.LEFT_TO_OTHERS)
    for router in status.routers:
        for trouble in _troubles(router, status):
            yield StatusProblem(ProblemKind.VIRTUAL_IP, router.name, detail=trouble)


def _troubles(router: RouterStatus, status: VrrpStatus) -> Iterator[str]:
    if router.state == "fault" and not status.missing:  # which is the reason, and reported already
        yield f"is in fault: {'; '.join(router.fault_reasons) or 'no reason is given'}"
    if router.is_active and not router.held:
        yield "is active, but its addresses are not on the interface"
    for trouble in router.route_troubles:
        yield f"is active here without {trouble}"
    for rival in router.rivals:
        yield f"is active here and on {rival.peer} (priority {rival.priority}) at the same time"
    for conflict in router.conflicts:
        about = f": {conflict.detail}" if conflict.detail else ""
        who = f"{conflict.peer or 'an unknown machine'} ({conflict.kind}){about}"
        besides = router.is_active and not conflict.obeyed
        yield f"is active here, in conflict with {who}" if besides else f"has a conflict with {who}"


def differences(nodes: Iterable[OtherNode]) -> Iterator[StatusProblem]:
    """Yield that a node runs another configuration, and which servers it finds in another state."""
    for each in nodes:
        if each.differs_since is not None:
            since = f"(since {_moment(each.differs_since)})"
            yield StatusProblem(ProblemKind.NODE_DIFFERS, each.name, detail=since)
        for server in each.judged[:_NAMED]:
            said = f"{server.server} is {server.here} here and {server.there} at {each.name}"
            detail = f"{said} (since {_moment(server.since)})"
            yield StatusProblem(ProblemKind.JUDGED_DIFFERENTLY, each.name, detail=detail)
        if len(each.judged) > _NAMED:
            detail = f"{len(each.judged) - _NAMED} more servers are in another state at {each.name} than here"
            yield StatusProblem(ProblemKind.JUDGED_DIFFERENTLY, each.name, detail=detail)


def holds(status: Status, node: OtherNode) -> tuple[str, ...]:
    """Return the virtual IPs and shared IPs that another node serves, as far as this one knows."""
    virtual = (each.name for each in status.virtual_ips if each.active_peer in node.addresses)
    shared = (each.name for each in status.shared_ips if not set(each.others).isdisjoint(node.addresses))
    return (*virtual, *shared)


def _moment(at: float) -> str:
    """Return Unix seconds in the form for all operators, wherever they are."""
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"


def problems(
    observations: Observations,
    *,
    programs: Iterable[ProgramStatus],
    frontends: Iterable[FrontendStatus],
    pools: Iterable[PoolStatus],
    now: float,
) -> tuple[StatusProblem, ...]:
    """Return all problems at `now`, Unix seconds.

    The properties of a virtual machine come first: a console shows only so many lines. If nothing of the
    appliance runs, that is the only problem: all others would follow from it.
    """
    return (
        *(wrong_properties(observations.guest) if observations.guest else ()),
        *_missing(observations),
        *(_while_it_runs(observations, programs, frontends, pools, now) if observations.living else ()),
    )


def _awaited(observations: Observations) -> Iterator[StatusProblem]:
    """Yield what is missing while no configuration has been accepted yet."""
    if isinstance(observations.snapshot, Snapshot) and observations.snapshot.awaited:
        errors = observations.degraded.errors if observations.degraded else ()
        reasons = "; ".join(located(each) for each in errors)
        yield StatusProblem(ProblemKind.AWAITED, detail=reasons or "there is none yet")


def _while_it_runs(
    observations: Observations,
    programs: Iterable[ProgramStatus],
    frontends: Iterable[FrontendStatus],
    pools: Iterable[PoolStatus],
    now: float,
) -> Iterator[StatusProblem]:
    yield from _awaited(observations)
    yield from (_program(each) for each in programs if not each.ok)
    yield from _reload_sockets(observations.answers)
    yield from _full(frontends)
    yield from _not_kept(observations.answers)
    yield from _refused(observations.answer(ReloadStatus))
    yield from (StatusProblem(ProblemKind.POOL_DOWN, pool.name) for pool in pools if not pool.ok)
    if isinstance(observations.snapshot, Snapshot):
        for each in outdated(observations.snapshot, health_records(observations), now=now):
            yield StatusProblem(ProblemKind.CHECKS_OUTDATED, detail=each)
    for answer in observations.answers.values():
        yield from _of_program(answer)
    if observations.connection_room and observations.connection_room.short():
        yield StatusProblem(ProblemKind.CONNECTION_ROOM, detail=str(observations.connection_room))


def _of_program(answer: StatusAnswer) -> Iterator[StatusProblem]:
    """Yield the problems that a program itself reports."""
    match answer:
        case DiscoveryStatus(problems=found):
            yield from (StatusProblem(ProblemKind.DISCOVERY, detail=each) for each in found)
        case VrrpStatus():
            yield from troubles(answer)
        case RedirectStatus(trouble=trouble) if trouble:
            yield StatusProblem(ProblemKind.NOT_REDIRECTED, detail=trouble)
        case ForwardStatus():
            yield from _of_forward(answer)
        case LingerStatus():
            if answer.trouble:
                yield StatusProblem(ProblemKind.NOT_LINGERING, detail=answer.trouble)
            yield from differences(answer.nodes)
        case MigrateStatus(trouble=trouble) if trouble:
            yield StatusProblem(ProblemKind.NOT_MIGRATING, detail=trouble)
        case AnnounceStatus():
            yield from shared_troubles(answer)


def _of_forward(answer: ForwardStatus) -> Iterator[StatusProblem]:
    if answer.trouble:
        yield StatusProblem(ProblemKind.NOT_FORWARDED, detail=answer.trouble)
    if answer.sync and (why := answer.sync.unlearnt):
        yield StatusProblem(ProblemKind.NOT_SYNCED, detail=why)


def _missing(observations: Observations) -> Iterator[StatusProblem]:
    if isinstance(observations.snapshot, str):
        yield StatusProblem(ProblemKind.NO_CONFIGURATION, detail=observations.snapshot)
    if not observations.living:
        yield StatusProblem(ProblemKind.NOT_RUNNING, detail=str(observations.supervised))
    elif not isinstance(observations.supervised, (tuple, SupervisordNotAsked)):
        yield StatusProblem(ProblemKind.NO_SUPERVISORD, detail=str(observations.supervised))


def _program(program: ProgramStatus) -> StatusProblem:
    reason = f": {program.reason}" if program.reason else ""
    return StatusProblem(ProblemKind.PROGRAM, program.name, detail=f"{program.state}{reason}")


def _reload_sockets(answers: Mapping[str, StatusAnswer]) -> Iterator[StatusProblem]:
    for program, each in answers.items():
        for path, failure in each.socket_failures.items():
            # The failure of a directory that another user owns has these words; there are two ways out.
            kind = ProblemKind.SOCKET_OF_ANOTHER_USER if " belongs to " in failure else ProblemKind.SOCKET
            yield StatusProblem(kind, program, detail=f"{path}: {failure}")


def _full(frontends: Iterable[FrontendStatus]) -> Iterator[StatusProblem]:
    return (
        StatusProblem(
            ProblemKind.FRONTEND_FULL, each.name, detail=f"{each.current} of {each.max_connections}"
        )
        for each in frontends
        if each.full
    )


def _refused(reload: ReloadStatus | None) -> Iterator[StatusProblem]:
    if reload is None:
        return
    kind = ProblemKind.REFUSED if reload.again_in is None else ProblemKind.REFUSED_FOR_NOW
    yield from (StatusProblem(kind, detail=located(each)) for each in reload.refused)


def located(problem: AnswerProblem) -> str:
    """Return a problem with its place, as far as it is known."""
    file = f"{problem.source} " if problem.source else ""
    line = f"{file}line {problem.line}" if problem.line else None
    return ": ".join(part for part in (line, problem.path, problem.message) if part)


def _not_kept(answers: Mapping[str, StatusAnswer]) -> Iterator[StatusProblem]:
    for program, each in answers.items():
        for path, why in each.not_kept.items():
            yield StatusProblem(ProblemKind.NOT_WRITTEN, program, detail=f"{path}: {why}")


def wrong_properties(report: GuestReport) -> Iterator[StatusProblem]:
    """Yield the problems with the properties of a virtual machine."""
    for each in report.problems:
        yield StatusProblem(ProblemKind.PROPERTY, detail=f"property {each}" if each.key else str(each))
