"""A line of a file, or a part of one, with the position of each of its characters.

Variables replace parts of a line by other text. The inserted text has the position of the variable.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from appliance.model.messages.problems import FilePosition


class LineError(Exception):
    """A line that cannot be parsed: why, and what to write instead."""

    def __init__(self, reason: str, place: FilePosition) -> None:
        super().__init__(reason)
        self.reason = reason
        self.place = place


@dataclass(frozen=True, slots=True, kw_only=True)
class LocatedText:
    """Text of line `line` of the file `source`; `columns` has the column of each character, from 1."""

    text: str
    source: str
    line: int
    columns: Sequence[int]

    @classmethod
    def of_line(cls, text: str, *, source: str, line: int) -> "LocatedText":
        """Return a whole line of a file."""
        return cls(text=text, source=source, line=line, columns=range(1, len(text) + 1))

    def place(self, at: int = 0) -> FilePosition:
        """Return the place of the character at an offset; past the end, that of the last one."""
        column = self.columns[min(at, len(self.columns) - 1)] if self.columns else 1
        return FilePosition(line=self.line, column=column, source=self.source)

    def part(self, start: int, stop: int | None = None) -> "LocatedText":
        """Return the characters from an offset to another one, or to the end."""
        return LocatedText(
            text=self.text[start:stop],
            source=self.source,
            line=self.line,
            columns=self.columns[start:stop],
        )

    def without(self, at: int) -> "LocatedText":
        """Return the text without the character at an offset."""
        return self.replaced(at, at + 1, "")

    def replaced(self, start: int, stop: int, by: str) -> "LocatedText":
        """Return the text with some characters replaced; the new ones have the place of the first."""
        here = self.columns[start]
        return LocatedText(
            text=self.text[:start] + by + self.text[stop:],
            source=self.source,
            line=self.line,
            columns=(*self.columns[:start], *(here for _ in by), *self.columns[stop:]),
        )

    def stripped(self, blanks: str = " \t") -> "LocatedText":
        """Return the text without blanks at both ends."""
        start = len(self.text) - len(self.text.lstrip(blanks))
        return self.part(start, max(start, len(self.text.rstrip(blanks))))


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word of a line, without the quotes around it."""

    text: str
    place: FilePosition
