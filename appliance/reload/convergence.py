"""Brings programs that have another snapshot than the accepted one to it.

A program has another one if it started in the middle of a reload, or if `reload` died between the acceptance
and the last commit: then the accepted snapshot is written, and some programs still use the one before.
"""

import dataclasses
from collections.abc import Callable, Mapping
from functools import partial

from structlog.typing import FilteringBoundLogger

from appliance.core.program_table import needed
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import snapshots, state_files
from appliance.net.supervision.supervisor_rpc import SupervisorUnavailable
from appliance.reload.program_clients import Outcome, ProgramClients, ProgramDown
from appliance.wire.lines.control import Answer, AnswerProblem


class OnceLog:
    """Logs that a program or a file differs from the accepted configuration: once for each reason."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._logged: set[tuple[str, str]] = set()

    def failed(self, name: str, message: str) -> None:
        """Log a failure, unless it was logged since `recovered` was last called for the name."""
        if (name, message) not in self._logged:
            self._logged.add((name, message))
            self._log.error("converge-failed", name=name, error=message)

    def recovered(self, name: str) -> None:
        """Forget what was logged for a name: it works again."""
        self._logged = {each for each in self._logged if each[0] != name}


class AcceptedFiles:
    """The accepted snapshot, as programs read it when they start, and its last-good copy.

    `not_kept` maps files that a later start may want and that cannot be written to the reason.
    """

    def __init__(self, paths: Paths, log: FilteringBoundLogger, once: OnceLog) -> None:
        self.not_kept: dict[str, str] = {}
        self._paths = paths
        self._log = log
        self._once = once

    def heal(self, accepted: Snapshot) -> list[AnswerProblem]:
        """Write lost or damaged files again; return those that fail. A damaged file is renamed."""
        for path, reason in list(snapshots.damaged(self._paths)):
            aside = state_files.set_aside(path)
            self._log.error("state-damaged", reason=reason, aside=str(aside) if aside else None)
        heals = (snapshots.heal,) if accepted.awaited else (snapshots.heal, snapshots.heal_last_good)
        failed = [error for heal in heals if (error := _error(partial(heal, self._paths, accepted)))]
        self.not_kept = {str(each.filename): each.strerror or str(each) for each in failed}
        for name, why in self.not_kept.items():
            self._once.failed("state", f"{name}: {why}")
        if not failed:
            self._once.recovered("state")
        return [AnswerProblem(message=f"{path}: {why}") for path, why in self.not_kept.items()]


def _error(step: Callable[[], None]) -> OSError | None:
    try:
        step()
    except OSError as error:
        return error
    return None


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
        failures = failures_of(program, clients.commit([[program]], number)[program])
    for failure in failures:
        once.failed(program, failure.message)
    if not failures:
        once.recovered(program)
