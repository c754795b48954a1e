"""What a change of configuration would do: each key with its old and new value, and what it takes.

Secrets are shown as `***`: the preview is printed, and may be copied into a ticket.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from appliance.core.rollout.change_plan import plan
from appliance.core.rollout.needs_generation import is_fixed
from appliance.model.messages.problems import dotted
from appliance.model.messages.quoting import printable
from appliance.model.messages.secrets import is_secret
from appliance.model.snapshot.diff import ORDER, Absent, ConfigChange, Keys, diff, operators_keys
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Snapshot

if TYPE_CHECKING:  # it imports YAML, which `reload` needs for a preview only
    from appliance.model.document.document import Document

_HIDDEN: Final = "***"
_FRACTIONS: Final = frozenset({"panic", "max_age_jitter"})
_LONGEST: Final = 200


class Takes(StrEnum):
    """What applying a changed key takes: nothing, new workers alongside the old, a program, a restart."""

    LIVE = "live"
    GENERATION = "generation"
    PROGRAM = "program"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedChange:
    """One key. `old` and `new` are None if it was not there before, or is not afterwards.

    `line` and `source` are its place in the file now, or that of the nearest key above; None if it is in no
    file.
    """

    path: str
    old: str | None
    new: str | None
    takes: Takes
    line: int | None
    column: int | None
    source: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """All keys, the programs that get new workers, and those that are started and stopped."""

    changes: tuple[PreviewedChange, ...]
    generations: tuple[str, ...]
    start: tuple[str, ...]
    stop: tuple[str, ...]


def preview(old: Snapshot, new: Snapshot, document: "Document") -> Preview:
    """Return the effect of a change between two snapshots; `document` is the source of the new one."""
    programs = plan(old, new)
    going = frozenset({*programs.start, *programs.stop})
    seen = [(each, _takes(each, going)) for each in diff(old, new)]
    moved = [each for each in seen if each[0].path[-1] != ORDER or not _resized(each[0], seen)]
    changes = tuple(dict.fromkeys(_shown(change, takes, document) for change, takes in moved))
    anew = {f"proxy-{change.path[1]}" for change, takes in moved if takes is Takes.GENERATION}
    return Preview(changes=changes, generations=tuple(sorted(anew)), start=programs.start, stop=programs.stop)


def as_values(found: Preview) -> dict[str, object]:
    """Return a preview as answers hold it."""
    return {
        "changes": [
            {name: getattr(each, name) for name in PreviewedChange.__slots__} for each in found.changes
        ],
        "generations": list(found.generations),
        "start": list(found.start),
        "stop": list(found.stop),
    }


def _takes(change: ConfigChange, going: frozenset[str]) -> Takes:
    match change.path:
        case ("groups", group, *_) if f"proxy-{group}" in going:
            return Takes.PROGRAM
        case ("readers",):
            return Takes.RESTART
    return Takes.GENERATION if is_fixed(change.path) else Takes.LIVE


def _resized(change: ConfigChange, seen: list[tuple[ConfigChange, Takes]]) -> bool:
    """Return whether an order differs only because something came or went, which is shown itself."""
    at = change.path[:-1]
    return any(
        each.path[:-1] == at and Absent.ABSENT in (each.old, each.new)
        for each, _ in seen
        if each is not change
    )


def _shown(change: ConfigChange, takes: Takes, document: "Document") -> PreviewedChange:
    tree_path = tuple(step for step in change.path if step != ORDER)
    candidates = operators_keys(tree_path)
    path: Keys = next((each for each in candidates if document.has(each)), candidates[0])
    place = document.place(path)
    is_there = document.has(path[:1])
    return PreviewedChange(
        path=printable(dotted(path)),
        old=_value(change.path, change.old),
        new=_value(change.path, change.new),
        takes=takes,
        line=place.line if is_there else None,
        column=place.column if is_there else None,
        source=place.source,
    )


def _value(path: Keys, value: object) -> str | None:
    """Return a value as a line shows it, "" if it does not fit on a line, None if absent."""
    if value is Absent.ABSENT:
        return None
    if is_secret(path):
        return _HIDDEN
    text = printable(_text(path[-1], value))
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def _text(key: str, value: object) -> str:
    match value:
        case {"host": str() as host, "port": int() as port}:
            return str(Bind(host=host, port=port))
        case Mapping():
            return ""
        case (int() as low, int() as high) if key == "expect":
            return f"{low}-{high}"
        case tuple():
            texts = [_text(key, each) for each in value]
            return ", ".join(texts) if all(texts) else ""
    return _scalar(key, value)


def _scalar(key: str, value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float():
            return f"{value * 100:g}%" if key in _FRACTIONS else f"{value:g}s"
        case int() if key == "port":
            return f":{value}"
    return str(value)
