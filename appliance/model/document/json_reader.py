"""Reads JSON: the values that `json.loads` gives, with the position of each.

PyYAML reads most of JSON, but not all: it refuses tabs between values and long keys, folds line separators
inside strings, and takes the halves of an escaped character beyond U+FFFF for two characters.
"""

import re
from json import JSONDecodeError, JSONDecoder
from typing import Final

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

_SPACES: Final = frozenset(" \t\r\n")
_SCALAR: Final = re.compile(r'["\-0-9tfn]')
_DECODER: Final = JSONDecoder()


def read_json(text: str) -> Node:
    """Return the value of a JSON document; raises DocumentError."""
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
