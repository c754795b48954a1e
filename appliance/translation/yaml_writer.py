"""Writes a configuration as YAML, each entry with the place and the line of the file that it is from."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Final, get_args, get_origin

import yaml
from msgspec.structs import replace

from appliance.model.config.configuration import Config
from appliance.model.config.section import Section, behind_names
from appliance.model.document.tree import DocumentError, Node, Plain, Scalar, plain
from appliance.model.document.yaml_reader import read_yaml
from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import printable
from appliance.translation.translation import LineOutcome

Comment = Callable[[FilePosition], str]
"""Returns the comment for a place, without the `#`; "" for none."""

WIDTH: Final = 100
"""Longest line without its comment; longer entries are spread over several lines."""

_STEP: Final = "  "
_DEEPEST: Final = 2  # nested mappings that fit on one line
_COMMENT_COLUMN: Final = 56
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:%+-]*", re.ASCII)

_LONGEST = 60  # characters of a line that a comment quotes


def write_yaml(root: Node, comment: Comment) -> str:
    """Return a mapping as YAML, sections apart; what came from one line stays on one, if it fits.

    The output reads back as the same tree, with our reader and with others: text that one of them would take
    for a number, a date or a switch is quoted.
    """
    if not isinstance(root.value, dict):
        raise TypeError("a configuration must be a mapping")
    if not root.value:
        return "{}\n"
    sections = (_entry(key, entry.node, entry.place, comment, "") for key, entry in root.value.items())
    return "\n".join("".join(f"{line}\n" for line in section) for section in sections)


def _entry(key: str, node: Node, place: FilePosition, comment: Comment, indent: str) -> Iterator[str]:
    """Yield the lines of one entry of a mapping."""
    head = f"{indent}{_scalar(key)}:"
    on_one_line = f"{head} {_flow(plain(node))}"
    if not isinstance(node.value, dict | list) or not node.value:
        yield _with_comment(on_one_line, comment(place))
        return
    if len(on_one_line) <= WIDTH and _is_one_thing(node) and len(set(_lines(node))) == 1:
        yield _with_comment(on_one_line, comment(place))
        return
    yield head
    if isinstance(node.value, dict):
        for below, entry in node.value.items():
            yield from _entry(below, entry.node, entry.place, comment, indent + _STEP)
        return
    for item in node.value:
        yield _with_comment(f"{indent}{_STEP}- {_flow(plain(item))}", comment(item.place))


def _is_one_thing(node: Node) -> bool:
    """Return whether a value is anything but a collection of named things, which get a line each."""
    below = [entry.node.value for entry in node.value.values()] if isinstance(node.value, dict) else []
    collects = bool(below) and all(isinstance(each, dict) for each in below)
    return not collects and _depth(node) <= _DEEPEST


def _depth(node: Node) -> int:
    if isinstance(node.value, dict):
        return 1 + max((_depth(entry.node) for entry in node.value.values()), default=0)
    if isinstance(node.value, list):
        return max((_depth(item) for item in node.value), default=0)
    return 0


def _lines(node: Node) -> Iterator[tuple[str | None, int]]:
    """Yield the line of each scalar value."""
    if isinstance(node.value, dict):
        for entry in node.value.values():
            yield from _lines(entry.node)
    elif isinstance(node.value, list):
        for item in node.value:
            yield from _lines(item)
    else:
        yield node.place.source, node.place.line


def _with_comment(line: str, comment: str) -> str:
    return f"{line:<{_COMMENT_COLUMN}}  # {comment}" if comment else line


def _flow(value: Plain) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_scalar(key)}: {_flow(each)}" for key, each in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value)


def _scalar(value: Scalar) -> str:
    if isinstance(value, str):
        return value if _is_plain(value) else _in_quotes(value)
    return json.dumps(value)


@lru_cache(maxsize=4096)  # every server has the same keys and words
def _is_plain(text: str) -> bool:
    if not _PLAIN.fullmatch(text) or text.endswith(":") or text.startswith("0o"):
        return False
    try:
        node = read_yaml(text)
    except DocumentError:
        return False
    return node is not None and node.value == text and _others_read(text) == text


def _others_read(text: str) -> object:
    """Return how readers of YAML 1.1 interpret a text: `no` is a switch there, and `1:30` a number."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return None


def _in_quotes(text: str) -> str:
    """Return a text in double quotes; JSON strings are valid YAML, and can escape every character."""
    return json.dumps(text, ensure_ascii=not text.isprintable())


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


class SourceComments:
    """Returns the place of an entry with its line; only the place if the entry above has the same line."""

    def __init__(self, lines: Iterable[LineOutcome]) -> None:
        self._texts = {(each.place.source, each.place.line): each.text for each in lines}
        self._above: tuple[str | None, int] | None = None

    def __call__(self, place: FilePosition) -> str:
        """Return the comment of an entry, without the `#`."""
        above, self._above = self._above, (place.source, place.line)
        text = self._texts.get(self._above) if self._above != above else None
        position = f"{(place.source or '').rpartition('/')[2]}:{place.line}"
        return f"{position}: {quoted(text)}" if text else position


def quoted(text: str) -> str:
    """Return a line of a file on one line, cut if it is long."""
    words = printable(" ".join(text.split()))
    return words if len(words) <= _LONGEST else f"{words[:_LONGEST]}..."
