"""What is wrong with a configuration: a severity, a place in the operator's file, and what would be right."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum


class Severity(StrEnum):
    """An error refuses the configuration; a warning is only told."""

    ERROR = "error"
    WARNING = "warning"


Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a text, both counted from 1; a column counts characters."""

    line: int
    column: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One problem. `path` is dotted (`pools.masters.servers.master-0.address`), None for the whole file.

    `source`, `line` and `column` are None where the problem lies outside the file: in the environment.
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


class Spot(StrEnum):
    """What a finding points at: the value at its path, or the key (a mapping is shown by its key)."""

    KEY = "key"
    VALUE = "value"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A problem by its path, before it has its place.

    `touches` are the paths that it was concluded from: with something else there, or below, it might be gone.
    """

    path: Path
    message: str
    severity: Severity = Severity.ERROR
    spot: Spot = Spot.VALUE
    touches: tuple[Path, ...] = ()

    def hangs_on(self, path: Path) -> bool:
        """Tell whether the finding might be gone if what stands at a path were right."""
        within = self.path[: len(path)] == path
        return within or any(_related(each, path) for each in self.touches)


def ordered(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return each problem once, in the order of the file."""
    return tuple(sorted(dict.fromkeys(problems), key=lambda each: (each.line or 0, each.column or 0)))


def dotted(path: Sequence[str | int]) -> str:
    """Return a path as operators write it: `api.frontends.kube-api.bind[1]`."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)
    return "".join(steps).removeprefix(".")


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was probably meant, None where nothing is like it."""
    return next(iter(get_close_matches(word, list(known), n=1)), None)


def _related(one: Path, other: Path) -> bool:
    shared = min(len(one), len(other))
    return one[:shared] == other[:shared]
