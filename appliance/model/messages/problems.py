"""Problems of a configuration: a severity, a place in the operator's file, and the correction."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Final

import msgspec


class Severity(StrEnum):
    """An error refuses the configuration; with a warning it is accepted."""

    ERROR = "error"
    WARNING = "warning"


Path = tuple[str | int, ...]

MOST_PROBLEMS: Final = 100
"""Problems of one file that are shown; the others are only counted."""

_MOST_KNOWN: Final = 100  # words to compare one with: each mistake costs all of them
_LONGEST_WORD: Final = 100
_MOST_LISTED: Final = 20


class FilePosition(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A place in a text, both counted from 1; a column counts characters.

    `source` is the file, if it is not the operator's own: haproxy.cfg, keepalived.conf. A struct, because
    structs are created faster: each value of a file has one or two.
    """

    line: int
    column: int
    source: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem. `path` is dotted (`pools.masters.servers.master-0.address`), None for the whole file.

    `source`, `line` and `column` are None if the problem lies outside the file: in the environment.
    """

    message: str
    severity: Severity = Severity.ERROR
    source: str | None = None
    path: str | None = None
    line: int | None = None
    column: int | None = None

    @property
    def where(self) -> str:
        """The place as editors and compilers write it: `file:line:column`."""
        return ":".join(str(each) for each in (self.source, self.line, self.column) if each is not None)

    def __str__(self) -> str:
        return ": ".join(each for each in (self.where, self.path, self.message) if each)


class FindingTarget(StrEnum):
    """What a finding points at: the value at its path, or the key (a mapping is shown by its key)."""

    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem at a path of the configuration, before its position in the file is known.

    `touches` are the other paths that led to it: with other values there it might not exist.
    """

    path: Path
    message: str
    severity: Severity = Severity.ERROR
    spot: FindingTarget = FindingTarget.VALUE
    touches: tuple[Path, ...] = ()


class FaultyPaths:
    """Paths with wrong values. Findings that depend on one of them are not certain."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._paths = frozenset(paths)
        self._above = frozenset(path[:depth] for path in self._paths for depth in range(len(path) + 1))

    def concern(self, finding: Finding) -> bool:
        """Return whether a finding depends on one: is within it, or touches it, its parents or its parts."""
        return self._within(finding.path) or any(
            touch in self._above or self._within(touch) for touch in finding.touches
        )

    def _within(self, path: Path) -> bool:
        return any(path[:depth] in self._paths for depth in range(len(path) + 1))


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, those of a file together and in its order."""
    return tuple(sorted(dict.fromkeys(problems), key=_place))


def _place(problem: Problem) -> tuple[str, int, int]:
    return problem.source or "", problem.line or 0, problem.column or 0


def shortened(problems: Sequence[Problem], *, source: str) -> tuple[Problem, ...]:
    """Return at most 100 problems, errors before warnings, and a last one with the number of the others."""
    if len(problems) <= MOST_PROBLEMS:
        return tuple(problems)
    by_severity = sorted(problems, key=lambda each: each.severity is Severity.WARNING)
    kept, others = by_severity[:MOST_PROBLEMS], by_severity[MOST_PROBLEMS:]
    errors = sum(each.severity is Severity.ERROR for each in others)
    counts = ((errors, "errors"), (len(others) - errors, "warnings"))
    others_counted = " and ".join(f"{count} more {word}" for count, word in counts if count)
    severity = others[0].severity
    return (
        *ordered(kept),
        Problem(message=f"{others_counted} are not shown", severity=severity, source=source),
    )


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as operators write it: `api.frontends.kube-api.bind[1]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the most similar known word, None if none is, or too many are known to compare."""
    words = list(known)
    if len(words) > _MOST_KNOWN or len(word) > _LONGEST_WORD:
        return None
    return next(iter(get_close_matches(word, words, n=1)), None)


def listed(words: Iterable[str]) -> str:
    """Return words as a list for a message: the first 20, and the number of the others."""
    known = list(words)
    others = len(known) - _MOST_LISTED
    return ", ".join(known[:_MOST_LISTED]) + (f" and {others} others" if others > 0 else "")
