r"""Splits a line of haproxy.cfg into words, each with its column, by HAProxy's own rules.

Quotes '' and "", backslashes, comments, and environment variables within "" (configuration.txt, 2.2 and 2.3).
Where the manual is silent or differs, HAProxy 2.6 is followed: a backslash before any other character stays,
also before `$` outside of "", `\r` ends a line, and an empty word at the end of a line is none. Unlike in
HAProxy, a variable that is not set and has no default is an error: on the machine that sets it the file would
have another meaning.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.text.variables import Variables

MOST_WORDS: Final = 64
"""HAProxy's limit for one line (MAX_LINE_ARGS)."""

_SPACES: Final = frozenset(" \t\v\f")
_ENDS: Final = frozenset("\r\n\0")
_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", **{each: each for each in " \\#'\"$"}}
_HEX: Final = re.compile(r"[0-9A-Fa-f]{2}")
_NAME: Final = re.compile(r"\.?[A-Za-z_][A-Za-z0-9_]*|\.", re.ASCII)


class Unset(StrEnum):
    """What an unset variable is: an error, or nothing, as in conditions."""

    ERROR = "error"
    EMPTY = "empty"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """A word without its quotes, and the column (from 1) where it begins in its line."""

    text: str
    column: int


class WordError(Exception):
    """A line that cannot be split into words: a message, and the column of the fault."""

    def __init__(self, message: str, *, column: int) -> None:
        super().__init__(message)
        self.message = message
        self.column = column


def cut(text: str, variables: Variables, *, unset: Unset = Unset.ERROR) -> tuple[Word, ...]:
    """Return the words of a line, none if it is empty or a comment; raises WordError."""
    return _Cutter(text, variables, unset).words()


class _Cutter:
    """Parses a line; `_start` is the column where the current word begins."""

    def __init__(self, text: str, variables: Variables, unset: Unset) -> None:
        self._text = text
        self._variables = variables
        self._unset = unset
        self._at = len(text) - len(text.lstrip(" \t\v\f"))
        self._start = self._at
        self._gathered: list[str] = []
        self._quote: tuple[str, int] | None = None
        self._words: list[Word] = []

    def words(self) -> tuple[Word, ...]:
        while self._at < len(self._text) and not self._ends():
            self._step()
        if self._quote is not None:
            mark, at = self._quote
            raise WordError(f"the quote {mark} is not closed", column=at + 1)
        if self._gathered:
            self._finish()
        return tuple(self._words)

    def _ends(self) -> bool:
        character = self._text[self._at]
        return character in _ENDS or (character == "#" and self._quote is None)

    def _step(self) -> None:
        character, mark = self._text[self._at], self._quote[0] if self._quote else ""
        if character in "'\"" and mark in {"", character}:
            self._quote = None if mark else (character, self._at)
            self._at += 1
        elif character == "\\" and mark != "'":
            self._escape()
        elif character in _SPACES and not mark:
            self._space()
        elif character == "$" and mark == '"':
            self._variable()
        else:
            self._gather(character, 1)

    def _gather(self, text: str, length: int) -> None:
        if text:
            self._gathered.append(text)
        self._at += length

    def _escape(self) -> None:
        following = self._text[self._at + 1 : self._at + 2]
        if following == "x":
            digits = self._text[self._at + 2 : self._at + 4]
            if not _HEX.fullmatch(digits):
                raise WordError(r"\x needs two hexadecimal digits, such as \x20", column=self._at + 1)
            character = chr(int(digits, 16))
            if not character.isascii():
                raise WordError(r"write the character itself: here \x works up to 7f", column=self._at + 1)
            self._gather(character, 4)
        elif following in _ESCAPES and not (following == "$" and self._quote is None):
            self._gather(_ESCAPES[following], 2)
        else:
            self._gather("\\", 1)

    def _space(self) -> None:
        self._finish()
        while self._text[self._at : self._at + 1] in _SPACES:
            self._at += 1
        self._start = self._at

    def _finish(self) -> None:
        if len(self._words) == MOST_WORDS:
            raise WordError(f"the line has more than {MOST_WORDS} words", column=self._start + 1)
        self._words.append(Word(text="".join(self._gathered), column=self._start + 1))
        self._gathered = []

    def _variable(self) -> None:
        start = self._at
        braced = self._text[start + 1 : start + 2] == "{"
        match = _NAME.match(self._text, start + 1 + braced)
        if match is None:
            raise WordError(
                r"expected a variable name: write a plain $ in double quotes as \$", column=start + 1
            )
        self._at = match.end()
        split = braced and self._text.startswith("[*]", self._at)
        self._at += 3 if split else 0
        default = self._default(start) if braced else None
        self._expand(match[0], default, split=split, column=start + 1)

    def _default(self, start: int) -> str | None:
        """Return the text after the dash of `${NAME-text}`, None without a dash."""
        end = self._text.find("}", self._at)
        between = self._text[self._at : end]
        if end < 0 or not (between == "" or between.startswith("-")):
            raise WordError("expected `}` after the variable name", column=start + 1)
        self._at = end + 1
        return between[1:] if between else None

    def _expand(self, name: str, default: str | None, *, split: bool, column: int) -> None:
        value = self._value(name, default, column=column)
        if not split:
            self._gather(value, 0)
            return
        for index, part in enumerate(re.split(r"[ \t\n\v\f\r]+", value)):
            if index:
                self._finish()
                self._start = column - 1
            self._gather(part, 0)

    def _value(self, name: str, default: str | None, *, column: int) -> str:
        try:
            value = self._variables.value(name)
        except KeyError:
            raise WordError(f"HAProxy has no variable {shown(name)}", column=column) from None
        if value is None:
            value = default
        if value is not None:
            return value
        if self._unset is Unset.EMPTY and not self._variables.is_haproxys(name):
            return ""
        who = "is set by HAProxy itself" if self._variables.is_haproxys(name) else "is not set"
        raise WordError(
            f'the variable {shown(name)} {who}: set it, or write `"${{{name}-default}}"`', column=column
        )
