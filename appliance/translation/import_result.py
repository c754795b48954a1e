"""What `appliance import` prints: a configuration as YAML, the outcome of each line, and proposals."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import get_args, get_origin

from msgspec.structs import replace

from appliance.model.config.configuration import Config
from appliance.model.config.section import Section, behind_names
from appliance.model.document.tree import Node
from appliance.model.loading.loading import load_document
from appliance.model.messages.problems import FilePosition, Problem, Severity
from appliance.model.messages.quoting import printable
from appliance.translation.composing import left_to_haproxy, together
from appliance.translation.translation import LeftSection, LineOutcome, Outcome, Proposal, Translation
from appliance.translation.yaml_text import write_yaml

_LONGEST = 60  # characters of a line that a comment quotes


def in_order(root: Node) -> Node:
    """Return a configuration with the keys of each section in the order in which `model.config` has them."""
    return _section(root, Config)


def _section(node: Node, kind: type[Section]) -> Node:
    if not isinstance(node.value, dict):
        return node
    fields = {field.alias or name: field.annotation for name, field in kind.model_fields.items()}
    known = [key for key in fields if key in node.value]
    others = [key for key in node.value if key not in fields]
    entries = {
        key: replace(entry, node=_below(entry.node, fields.get(key, behind_names(kind))))
        for key, entry in ((key, node.value[key]) for key in (*known, *others))
    }
    return Node(place=node.place, value=entries)


def _below(node: Node, annotation: object) -> Node:
    kind = next(_sections(annotation), None)
    if kind is None or not isinstance(node.value, dict):
        return node
    if not _is_mapping_of_names(annotation):
        return _section(node, kind)
    entries = {key: replace(entry, node=_section(entry.node, kind)) for key, entry in node.value.items()}
    return Node(place=node.place, value=entries)


def _is_mapping_of_names(annotation: object) -> bool:
    return get_origin(annotation) is dict


def _sections(annotation: object) -> Iterator[type[Section]]:
    """Yield the sections that an annotation names, also within `X | None` and `dict[Name, X]`."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for each in get_args(annotation):
        yield from _sections(each)


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
        yaml=f"{head}\n{write_yaml(in_order(document.root), _comments(lines))}",
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
        yield f"  {where(each.place)}: {_quoted(each.text)}"
        yield f"    {printable(each.reason or '')}"


def _left(translations: Sequence[Translation]) -> Iterator[str]:
    for at, said in enumerate(left_to_haproxy(translations)):
        yield from ("", printable(said)) if at == 0 else (printable(said),)


def _comments(lines: Sequence[LineOutcome]) -> "_Comments":
    return _Comments({(each.place.source, each.place.line): each.text for each in lines})


class _Comments:
    """Returns the place of an entry with its line; only the place if the entry above has the same line."""

    def __init__(self, texts: Mapping[tuple[str | None, int], str]) -> None:
        self._texts = texts
        self._above: tuple[str | None, int] | None = None

    def __call__(self, place: FilePosition) -> str:
        above, self._above = self._above, (place.source, place.line)
        text = self._texts.get(self._above) if self._above != above else None
        position = f"{(place.source or '').rpartition('/')[2]}:{place.line}"
        return f"{position}: {_quoted(text)}" if text else position


def where(place: FilePosition) -> str:
    """Return a place in the form of editors and compilers."""
    return f"{place.source}:{place.line}:{place.column}"


def _quoted(text: str) -> str:
    words = printable(" ".join(text.split()))
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
