"""Brings programs that have another snapshot than the accepted one to it.

A program has another one if it started in the middle of a reload, or if `reload` died between the acceptance
and the last commit: then the accepted snapshot is written, and some programs still use the one before.
"""

import dataclasses
from collections.abc import Mapping

from appliance.core.programs import needed
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.supervision.supervisor_rpc import SupervisorUnavailable
from appliance.reload.accepted_files import OnceLog
from appliance.reload.program_clients import Outcome, ProgramClients, ProgramDown
from appliance.wire.lines.control import Answer, AnswerProblem


def failures_of(program: str, outcome: Outcome) -> list[AnswerProblem]:
    """Return why a program did not carry out a command; one that exited meanwhile did not either."""
    if not isinstance(outcome, Answer):
        return [AnswerProblem(message=f"{program}: {outcome.reason}")]
    errors = outcome.errors or (() if outcome.ok else (AnswerProblem(message="refused without a reason"),))
    return [dataclasses.replace(each, message=f"{program}: {each.message}") for each in errors]


def skipped(absent: Mapping[str, ProgramDown]) -> list[AnswerProblem]:
    """Return warnings about programs that are not running: they need not be asked."""
    takes = "it takes this configuration when it starts"
    return [
        AnswerProblem(message=f"{name} is not running ({down.reason}): {takes}")
        for name, down in absent.items()
    ]


def not_committed(outcomes: Mapping[str, Outcome]) -> tuple[AnswerProblem, ...]:
    """Return why programs did not commit what they had prepared; `converge` orders them again."""
    failures = (each for name, outcome in outcomes.items() for each in failures_of(name, outcome))
    return tuple(dataclasses.replace(each, message=f"{each.message}: this is retried") for each in failures)


def converge(accepted: Snapshot, clients: ProgramClients, once: OnceLog, *, everybody: bool) -> None:
    """Bring programs to the accepted snapshot: all that are up, or those that report another one.

    Needed programs that never ran, or were stopped by a reload, are started, others stopped.
    """
    programs = needed(accepted)
    try:
        clients.put_right(programs)
    except (SupervisorUnavailable, OSError) as error:
        once.failed("supervisord", str(error))
    for program in programs:
        snapshot = clients.snapshot_of(program)
        if snapshot is not None and (everybody or snapshot != accepted.number):
            _lead(program, accepted.number, clients, once)


def _lead(program: str, number: int, clients: ProgramClients, once: OnceLog) -> None:
    failures = failures_of(program, clients.prepare([program], number, forced=True)[program])
    if not failures:
        failures = failures_of(program, clients.commit([program], number)[program])
    for failure in failures:
        once.failed(program, failure.message)
    if not failures:
        once.recovered(program)
