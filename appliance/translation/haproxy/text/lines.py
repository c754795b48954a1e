"""The effective lines of haproxy.cfg: split into words, without comments, conditional blocks decided.

A line that cannot be split, or whose condition is unknown, is refused in the report, and reading continues:
so all errors are seen at once. Limits: a file of 1 MiB, lines of 16384 characters, 64 words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import Final

from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.haproxy.text.conditions import ConditionError, Truth, truth
from appliance.translation.haproxy.text.report import Report
from appliance.translation.haproxy.text.variables import Variables
from appliance.translation.haproxy.text.words import Unset, Word, WordError, cut
from appliance.translation.translation import Outcome

LARGEST_FILE: Final = 1 << 20
"""Bytes; a configuration of ten thousand servers is about as long."""

LONGEST_LINE: Final = 16384
"""Characters."""

_NEGATIONS: Final = frozenset({"no", "default"})
_NOT_HOLDING: Final = "its conditional block (`.if`) does not apply"
_UNDECODED: Final = "\ufffd"
_MESSAGES: Final = frozenset({".notice", ".warning", ".diag"})
CONDITIONALS: Final = frozenset({".if", ".elif", ".else", ".endif"})
"""First words of the lines of conditional blocks."""

_KNOWN: Final = _MESSAGES | CONDITIONALS | {".alert"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line with at least one word; `negation` is the `no` or `default` before its words."""

    number: int
    words: tuple[Word, ...]
    source: str
    negation: str = ""

    @property
    def texts(self) -> tuple[str, ...]:
        """The words without their places."""
        return tuple(each.text for each in self.words)

    @property
    def place(self) -> FilePosition:
        """The place of the first word."""
        return self.at(0)

    def text(self, index: int) -> str:
        """Return a word, "" if the line has fewer."""
        return self.words[index].text if index < len(self.words) else ""

    def at(self, index: int) -> FilePosition:
        """Return the place of a word; past the end, that of the last one."""
        word = self.words[min(index, len(self.words) - 1)]
        return FilePosition(line=self.number, column=word.column, source=self.source)


class _Branch(Enum):
    """The state of a conditional block: which of its branches applies."""

    HOLDS = "this one"
    PAST = "one before this, or none that can be known"
    AHEAD = "none so far"


@dataclass(slots=True, kw_only=True)
class _Block:
    """A conditional block: state, line of its `.if`, whether its outer applies; `ended` after `.else`."""

    branch: _Branch
    number: int
    within: bool
    ended: bool = False

    @property
    def holds(self) -> bool:
        """Whether the lines of its branch apply."""
        return self.within and self.branch is _Branch.HOLDS


def lines(text: bytes | str, source: str, report: Report, variables: Variables) -> Iterator[Line]:
    """Yield the effective lines of a file; their changes of `variables` apply from then on."""
    characters = text.decode(errors="replace") if isinstance(text, bytes) else text
    before = report.begin(source, characters)
    variables.source, variables.section = source, ""
    if not report.has_room(LARGEST_FILE):
        report.open(before + 1, characters[:LONGEST_LINE].partition("\n")[0])
        others = ", with the files before it" if report.is_of_several else ""
        message = f"the file is larger than {LARGEST_FILE >> 20} MiB{others}"
        report.add(Outcome.REFUSED, report.place(before + 1), message)
        return
    yield from _Reader(report, variables, before).lines(characters)


class _Reader:
    """Reads line by line; `_blocks` are the conditional blocks around the line, each with its first line."""

    def __init__(self, report: Report, variables: Variables, before: int) -> None:
        self._report = report
        self._variables = variables
        self._blocks: list[_Block] = []
        self._before = before
        self._number = before

    def lines(self, characters: str) -> Iterator[Line]:
        *whole, rest = characters.split("\n")
        for text in whole:
            yield from self._line(text)
        if rest:
            yield from self._line(rest)
        if rest.strip():
            self._refuse("the last line has no line break: the file may be truncated", 1, rest)
        for block in self._blocks:
            self._report.add(Outcome.REFUSED, self._report.place(block.number), "this `.if` has no `.endif`")

    def _line(self, text: str) -> Iterator[Line]:
        self._number += 1
        self._variables.line = self._number - self._before
        bare = text.partition("\0")[0].strip(" \t\v\f\r")
        if not bare or bare.startswith("#"):
            return
        directive = bare.startswith(".")
        if not self._holds() and not directive:
            self._report.open(self._number, text)
            self._add(Outcome.IGNORED, _NOT_HOLDING)
            return
        words = self._words(text, Unset.EMPTY if directive else Unset.ERROR)
        if not words or not words[0].text:
            return
        if directive and words[0].text in _KNOWN:
            self._directive(words)
        elif self._holds():
            yield from self._plain(words)
        else:
            self._add(Outcome.IGNORED, _NOT_HOLDING)

    def _plain(self, words: tuple[Word, ...]) -> Iterator[Line]:
        if words[0].text.startswith("["):
            self._add(Outcome.REFUSED, "scopes in brackets are for HAProxy's filter files", words[0].column)
            return
        undecoded = next((each for each in words if _UNDECODED in each.text), None)
        if undecoded is not None:
            self._add(Outcome.REFUSED, "the word is not UTF-8", undecoded.column)
            return
        negation = words[0].text if words[0].text in _NEGATIONS and len(words) > 1 else ""
        rest = words[1:] if negation else words
        yield Line(number=self._number, words=rest, source=self._report.source, negation=negation)

    def _words(self, text: str, unset: Unset) -> tuple[Word, ...]:
        if len(text) > LONGEST_LINE:
            self._refuse(f"the line is longer than {LONGEST_LINE} characters", 1, text)
            return ()
        try:
            words = cut(text, self._variables, unset=unset)
        except WordError as error:
            self._refuse(error.message, error.column, text)
            return ()
        self._report.open(self._number, text)
        if not words or not words[0].text:
            self._add(Outcome.IGNORED, "HAProxy treats the line as empty: its first word is empty")
        return words

    def _holds(self) -> bool:
        return not self._blocks or self._blocks[-1].holds

    def _directive(self, words: tuple[Word, ...]) -> None:
        name = words[0].text
        rest = " ".join(each.text for each in words[1:])
        if name in CONDITIONALS:
            self._add(Outcome.KEPT)
            self._conditional(name, rest)
        elif not self._holds():
            self._add(Outcome.IGNORED, _NOT_HOLDING)
        elif name == ".alert":
            self._add(Outcome.REFUSED, f"HAProxy refuses to start at this `.alert`: {shown(rest)}")
        else:
            self._add(Outcome.IGNORED, "a message that HAProxy prints at startup")

    def _conditional(self, name: str, condition: str) -> None:
        if name == ".if":
            # Within a block that does not apply nothing is evaluated, so that no branch of it can apply.
            start = _Branch.AHEAD if self._holds() else _Branch.PAST
            self._blocks.append(_Block(branch=start, number=self._number, within=self._holds()))
            self._enter(condition)
            return
        if not self._blocks:
            self._add(Outcome.REFUSED, f"{shown(name)} without an `.if` before it")
            return
        block = self._blocks[-1]
        if name == ".endif":
            self._blocks.pop()
            return
        if block.ended:
            self._add(Outcome.REFUSED, f"{shown(name)} after `.else`")
        block.ended = name == ".else"
        self._enter("1" if name == ".else" else condition)

    def _enter(self, condition: str) -> None:
        """Begin the next branch of the innermost block; it applies if its condition is the first to hold."""
        block = self._blocks[-1]
        if block.branch is _Branch.AHEAD:
            block.branch = self._judged(condition)
        elif block.branch is _Branch.HOLDS:
            block.branch = _Branch.PAST

    def _judged(self, condition: str) -> _Branch:
        try:
            found, unknown = truth(condition, self._variables)
        except ConditionError as error:
            self._add(Outcome.REFUSED, str(error))
            return _Branch.PAST
        if found is Truth.UNKNOWN:
            message = f"only HAProxy itself can evaluate {shown(unknown)}: keep one branch, without `.if`"
            self._add(Outcome.REFUSED, message)
            return _Branch.PAST
        return _Branch.HOLDS if found is Truth.TRUE else _Branch.AHEAD

    def _refuse(self, reason: str, column: int, text: str) -> None:
        self._report.open(self._number, text)
        self._add(Outcome.REFUSED, reason, column)

    def _add(self, outcome: Outcome, reason: str | None = None, column: int | None = None) -> None:
        self._report.add_to_line(outcome, self._number, reason, column)
