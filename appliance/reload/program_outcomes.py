"""The programs' answers in a reload, as problems for the client that requested it."""

import dataclasses
from collections.abc import Mapping

from appliance.reload.program_clients import Outcome, ProgramDown
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
