"""A document as a tree of plain values with their positions in the text; the two readers build it."""

from bisect import bisect_right
from typing import Final

import msgspec

from appliance.model.messages.problems import FilePosition

DEPTH_LIMIT: Final = 50
"""Deepest nesting accepted. The configuration needs seven levels; the readers are recursive."""

Scalar = str | int | float | bool | None
Plain = Scalar | list["Plain"] | dict[str, "Plain"]


class DocumentError(Exception):
    """The text cannot be read as a document: a message and the position of the error."""

    def __init__(self, message: str, place: FilePosition) -> None:
        super().__init__(message)
        self.message = message
        self.place = place


class EmptyDocumentError(DocumentError):
    """The text is empty, or holds only comments."""


class Node(msgspec.Struct, frozen=True, kw_only=True):
    """A value and the position where it begins; a struct, because structs are created faster."""

    place: FilePosition
    value: "Scalar | list[Node] | dict[str, Entry]"


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry: its key's position, its value, and as `written` the key in the text if it was corrected."""

    place: FilePosition
    node: Node
    written: str | None = None


class Text:
    """Converts offsets in a text to positions: line and column."""

    def __init__(self, text: str) -> None:
        self._starts = [0, *(at + 1 for at, character in enumerate(text) if character == "\n")]

    def at(self, offset: int) -> FilePosition:
        """Return the position of the character at an offset."""
        line = bisect_right(self._starts, offset)
        return FilePosition(line=line, column=offset - self._starts[line - 1] + 1)


def plain(node: Node) -> Plain:
    """Return the value without the positions."""
    if isinstance(node.value, dict):
        return {key: plain(entry.node) for key, entry in node.value.items()}
    if isinstance(node.value, list):
        return [plain(item) for item in node.value]
    return node.value


def duplicate(key: str, *, place: FilePosition, first: FilePosition) -> DocumentError:
    """Return the error of a key that occurs twice in a mapping."""
    return DocumentError(f"`{key}` is given twice: the first is on line {first.line}", place)


def lone_surrogate(text: str) -> bool:
    """Return whether a text has a lone surrogate: half a character of UTF-16, which UTF-8 cannot encode."""
    return any("\ud800" <= character <= "\udfff" for character in text)
