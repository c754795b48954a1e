"""The example configuration with the model's descriptions as comments above its keys.

`cd tests && python -m support.values.annotated` rewrites config/appliance.example.yaml so: run it after
changing a description or adding a key to both.
"""

import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from pydantic.fields import FieldInfo

from appliance.model.config.json_schema import key_descriptions
from appliance.model.config.section import Section
from appliance.model.document.document import Document, read
from appliance.model.messages.problems import FindingTarget
from appliance.model.validation import unknown_keys

EXAMPLE = Path(__file__).parents[3] / "config" / "appliance.example.yaml"
_WIDTH = 110


def keys(document: Document) -> Iterator[tuple[FieldInfo, tuple[str, ...]]]:
    """Yield each key of the document that the model describes, once: where it comes first."""
    seen: set[int] = set()
    for path, field in _described(document.value, ()):
        if id(field) not in seen:
            seen.add(id(field))
            yield field, path


def undocumented(document: Document) -> list[str]:
    """Return the keys of the model that the document does not show."""
    shown = {id(field) for field, _ in keys(document)}
    return [
        f"{section.__name__}.{key}"
        for section in Section.__subclasses__()
        for key, field in section.model_fields.items()
        if id(field) not in shown
    ]


def annotated(text: str) -> str:
    """Return the text with each key's description above it, in place of the comments that stand there."""
    lines: list[str | None] = [*text.splitlines()]
    document = read(text)
    comments: dict[int, list[str]] = {}
    described = {
        id(field): key_descriptions(section)[key]
        for section in Section.__subclasses__()
        for key, field in section.model_fields.items()
    }
    for field, path in keys(document):
        place = document.place(path, FindingTarget.KEY)
        line = text.splitlines()[place.line - 1]
        if line[: place.column - 1].strip():
            raise ValueError(f"line {place.line}: the first `{path[-1]}` of its kind needs a line of its own")
        comments[place.line - 1] = _comment(described[id(field)], indent=place.column - 1)
        _clear_above(lines, place.line - 2)
    return "".join(
        f"{each}\n"
        for at, line in enumerate(lines)
        for each in [*comments.get(at, []), line]
        if each is not None
    )


def _described(value: object, at: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], FieldInfo]]:
    if not isinstance(value, dict):
        return
    known = unknown_keys.fields(at)
    for key, below in value.items():
        if key in known:
            yield (*at, key), known[key]
        yield from _described(below, (*at, key))


def _comment(description: str, *, indent: int) -> list[str]:
    prefix = " " * indent + "# "
    return textwrap.wrap(description, width=_WIDTH, initial_indent=prefix, subsequent_indent=prefix)


def _clear_above(lines: list[str | None], at: int) -> None:
    while at >= 0 and (line := lines[at]) is not None and line.lstrip().startswith("#"):
        lines[at] = None
        at -= 1


if __name__ == "__main__":
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else EXAMPLE
    path.write_text(annotated(path.read_text()))
