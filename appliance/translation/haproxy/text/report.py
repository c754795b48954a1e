"""Collects the outcome of each line, until all steps have reported theirs.

Lines of several files are numbered consecutively, as if they were one file; `located` converts a place to the
right file at the end.
"""

import re
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from appliance.model.messages.problems import FilePosition, nearest
from appliance.model.messages.quoting import printable, shown
from appliance.translation.translation import LineOutcome, Outcome

_SECRETS: Final = (
    re.compile(r"(?P<before>\bauth\s+[^\s:]+:)(?P<secret>\S+)"),
    re.compile(r"(?P<before>\b(?:password|insecure-password|ca-sign-pass|cluster-secret)\s+)(?P<secret>\S+)"),
    # A check's text after its first word (`AUTH ...`, `USER ...`), and all of it if that is no word.
    re.compile(
        r"(?P<before>\btcp-check\s+send(?:-lf)?\s+[\"']?+[A-Za-z]*+)"
        r"(?P<secret>(?!(?:\\[rn]|[\"'])*\s*(?:comment\b|$)).+)"
    ),
    re.compile(r"(?P<before>\btcp-check\s+send-binary(?:-lf)?\s+)(?P<secret>.+)"),
    re.compile(r"(?P<before>authorization|cookie:)(?P<secret>.+)", re.IGNORECASE),
    re.compile(
        r"(?P<before>\b(?:pre)?setenv\s+\S*(?:pass|secret|token|auth|key)\S*\s+)(?P<secret>.+)", re.IGNORECASE
    ),
)
_LONGEST_TEXT: Final = 200
_MOST_HINTS: Final = 200
_GUARD: Final = re.compile(
    r"(?:no\s+)?(?:tcp-re|http-re|req|block|acl\b|use_backend|rate-limit|filter|\.(?:if|elif)\b"
    r"|monitor-n|stats\s+(?:auth|http|scope))"
)
"""Beginnings of lines that may keep clients out, also if misspelt or impossible to split into words."""

_UNUSED: Final = "unused: every section that could use it sets its own, or none exists"

MOST_ADDRESSES: Final = 10_000
"""Addresses that a file may listen on: each is a socket in every worker."""

_MOST_OUTCOMES: Final = 20
"""Outcomes of one line; a line of sixty unknown words needs no more."""


@dataclass(slots=True, kw_only=True)
class _Line:
    place: FilePosition
    text: str
    outcomes: dict[tuple[Outcome, str | None, FilePosition], None] = field(default_factory=dict)
    left_out: tuple[Outcome, str] | None = None
    is_left: bool = False


class Report:
    """The lines of haproxy.cfg in their order, from one file or several.

    A line is kept unless another outcome is reported; code that does not understand a line must refuse it.
    """

    def __init__(self) -> None:
        self._sources: list[str] = []
        self._ends = [0]
        self._characters = 0
        self._lines: dict[int, _Line] = {}
        self._settings: dict[int, str | None] = {}
        self._hints = _MOST_HINTS
        self._addresses = MOST_ADDRESSES

    @property
    def source(self) -> str:
        """The name of the file begun last."""
        return self._sources[-1]

    @property
    def is_of_several(self) -> bool:
        """Whether there is more than one file."""
        return len(self._sources) > 1

    def begin(self, source: str, characters: str) -> int:
        """Begin a file; return the number of the line before its first."""
        before = self._ends[-1]
        self._sources.append(source)
        self._ends.append(before + characters.count("\n") + 1)
        self._characters += len(characters)
        return before

    def has_room(self, most: int) -> bool:
        """Return whether all files so far stay within this number of characters."""
        return self._characters <= most

    def place(self, number: int, column: int = 1) -> FilePosition:
        """Return a place in the file begun last."""
        return FilePosition(line=number, column=column, source=self.source)

    def located(self, place: FilePosition) -> FilePosition:
        """Return the same place in its own file."""
        at = bisect_left(self._ends, place.line) - 1
        line = place.line - self._ends[at]
        return FilePosition(line=line, column=place.column, source=self._sources[at])

    def line_name(self, number: int) -> str:
        """Return how a line is named in a sentence."""
        place = self.located(self.place(number))
        return f"line {place.line} of {place.source}" if self.is_of_several else f"line {place.line}"

    def meant(self, word: str, known: Iterable[str]) -> str:
        """Return `: did you mean ...?` for an unknown word, "" if no known one is similar.

        Comparing words takes time: in a file of only unknown words, just the first ones get a hint.
        """
        self._hints -= 1
        found = nearest(word, known) if self._hints >= 0 else None
        return f": did you mean {shown(found)}?" if found else ""

    def spend_addresses(self, count: int) -> bool:
        """Take from the number of addresses that a file may listen on; return whether there were enough."""
        self._addresses -= count
        return self._addresses >= 0

    def open(self, number: int, text: str) -> None:
        """Begin a line that is neither empty nor a comment; its passwords are hidden."""
        column = len(text) - len(text.lstrip()) + 1
        self._lines.setdefault(number, _Line(place=self.place(number, column), text=_shown(text)))

    def add(self, outcome: Outcome, place: FilePosition, reason: str | None = None) -> None:
        """Note an outcome at a place of an open line."""
        outcomes = self._lines[place.line].outcomes
        if len(outcomes) < _MOST_OUTCOMES:
            outcomes[outcome, reason, place] = None

    def add_to_line(self, outcome: Outcome, number: int, reason: str | None, column: int | None) -> None:
        """Note an outcome of a line at a column, or at its first character."""
        place = self._lines[number].place if column is None else self.place(number, column)
        self.add(outcome, place, reason)

    def leave_out(self, number: int, reason: str, outcome: Outcome = Outcome.IGNORED) -> None:
        """Note that a line is left out with its section; refusals in it stay refused."""
        self._lines[number].left_out = (outcome, reason)

    def leave(self, number: int, reason: str) -> None:
        """Note that a line is left to HAProxy with its section; its other outcomes are dropped."""
        self.leave_out(number, reason)
        self._lines[number].is_left = True

    def starting_with(self, words: Collection[str], first: int, end: int) -> Iterator[tuple[int, str]]:
        """Yield the lines in a range (the end excluded) that begin with one of some words, and the word."""
        for number in range(first, end):
            word = self._lines[number].text.partition(" ")[0] if number in self._lines else ""
            if word in words:
                yield number, word

    def is_refused(self, number: int) -> bool:
        """Return whether a line has been refused so far."""
        return number in self._lines and any(
            outcome is Outcome.REFUSED for outcome, _, _ in self._lines[number].outcomes
        )

    @property
    def last(self) -> int:
        """The number of the last line begun."""
        return max(self._lines, default=0)

    def refused_guard(self, first: int, last: int) -> int | None:
        """Return the first of these lines that is refused and may have kept clients out, None without one."""
        return next((each for each in range(first, last + 1) if self._is_refused_guard(each)), None)

    def _is_refused_guard(self, number: int) -> bool:
        return self.is_refused(number) and _GUARD.match(self._lines[number].text) is not None

    def settle(self, number: int, unused: str = _UNUSED) -> None:
        """Note that a line is a setting, which has an effect only if it is used; report `unused` if not."""
        self._settings.setdefault(number, unused)

    def use(self, number: int) -> None:
        """Note that the setting of a line is used."""
        self._settings[number] = None

    def explain_unused(self, number: int, reason: str) -> None:
        """Set the reason to report if the setting of a line is not used."""
        if self._settings.get(number):
            self._settings[number] = reason

    def lines(self) -> tuple[LineOutcome, ...]:
        """Return the outcomes of all lines."""
        return tuple(
            outcome
            for number, line in sorted(self._lines.items())
            for outcome in self._outcomes(number, line)
        )

    def _outcomes(self, number: int, line: _Line) -> list[LineOutcome]:
        given = [each for each in line.outcomes if each[0] is not Outcome.KEPT and not line.is_left]
        refused = [each for each in given if each[0] is Outcome.REFUSED]
        if line.left_out is not None and not refused:
            given = [(*line.left_out, line.place)]
        unused = self._settings.get(number)
        if not given and unused:
            given = [(Outcome.IGNORED, unused, line.place)]
        return [
            LineOutcome(place=self.located(place), text=line.text, outcome=outcome, reason=reason)
            for outcome, reason, place in given or [(Outcome.KEPT, None, line.place)]
        ]


def _shown(text: str) -> str:
    for secret in _SECRETS:
        text = secret.sub(r"\g<before>***", text)
    line = printable(text.strip().replace("\t", " "))
    return line if len(line) <= _LONGEST_TEXT else f"{line[:_LONGEST_TEXT]}..."
