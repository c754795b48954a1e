"""Reads a keepalived.conf and all files that it includes, as statements: the words of a line, or a brace.

Conditions (`@host`), variables, sequences and includes are resolved here. Every line that is not a comment is
noted in the ledger, with its errors.
"""

import posixpath
import re
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from appliance.model.messages.problems import FilePosition
from appliance.model.messages.quoting import shown
from appliance.translation.keepalived.ledger import Ledger
from appliance.translation.keepalived.syntax.located_text import LineError, LocatedText, Word
from appliance.translation.keepalived.syntax.repetitions import repetition
from appliance.translation.keepalived.syntax.variables import Variables, definition
from appliance.translation.keepalived.syntax.words import first_piece, uncommented, words

INCLUDES: Final = frozenset(("include", "includea", "includeb", "includem", "includer", "includew"))
"""The keywords; the longer ones define what counts as an error (`include_check`)."""

MOST_ALTERNATIVES: Final = 100

_WILD: Final = re.compile(r"[*?\[]")


def included(pattern: str, *, source: str, matching: Callable[[str], Sequence[str]]) -> list[str]:
    """Return the files that a pattern in the file `source` matches, in keepalived's order."""
    found: list[str] = []
    for each in alternatives(pattern):
        path = posixpath.join(posixpath.dirname(source), each)
        found += sorted(matching(path)) if _WILD.search(path) else [path]
    return [each for each in dict.fromkeys(found) if not each.endswith("/")]


def alternatives(pattern: str) -> list[str]:
    """Return the patterns that one with braces expands to, in the order of glob(3); at most 100."""
    done: list[str] = []
    waiting = [pattern]
    while waiting and len(done) + len(waiting) <= MOST_ALTERNATIVES:
        each = waiting.pop(0)
        braces = _first_braces(each)
        if braces is None:
            done.append(each)
        else:
            waiting[:0] = braces
    return done


def _first_braces(pattern: str) -> list[str] | None:
    """Return the pattern with each alternative of its first braces, None without braces."""
    first = pattern.find("{")
    choices = [""]
    depth = 0
    for at, character in enumerate(pattern[first:], first):
        depth += (character == "{") - (character == "}")
        if depth == 0:
            after = pattern[at + 1 :]
            return [pattern[:first] + each + after for each in choices] if first >= 0 else None
        if depth == 1 and character == ",":
            choices.append("")
        elif at > first:
            choices[-1] += character
    return None


MOST_BYTES: Final = 1 << 20
"""Size of all files together."""

MOST_FILES: Final = 200
DEEPEST_INCLUDE: Final = 10
MOST_STATEMENTS: Final = 20_000
"""Lines and braces, with all repetitions."""

Statement = tuple[Word, ...]

_CONDITION: Final = re.compile(r"@(\^?)([^ \t]*)(?:[ \t]+(?=.)|$)", re.DOTALL)
_QUOTED_OR_UNDEFINED: Final = re.compile(r'"[^"]*"|\$\{([A-Za-z_][A-Za-z0-9_]*)[^}]*\}')


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What is needed to read a file: `read` returns its bytes or raises OSError, `matching` is a glob.

    `config_id` is compared with `@` conditions: the first part of the host's name (uname).
    """

    read: Callable[[str], bytes]
    matching: Callable[[str], Sequence[str]]
    config_id: str
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pending:
    """A line still to be read, with the variables that are set before it."""

    line: LocatedText
    values: tuple[tuple[str, str], ...] = ()


class _TooMuchError(Exception):
    """The files are too large to be written by a person; `args` has the reason."""


class Statements:
    """Reads one file; the statements come out in keepalived's order."""

    def __init__(self, surroundings: Surroundings, ledger: Ledger) -> None:
        self._around = surroundings
        self._ledger = ledger
        self._variables = Variables(config_id=surroundings.config_id, environment=surroundings.environment)
        self._files = 0
        self._bytes = 0
        self._statements = 0
        self._open_definition: tuple[str, list[str]] | None = None

    def of_file(self, source: str) -> Iterator[Statement]:
        """Yield the statements of a file; raises OSError if it cannot be read."""
        content = self._around.read(source)
        try:
            yield from self._file(source, content, within=(source,))
        except _TooMuchError as stopped:
            place = FilePosition(line=1, column=1, source=source)
            self._ledger.found(place, "")
            self._ledger.refuse(place, f"{stopped}: the rest is not read")

    def _file(self, source: str, content: bytes, *, within: tuple[str, ...]) -> Iterator[Statement]:
        self._files += 1
        self._bytes += len(content)
        if self._bytes > MOST_BYTES or self._files > MOST_FILES:
            raise _TooMuchError(f"there are more than {MOST_BYTES} bytes, or more than {MOST_FILES} files")
        for number, text in enumerate(content.decode("utf-8-sig", errors="replace").split("\n"), 1):
            line = LocatedText.of_line(text, source=source, line=number)
            try:
                bare = uncommented(line)
            except LineError as fault:
                self._ledger.found(line.stripped().place(), text)
                self._ledger.refuse(fault.place, fault.reason)
                self._go_on("")
                continue
            if bare.text:
                self._ledger.found(bare.place(), text)
            if self._open_definition is not None:
                if bare.text or not text.strip("\r"):  # keepalived continues the value after a comment
                    self._go_on(bare.text)
            elif bare.text:
                yield from self._line(bare, within=within)
        self._go_on("")

    def _go_on(self, text: str) -> None:
        """Add a line to the value being defined; a line without a backslash is the last."""
        if self._open_definition is None:
            return
        name, lines = self._open_definition
        if text.rstrip("\\").strip():
            lines.append(text.rstrip("\\").strip())
        if not text.endswith("\\"):
            self._variables.define(name, *(lines or [""]))
            self._open_definition = None

    def _line(self, line: LocatedText, *, within: tuple[str, ...]) -> Iterator[Statement]:
        """Yield the statements of a line, which may expand to many that are read one after the other."""
        pending: list[_Pending] = [_Pending(line=line)]
        while pending:
            self._statements += 1
            if self._statements > MOST_STATEMENTS:
                raise _TooMuchError(f"there are more than {MOST_STATEMENTS} lines, including repetitions")
            one = pending.pop()
            for name, value in one.values:
                self._variables.define(name, value)
            try:
                further = yield from self._one(one.line, within=within)
            except LineError as fault:
                self._ledger.refuse(fault.place, fault.reason)
                continue
            pending += reversed(further)

    def _one(
        self, line: LocatedText, *, within: tuple[str, ...]
    ) -> Generator[Statement, None, Sequence[_Pending]]:
        """Yield the first statement of a line, and return the text to read next."""
        condition = _CONDITION.match(line.text)
        if condition:
            if not self._holds(condition, line):
                return ()
            line = line.part(condition.end())
        defined = definition(line)
        if defined:
            self._define(*defined)
            return ()
        if line.text.startswith("~"):
            repeated = repetition(line)
            return [_Pending(line=repeated.line, values=each) for each in repeated.values]
        replaced, below = self._variables.replaced(line)
        further = [_Pending(line=_in_place_of(line, each)) for each in below]
        if replaced != line:
            replaced = uncommented(replaced)  # a value may have inserted a comment: keepalived checks again
            if replaced.text.startswith(("@", "~")):
                return [_Pending(line=replaced), *further]
        keyword, _, pattern = replaced.text.partition(" ")
        if keyword in INCLUDES and pattern.strip():
            yield from self._include(replaced, pattern.strip(), within=within)
            return further
        piece, rest = first_piece(_understood(replaced))
        found = words(piece)
        if found:
            yield found
        return [*([_Pending(line=rest)] if rest.text else []), *further]

    def _define(self, name: str, value: str) -> None:
        self._open_definition = (name, [])
        self._go_on(value)

    def _holds(self, condition: re.Match[str], line: LocatedText) -> bool:
        """Return whether a line is for this host, and note it if not."""
        inverse, name = condition.groups()
        if condition.end() == len(line.text):
            self._ledger.ignore(line.place(), "nothing follows the condition")
            return False
        own = self._around.config_id
        if (name == own) != bool(inverse):
            return True
        whom = f"for all but {shown(name)}" if inverse else f"for {shown(name)}"
        self._ledger.ignore(line.place(), f"is {whom}, and this host is {shown(own)}")
        return False

    def _include(self, line: LocatedText, pattern: str, *, within: tuple[str, ...]) -> Iterator[Statement]:
        """Yield the statements of the included files."""
        if len(within) > DEEPEST_INCLUDE:
            raise LineError(f"is nested {DEEPEST_INCLUDE + 1} includes deep", line.place())
        files = included(pattern, source=line.source, matching=self._around.matching)
        if not files:
            self._ledger.ignore(line.place(), "no file matches")
        for each in files:
            if each in within:
                self._ledger.refuse(line.place(), f"{shown(each)} includes itself")
                continue
            try:
                content = self._around.read(each)
            except IsADirectoryError:
                continue  # keepalived skips directories that match a pattern
            except OSError as error:
                why = error.strerror or str(error)
                self._ledger.refuse(line.place(), f"{shown(each)} cannot be read: {why}")
                continue
            yield from self._file(each, content, within=(*within, each))


def _in_place_of(line: LocatedText, text: str) -> LocatedText:
    """Return a further line of a variable's value, with the place where the variable is used."""
    return line.replaced(0, len(line.text), text)


def _understood(line: LocatedText) -> LocatedText:
    """Return the line; raises LineError if keepalived would read it as something else."""
    if line.text.endswith("\\"):
        reason = "ends with `\\`, but a line continues on the next one only in the value of a variable"
        raise LineError(reason, line.place(len(line.text)))
    for match in _QUOTED_OR_UNDEFINED.finditer(line.text):
        if match[1]:
            raise LineError(f"the variable {shown(match[1])} is not defined", line.place(match.start()))
    return line
