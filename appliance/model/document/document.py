"""Reads the operator's file, YAML or JSON, into plain values with their line and column.

A file that cannot be read at all is one DocumentError. `model.config` checks the meaning of the values.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from json import JSONDecodeError, JSONDecoder
from typing import Final

from msgspec.structs import replace

from appliance.model.document.tree import (
    DEPTH_LIMIT,
    DocumentError,
    EmptyDocumentError,
    Entry,
    Node,
    Plain,
    Scalar,
    Text,
    duplicate,
    lone_surrogate,
    plain,
)
from appliance.model.document.yaml_reader import read_yaml
from appliance.model.messages.problems import FilePosition, Finding, FindingTarget, Path, Problem, dotted
from appliance.model.messages.quoting import printable, shown
from appliance.model.messages.secrets import concealed

_SPACES: Final = frozenset(" \t\r\n")
_SCALAR: Final = re.compile(r'["\-0-9tfn]')
_DECODER: Final = JSONDecoder()


def read_json(text: str) -> Node:
    """Return the value of a JSON document; raises DocumentError.

    PyYAML reads most of JSON, but not all: it refuses tabs between values and long keys, folds line
    separators inside strings, and takes the halves of an escaped character beyond U+FFFF for two characters.
    """
    reader = _JsonReader(text)
    node, at = reader.value(reader.skip(0), depth=0)
    end = reader.skip(at)
    if end != len(text):
        raise reader.fault("more text after the end of the JSON value", end)
    return node


class _JsonReader:
    """Reads a text from offset to offset: methods return the value at one, and the offset behind it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._places = Text(text)

    def skip(self, at: int) -> int:
        while self._text[at : at + 1] in _SPACES:
            at += 1
        return at

    def fault(self, message: str, at: int) -> DocumentError:
        return DocumentError(message, self._places.at(at))

    def value(self, at: int, *, depth: int) -> tuple[Node, int]:
        if depth > DEPTH_LIMIT:
            raise self.fault(f"nested deeper than {DEPTH_LIMIT} levels", at)
        match self._text[at : at + 1]:
            case "{":
                return self._mapping(at, depth=depth)
            case "[":
                return self._sequence(at, depth=depth)
        return self._scalar(at)

    def _scalar(self, at: int) -> tuple[Node, int]:
        if not _SCALAR.match(self._text, at):
            raise self.fault("a JSON value expected", at)
        try:
            value, end = _DECODER.raw_decode(self._text, at)
        except JSONDecodeError as error:
            raise self.fault(error.msg, error.pos) from error
        except ValueError as error:  # more digits than Python turns into a number
            raise self.fault("this number is too long", at) from error
        return Node(place=self._places.at(at), value=self._checked(value, at)), end

    def _checked(self, value: Scalar, at: int) -> Scalar:
        if isinstance(value, str) and lone_surrogate(value):
            raise self.fault("an escape of half a character (a lone surrogate)", at)
        return value

    def _sequence(self, start: int, *, depth: int) -> tuple[Node, int]:
        items: list[Node] = []
        at, more = self._opened(start, "]")
        while more:
            item, at = self.value(at, depth=depth + 1)
            items.append(item)
            at, more = self._separated(at, "]")
        return Node(place=self._places.at(start), value=items), at

    def _mapping(self, start: int, *, depth: int) -> tuple[Node, int]:
        entries: dict[str, Entry] = {}
        at, more = self._opened(start, "}")
        while more:
            place = self._places.at(at)
            key, at = self._key(at, entries)
            node, at = self.value(at, depth=depth + 1)
            entries[key] = Entry(place=place, node=node)
            at, more = self._separated(at, "}")
        return Node(place=self._places.at(start), value=entries), at

    def _key(self, start: int, entries: dict[str, Entry]) -> tuple[str, int]:
        if self._text[start : start + 1] != '"':
            raise self.fault("a key in quotes expected, and no comma after the last entry", start)
        node, at = self._scalar(start)
        key = str(node.value)
        if key in entries:
            raise duplicate(key, place=node.place, first=entries[key].place)
        at = self.skip(at)
        if self._text[at : at + 1] != ":":
            raise self.fault("`:` expected", at)
        return key, self.skip(at + 1)

    def _opened(self, at: int, closing: str) -> tuple[int, bool]:
        at = self.skip(at + 1)
        empty = self._text[at : at + 1] == closing
        return (at + 1, False) if empty else (at, True)

    def _separated(self, at: int, closing: str) -> tuple[int, bool]:
        at = self.skip(at)
        mark = self._text[at : at + 1]
        if mark == closing:
            return at + 1, False
        if mark != ",":
            raise self.fault(f"`,` or `{closing}` expected", at)
        return self.skip(at + 1), True


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """The top level mapping of a file."""

    root: Node

    @property
    def value(self) -> dict[str, Plain]:
        """The plain values, fresh for every caller."""
        value = plain(self.root)
        return value if isinstance(value, dict) else {}

    @property
    def keys(self) -> Collection[str]:
        """The keys of the top level."""
        return self.root.value.keys() if isinstance(self.root.value, dict) else ()

    def section(self, name: str) -> Plain:
        """Return the plain value of one key of the top level, None without it."""
        entries = self.root.value
        return plain(entries[name].node) if isinstance(entries, dict) and name in entries else None

    def place(self, path: Path, spot: FindingTarget = FindingTarget.VALUE) -> FilePosition:
        """Return the position of the value at a path; if there is none, that of its nearest parent.

        For a mapping, and with FindingTarget.KEY, it is the position of the key.
        """
        there = list(self._along(path))
        key, node = (there[-1].place, there[-1].node) if there else (self.root.place, self.root)
        by_key = spot is FindingTarget.KEY or isinstance(node.value, dict) or len(there) < len(path)
        return key if by_key else node.place

    def has(self, path: Path) -> bool:
        """Return whether the document has a value at a path."""
        return len(list(self._along(path))) == len(path)

    def respelt(self, spelling: Mapping[Path, str]) -> "Document":
        """Return the document with corrected keys at some paths; problems show the keys as written."""
        return Document(root=_respelt(self.root, spelling, ()))

    def problem(self, finding: Finding, *, source: str) -> Problem:
        """Return the problem of a finding: with its position, and its path with the keys as written."""
        place = self.place(finding.path, finding.spot)
        written = [
            each.written or step for each, step in zip(self._along(finding.path), finding.path, strict=False)
        ]
        path = concealed((*written, *finding.path[len(written) :]))
        return Problem(
            message=printable(finding.message),
            severity=finding.severity,
            source=place.source or source,
            path=printable(dotted(path)) or None,
            line=place.line,
            column=place.column,
        )

    def _along(self, path: Path) -> Iterator[Entry]:
        """Yield the entries along a path, as many as there are; an item of a list is its own key."""
        node = self.root
        for step in path:
            match node.value, step:
                case dict() as entries, str() if step in entries:
                    entry = entries[step]
                case list() as items, int() if step < len(items):
                    entry = Entry(place=items[step].place, node=items[step])
                case _:
                    return
            yield entry
            node = entry.node


def read(text: str | bytes) -> Document:
    """Return the document; raises DocumentError."""
    characters = _decoded(text) if isinstance(text, bytes) else text
    root = _root(characters.removeprefix("\ufeff"))
    if root is None or root.value is None:
        raise EmptyDocumentError(
            "the file is empty: `{}` is a configuration that does nothing", FilePosition(line=1, column=1)
        )
    if not isinstance(root.value, dict):
        raise DocumentError(
            f"the file must hold a mapping (`pools: ...`), not {shown(plain(root))}", root.place
        )
    return Document(root=root)


def _respelt(node: Node, spelling: Mapping[Path, str], at: Path) -> Node:
    if not isinstance(node.value, dict):
        return node
    entries: dict[str, Entry] = {}
    for key, entry in node.value.items():
        right = spelling.get((*at, key))
        below = replace(entry, node=_respelt(entry.node, spelling, (*at, key)))
        entries[right or key] = replace(below, written=key) if right else below
    return Node(place=node.place, value=entries)


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        before = data[: error.start].decode()
        message = f"not UTF-8: the byte 0x{data[error.start]:02x}"
        raise DocumentError(message, Text(before).at(len(before))) from error


def _root(text: str) -> Node | None:
    """Read JSON if the text begins like it, otherwise YAML.

    YAML in braces begins like JSON too. If both readers fail, the error further down in the text is raised:
    the reader that got further was probably the right one.
    """
    if not text.lstrip().startswith("{"):
        return read_yaml(text)
    try:
        return read_json(text)
    except DocumentError as json_error:
        return _yaml_after(text, json_error)


def _yaml_after(text: str, json_error: DocumentError) -> Node | None:
    try:
        return read_yaml(text)
    except DocumentError as yaml_error:
        if _order(json_error.place) > _order(yaml_error.place):
            raise json_error from None
        raise


def _order(place: FilePosition) -> tuple[int, int]:
    return place.line, place.column
