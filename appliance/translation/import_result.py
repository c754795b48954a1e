"""What `appliance import` prints: a configuration as YAML, the outcome of each line, and proposals."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from appliance.model.loading.loading import load_document
from appliance.model.messages.problems import FilePosition, Problem, Severity
from appliance.model.messages.quoting import printable
from appliance.translation.combined_files import left_to_haproxy, together
from appliance.translation.translation import LeftSection, LineOutcome, Outcome, Proposal, Translation
from appliance.translation.yaml_writer import SourceComments, in_order, quoted, write_yaml


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """A configuration equivalent to the files.

    `ok` is whether no line is refused and `appliance check` finds no error in the YAML; `problems` are what
    it finds, with places in the files. `left` are the sections left to HAProxy, `remainder` is the
    haproxy.cfg with which it continues, "" without such sections.
    """

    ok: bool
    yaml: str
    counts: Mapping[Outcome, int]
    lines: tuple[LineOutcome, ...]
    problems: tuple[Problem, ...]
    proposals: tuple[Proposal, ...]
    left: tuple[LeftSection, ...] = ()
    remainder: str = ""


def import_result(translations: Sequence[Translation]) -> ImportResult:
    """Return the files as one configuration."""
    document, clashes = together(None, translations, source="")
    lines = tuple(line for each in translations for line in each.lines)
    refused = {(line.place.source, line.place.line) for each in translations for line in each.refused}
    loaded = load_document(document, source="", number=0, known=clashes)
    problems = tuple(each for each in loaded.problems if (each.source, each.line) not in refused)
    head = "".join(f"# {line}".rstrip() + "\n" for line in (*_head(lines), *_left(translations)))
    return ImportResult(
        ok=not refused and all(each.severity is not Severity.ERROR for each in problems),
        yaml=f"{head}\n{write_yaml(in_order(document.root), SourceComments(lines))}",
        counts=dict(Counter(line.outcome for line in lines)),
        lines=lines,
        problems=problems,
        proposals=tuple(proposal for each in translations for proposal in each.proposals),
        left=tuple(section for each in translations for section in each.left),
        remainder="".join(each.remainder for each in translations),
    )


def _head(lines: Sequence[LineOutcome]) -> Iterator[str]:
    """Yield the comments above the configuration: where it is from, and what it lacks."""
    files = dict.fromkeys(each.place.source or "" for each in lines)
    yield f"Made by `appliance import` from {' and '.join(files)}."
    refused = [each for each in lines if each.outcome is Outcome.REFUSED]
    if not refused:
        return
    yield ""
    yield "These lines were refused, and nothing below replaces them:"
    for each in refused:
        yield f"  {where(each.place)}: {quoted(each.text)}"
        yield f"    {printable(each.reason or '')}"


def _left(translations: Sequence[Translation]) -> Iterator[str]:
    for at, said in enumerate(left_to_haproxy(translations)):
        yield from ("", printable(said)) if at == 0 else (printable(said),)


def where(place: FilePosition) -> str:
    """Return a place in the form of editors and compilers."""
    return f"{place.source}:{place.line}:{place.column}"
