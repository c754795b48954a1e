"""Writes a configuration as YAML for people: each entry has a comment with its origin.

The output reads back as the same tree, with our reader and with others: text that one of them would take for
a number, a date or a switch is quoted.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Final

import yaml

from appliance.model.document.tree import DocumentError, Node, Plain, Scalar, plain
from appliance.model.document.yaml_reader import read_yaml
from appliance.model.messages.problems import FilePosition

Comment = Callable[[FilePosition], str]
"""Returns the comment for a place, without the `#`; "" for none."""

WIDTH: Final = 100
"""Longest line without its comment; longer entries are spread over several lines."""

_STEP: Final = "  "
_DEEPEST: Final = 2  # nested mappings that fit on one line
_COMMENT_COLUMN: Final = 56
_PLAIN: Final = re.compile(r"[A-Za-z0-9_./][A-Za-z0-9_./:%+-]*", re.ASCII)


def write_yaml(root: Node, comment: Comment) -> str:
    """Return a mapping as YAML, sections apart; what came from one line stays on one, if it fits."""
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
        return value if _is_plain(value) else _quoted(value)
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


def _quoted(text: str) -> str:
    """Return a text in double quotes; JSON strings are valid YAML, and can escape every character."""
    return json.dumps(text, ensure_ascii=not text.isprintable())
