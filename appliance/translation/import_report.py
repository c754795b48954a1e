"""The report of an import, for people and for machines: each line of the files, then the proposals."""

from collections import Counter
from collections.abc import Iterator

from appliance.model.messages.problems import Problem
from appliance.model.messages.quoting import printable
from appliance.translation.import_result import ImportResult, where
from appliance.translation.translation import LineOutcome, Outcome, Proposal

_OUTCOME_WIDTH = max(map(len, Outcome))


def as_text(result: ImportResult) -> str:
    """Return the report as a table of lines with the reasons below them, problems and proposals.

    A block that is left out as a whole has one line, with the number of lines left out.
    """
    lines = [each for each in result.lines if each.left_out_with is None]
    further = Counter(each.left_out_with for each in result.lines)
    width = max((len(where(each.place)) for each in lines), default=0)
    return "".join(
        f"{line}\n"
        for part in (
            *(_line(each, width, further.pop(each.place, 0)) for each in lines),
            _counts(result),
            _left(result),
            *(_problem(each) for each in result.problems),
            *(_proposals(result.proposals)),
        )
        for line in part
    )


def as_values(result: ImportResult) -> dict[str, object]:
    """Return the report as JSON; the keys are stable."""
    return {
        "ok": result.ok,
        "counts": {each.value: result.counts.get(each, 0) for each in Outcome},
        "lines": [
            {
                "file": each.place.source,
                "line": each.place.line,
                "column": each.place.column,
                "text": each.text,
                "outcome": each.outcome.value,
                "reason": each.reason,
            }
            for each in result.lines
        ],
        "problems": list(result.problems),
        "left": [
            {
                "section": each.kind,
                "name": each.name,
                "file": each.place.source,
                "line": each.place.line,
                "addresses": list(each.addresses),
            }
            for each in result.left
        ],
        "proposals": [
            {
                "name": each.name,
                "message": each.message,
                "file": each.place.source if each.place else None,
                "line": each.place.line if each.place else None,
                "example": each.example,
            }
            for each in result.proposals
        ],
    }


def _line(line: LineOutcome, width: int, further: int) -> Iterator[str]:
    text = printable(" ".join(line.text.split()))
    if further:
        text += f" ... and {further} lines" if further > 1 else " ... and 1 line"
    yield f"{where(line.place):<{width}}  {line.outcome:<{_OUTCOME_WIDTH}}  {text}".rstrip()
    if line.reason:
        yield f"{'':<{width}}  {'':<{_OUTCOME_WIDTH}}    {printable(line.reason)}"


def _counts(result: ImportResult) -> Iterator[str]:
    yield ", ".join(f"{result.counts.get(each, 0)} {each}" for each in Outcome)


def _left(result: ImportResult) -> Iterator[str]:
    if result.left:
        yield ""
        yield "Left to HAProxy, which can continue with only these sections (`--rest FILE` writes its file):"
    for each in result.left:
        said = f": {each.unserved}" if each.unserved else ""
        yield f"  {where(each.place)}: {each.kind} {printable(each.name)}{said}"


def _problem(problem: Problem) -> Iterator[str]:
    yield f"{problem.severity}: {problem}"


def _proposals(proposals: tuple[Proposal, ...]) -> Iterator[Iterator[str]]:
    if proposals:
        yield iter(("", "Proposals, not applied in the YAML:"))
    for each in proposals:
        yield _proposal(each)


def _proposal(proposal: Proposal) -> Iterator[str]:
    place = f"{where(proposal.place)}: " if proposal.place else ""
    yield f"  {proposal.name}: {place}{printable(proposal.message)}"
    for line in (proposal.example or "").splitlines():
        yield f"      {printable(line)}"
