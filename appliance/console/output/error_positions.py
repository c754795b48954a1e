"""The position of an error, in the form of compilers, so that editors can jump there."""

from pathlib import Path

from appliance.wire.lines.control import AnswerProblem


def located(problem: AnswerProblem, file: Path | None) -> str:
    """Return `file:line:column: path: message`, without unknown parts."""
    place = [str(each) for each in (problem.source or file, problem.line, problem.column) if each is not None]
    prefix = [":".join(place)] if problem.line is not None else []
    return ": ".join([*prefix, *filter(None, [problem.path]), problem.message])
