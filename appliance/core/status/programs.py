"""The supervised programs in a status.

A program that does not run cannot report it. Others do: supervisord knows its exit, the boards of workers
outlive their master, and the accepted snapshot shows which programs are needed.
"""

from collections.abc import Iterable, Iterator

from appliance.core.program_table import needed
from appliance.core.status.observations import Observations, SupervisedProgram
from appliance.core.status.status import (
    ProgramState,
    ProgramStatus,
)
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.worker_phases import WorkerPhase
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines.proxy_status import ProxyStatus
from appliance.wire.lines.status_answer import StatusAnswer


def program_statuses(
    observations: Observations, snapshot: Snapshot | None, now: float
) -> Iterator[ProgramStatus]:
    """Yield the programs that the configuration needs, then what else runs under this supervisord."""
    expected = ("reload", *(needed(snapshot) if snapshot else ()))
    supervised = observations.supervised if isinstance(observations.supervised, tuple) else ()
    known = {each.name: each for each in supervised}
    # In the order of the picture in README.
    for name in dict.fromkeys((*expected, *observations.answers, *sorted(known))):
        yield _program(name, known.get(name), observations, expected=name in expected, now=now)


def _program(
    name: str, supervised: SupervisedProgram | None, observations: Observations, *, expected: bool, now: float
) -> ProgramStatus:
    answer = observations.answers.get(name)
    state = supervised.state if supervised else (ProgramState.RUNNING if answer else ProgramState.GONE)
    if state is ProgramState.STARTING and answer:
        state = (
            ProgramState.RUNNING
        )  # supervisord reports that only after `startsecs`; it serves once it answers
    reason = _reason(name, supervised, observations, state, expected=expected)
    started_at = (answer and answer.started_at) or (supervised and supervised.started_at)
    return ProgramStatus(
        name=name,
        state=state,
        expected=expected,
        ok=not expected or (state is ProgramState.RUNNING and reason is None),
        pid=(answer and answer.pid) or (supervised.pid if supervised else None),
        uptime=max(0.0, now - started_at) if started_at and state is ProgramState.RUNNING else None,
        generation=_generation(name, answer, observations.workers),
        workers=_accepting_workers(name, observations.workers),
        configuration=answer.snapshot if answer else None,
        reason=reason,
    )


def _generation(name: str, answer: StatusAnswer | None, workers: Iterable[WorkerBoard]) -> int | None:
    if answer is None:
        return _accepting_generation(name, workers)
    return answer.generation if isinstance(answer, ProxyStatus) else None


def _reason(
    name: str,
    supervised: SupervisedProgram | None,
    observations: Observations,
    state: ProgramState,
    *,
    expected: bool,
) -> str | None:
    # What the program wrote itself says more than its exit status.
    if name in observations.failures:
        return observations.failures[name]
    if supervised and supervised.reason:
        return supervised.reason
    if not expected:
        return None
    accepting = _accepting_workers(name, observations.workers)
    # Workers hold the listening sockets themselves: without their master they accept and serve as before.
    if state is not ProgramState.RUNNING:
        return f"its workers continue to serve without it: {accepting}" if accepting else None
    if name not in observations.answers:
        return "does not answer on its control socket"
    return "none of its workers accepts connections" if name.startswith("proxy-") and not accepting else None


def _accepting_workers(program: str, workers: Iterable[WorkerBoard]) -> int | None:
    if not program.startswith("proxy-"):
        return None
    return sum(each.program == program and each.phase is WorkerPhase.ACCEPTING for each in workers)


def _accepting_generation(program: str, workers: Iterable[WorkerBoard]) -> int | None:
    generations = (
        each.generation for each in workers if each.program == program and each.phase is WorkerPhase.ACCEPTING
    )
    return max(generations, default=None)
