"""What is wrong with the appliance, in sentences.

`appliance status` shows them, and exits with 1 where there are any.
"""

from collections.abc import Iterable, Iterator, Mapping

from appliance.core.checks.stale_verdicts import outdated
from appliance.core.status.observations import Observations, SupervisordNotAsked
from appliance.core.status.pools import health_records
from appliance.core.status.status import (
    FrontendStatus,
    PoolStatus,
    ProgramStatus,
)
from appliance.core.status.vrrp_troubles import troubles
from appliance.model.guest.report import GuestReport
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.lines.control import AnswerProblem
from appliance.wire.lines.discovery_status import DiscoveryStatus
from appliance.wire.lines.forward_status import ForwardStatus
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.redirect_status import RedirectStatus
from appliance.wire.lines.status_answer import ReloadStatus, StatusAnswer
from appliance.wire.lines.vrrp_status import VrrpStatus


def problems(
    observations: Observations,
    *,
    programs: Iterable[ProgramStatus],
    frontends: Iterable[FrontendStatus],
    pools: Iterable[PoolStatus],
    now: float,
) -> tuple[str, ...]:
    """Return all that is wrong at `now`, Unix seconds.

    The properties of a virtual machine come first: a console shows only so many lines. Where nothing of the
    appliance runs, that is said alone: all else would follow from it.
    """
    return (
        *(_wrong_properties(observations.guest) if observations.guest else ()),
        *_missing(observations),
        *(_while_it_runs(observations, programs, frontends, pools, now) if observations.living else ()),
    )


def _awaited(observations: Observations) -> Iterator[str]:
    """Yield what is waited for, where no configuration was accepted yet."""
    if isinstance(observations.snapshot, Snapshot) and observations.snapshot.awaited:
        errors = observations.degraded.errors if observations.degraded else ()
        reasons = "; ".join(located(each) for each in errors)
        yield f"waits for a first configuration: {reasons or 'there is none yet'}"


def _while_it_runs(
    observations: Observations,
    programs: Iterable[ProgramStatus],
    frontends: Iterable[FrontendStatus],
    pools: Iterable[PoolStatus],
    now: float,
) -> Iterator[str]:
    yield from _awaited(observations)
    yield from (_program(each) for each in programs if not each.ok)
    yield from _reload_sockets(observations.answers)
    yield from _full(frontends)
    yield from _not_kept(observations.answers)
    yield from _refused(observations.answer(ReloadStatus))
    yield from _without_server(pools)
    if isinstance(observations.snapshot, Snapshot):
        yield from outdated(observations.snapshot, health_records(observations), now=now)
    for answer in observations.answers.values():
        yield from _of_program(answer)
    if observations.connection_room and observations.connection_room.short():
        yield str(observations.connection_room)


def _of_program(answer: StatusAnswer) -> Iterator[str]:
    """Yield what a program itself says is wrong."""
    match answer:
        case DiscoveryStatus(problems=found):
            yield from found
        case VrrpStatus():
            yield from troubles(answer)
        case RedirectStatus(trouble=trouble) if trouble:
            yield f"connections cannot be redirected: {trouble}"
        case ForwardStatus(trouble=trouble) if trouble:
            yield f"connections cannot be forwarded as they should be: {trouble}"
        case LingerStatus(trouble=trouble) if trouble:
            yield f"virtual IPs move without their connections: {trouble}"


def _missing(observations: Observations) -> Iterator[str]:
    if isinstance(observations.snapshot, str):
        yield f"no accepted configuration: {observations.snapshot}"
    if not observations.living:
        yield f"the appliance does not run: {observations.supervised}"
    elif not isinstance(observations.supervised, (tuple, SupervisordNotAsked)):
        yield f"supervisord does not answer: {observations.supervised}"


def _program(program: ProgramStatus) -> str:
    return f"{program.name} is {program.state}" + (f": {program.reason}" if program.reason else "")


def _reload_sockets(answers: Mapping[str, StatusAnswer]) -> Iterator[str]:
    for program, each in answers.items():
        yield from (f"{program} socket {path}: {failure}" for path, failure in each.socket_failures.items())


def _full(frontends: Iterable[FrontendStatus]) -> Iterator[str]:
    return (
        f"frontend {each.name} is full: {each.current} of {each.max_connections} connections"
        for each in frontends
        if each.full
    )


def _refused(reload: ReloadStatus | None) -> Iterator[str]:
    if reload is None:
        return
    for problem in reload.refused:
        if reload.again_in is None:
            yield f"the last reload was refused: {located(problem)}"
        else:
            yield f"the last reload was refused for now, and is tried again: {located(problem)}"


def located(problem: AnswerProblem) -> str:
    """Return a problem with its place, as much of it as there is."""
    file = f"{problem.source} " if problem.source else ""
    line = f"{file}line {problem.line}" if problem.line else None
    return ": ".join(part for part in (line, problem.path, problem.message) if part)


def _not_kept(answers: Mapping[str, StatusAnswer]) -> Iterator[str]:
    for program, each in answers.items():
        yield from (f"{program} cannot write {path}: {why}" for path, why in each.not_kept.items())


def _without_server(pools: Iterable[PoolStatus]) -> Iterator[str]:
    return (f"pool {pool.name} has no server up" for pool in pools if not pool.ok)


def _wrong_properties(report: GuestReport) -> Iterator[str]:
    return (f"property {each}" if each.key else str(each) for each in report.problems)
