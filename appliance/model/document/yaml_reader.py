"""Reads YAML with the position of each value: YAML 1.2's core schema with fewer types, on PyYAML's parser.

Only `true` and `false` (and their capitals) are booleans, only decimal numbers are numbers, dates and
`12:30:00` and `yes` and `0x10` stay text. Keys are text as written. Anchors and aliases work, within a bound;
merge keys, tags and several documents are refused.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import yaml
from yaml.error import Mark
from yaml.events import (
    AliasEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from appliance.model.document.tree import (
    DEPTH_LIMIT,
    DocumentError,
    Entry,
    Node,
    Scalar,
    Text,
    duplicate,
    lone_surrogate,
)
from appliance.model.messages.problems import FilePosition

NODE_LIMIT: Final = 200_000
"""Most values accepted, with aliases expanded: some ten thousand servers, and no alias bomb."""

_FAST: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml, if PyYAML has it: ten times as fast. If it refuses a file, PyYAML's own words give the reason."""

_MARKS: Final = (Mark, getattr(yaml, "_yaml", yaml.error).Mark)
_WORDS: Final[dict[str, bool | None]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]+")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NO_KEY: Final = "a key must be plain text: an address such as `[::]:80` needs quotes"
_NO_COLON: Final = "could not find expected ':'"
_WORDING: Final = (
    ("found character '\\t' that", "a tab: YAML is indented with spaces"),
    ("mapping values are not allowed", "a `: ` out of place: quote the text, or check the indentation"),
    (_NO_COLON, "a key without its `:`"),
    ("found undefined tag handle", "a tag that is not supported: text that begins with `!` needs quotes"),
    ("found duplicate", "this is given twice"),
    ("expected the node content", "a value expected: text that begins with `[`, `:` or `*` needs quotes"),
    ("expected <block end>, but found", "its indentation matches neither the line above nor a key of it"),
)


def read_yaml(text: str) -> Node | None:
    """Return the value of a YAML document, None if the text holds none; raises DocumentError."""
    unprintable = yaml.reader.Reader.NON_PRINTABLE.search(text)
    if unprintable:
        code = ord(unprintable.group())
        raise DocumentError(f"the character U+{code:04X} is not allowed", Text(text).at(unprintable.start()))
    # libyaml takes tabs for spaces in more places than PyYAML.
    if "\t" not in text:
        with suppress(DocumentError):
            return _YamlReader(text, _FAST).document()
    return _YamlReader(text, yaml.SafeLoader).document()


class _YamlReader:
    """Builds the tree from the parser's events, depth first."""

    def __init__(self, text: str, loader: type[yaml.SafeLoader | yaml.CSafeLoader]) -> None:
        self._loader = loader(text)
        self._get_event: Callable[[], Any] = self._loader.get_event
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._open: list[str] = []
        self._count = 0

    def document(self) -> Node | None:
        self._next()
        if isinstance(self._next(), StreamEndEvent):
            return None
        node = self._node(self._next(), depth=0)
        self._next()
        after = self._next()
        if isinstance(after, DocumentStartEvent):
            raise DocumentError("a second document: the configuration is one document", _place(after))
        return node

    def _next(self) -> Event:
        try:
            event: Event = self._get_event()
        except yaml.MarkedYAMLError as error:
            raise _syntax_error(error) from error
        except (ValueError, OverflowError) as error:  # PyYAML's, for an escape such as "\UFFFFFFFF"
            raise DocumentError("an escape of a character that does not exist", self._here()) from error
        return event

    def _here(self) -> FilePosition:
        return _mark(self._loader.get_mark()) if isinstance(self._loader, yaml.SafeLoader) else _mark(None)

    def _node(self, event: Event, *, depth: int) -> Node:
        """Return the node that begins with an event; its anchor is known once it has ended."""
        self._bounded(event, depth=depth)
        if isinstance(event, ScalarEvent) and event.anchor is None:  # most are
            return Node(place=_place(event), value=_scalar(event))
        if isinstance(event, AliasEvent):
            return self._alias(event)
        before = self._count
        anchor = event.anchor if isinstance(event, NodeEvent) else None
        self._open.append(anchor or "")
        node = self._value(event, depth=depth)
        self._open.pop()
        if anchor:
            self._anchors[anchor] = (node, self._count - before)
        return node

    def _bounded(self, event: Event, *, depth: int) -> None:
        self._count += 1
        if depth > DEPTH_LIMIT:
            raise DocumentError(f"nested deeper than {DEPTH_LIMIT} levels", _place(event))
        if self._count > NODE_LIMIT:
            raise DocumentError(
                f"more than {NODE_LIMIT} values, aliases counted by the values that they repeat",
                _place(event),
            )
        tag = getattr(event, "tag", None)
        if tag is not None:
            raise DocumentError(
                "a tag is not supported: leave it out, or quote the text that begins with `!`", _place(event)
            )

    def _alias(self, event: AliasEvent) -> Node:
        if event.anchor in self._open:
            raise DocumentError("this alias is inside the value that it repeats", _place(event))
        if event.anchor not in self._anchors:
            raise DocumentError(
                "this alias names nothing before it: text that begins with `*` needs quotes", _place(event)
            )
        node, count = self._anchors[event.anchor]
        self._count += count
        return node

    def _value(self, event: Event, *, depth: int) -> Node:
        if isinstance(event, MappingStartEvent):
            return Node(place=_place(event), value=self._entries(depth=depth))
        if isinstance(event, SequenceStartEvent):
            return Node(place=_place(event), value=self._items(depth=depth))
        return Node(place=_place(event), value=_scalar(event) if isinstance(event, ScalarEvent) else None)

    def _items(self, *, depth: int) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := self._next(), SequenceEndEvent):
            items.append(self._node(event, depth=depth + 1))
        return items

    def _entries(self, *, depth: int) -> dict[str, Entry]:
        entries: dict[str, Entry] = {}
        while not isinstance(event := self._next(), MappingEndEvent):
            key, place = _key(event), _place(event)
            if key in entries:
                raise duplicate(key, place=place, first=entries[key].place)
            entries[key] = Entry(place=place, node=self._node(self._next(), depth=depth + 1))
        return entries


def _key(event: Event) -> str:
    if not isinstance(event, ScalarEvent) or event.tag is not None:
        raise DocumentError(_NO_KEY, _place(event))
    if event.value == "<<" and not event.style:
        raise DocumentError("merge keys (`<<`) are not supported: write the keys out", _place(event))
    return _whole(event)


def _scalar(event: ScalarEvent) -> Scalar:
    if event.style:
        return _whole(event)
    text: str = event.value
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return _integer(event)
    return float(text) if _FLOAT.fullmatch(text) else text


def _integer(event: ScalarEvent) -> int:
    try:
        return int(event.value)
    except ValueError as error:  # more digits than Python turns into a number
        raise DocumentError("this number is too long", _place(event)) from error


def _whole(event: ScalarEvent) -> str:
    text: str = event.value
    if text.isascii():
        return text
    # PyYAML takes the two escapes of a character beyond U+FFFF, as JSON writes it, for two characters.
    text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    if lone_surrogate(text):
        raise DocumentError("an escape of half a character (a lone surrogate)", _place(event))
    return text


def _place(event: Event) -> FilePosition:
    mark = event.start_mark
    return FilePosition(line=mark.line + 1, column=mark.column + 1) if mark else _mark(mark)


def _mark(mark: object) -> FilePosition:
    """Return the place of a mark, optional in PyYAML's types but always set by its parsers."""
    return (
        FilePosition(line=mark.line + 1, column=mark.column + 1)
        if isinstance(mark, _MARKS)
        else FilePosition(line=1, column=1)
    )


def _syntax_error(error: yaml.MarkedYAMLError) -> DocumentError:
    problem = error.problem or ""
    message = next((ours for theirs, ours in _WORDING if problem.startswith(theirs)), problem)
    if problem == _NO_COLON:  # the parser reports it at the next key, but the one before lacks it
        return DocumentError(f"not YAML: {message}", _mark(error.context_mark))
    began = error.context_mark
    context = f" ({error.context} that begins on line {began.line + 1})" if began else ""
    return DocumentError(f"not YAML: {message}{context}", _mark(error.problem_mark))
