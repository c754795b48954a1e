"""Promises, and the tests that look at them: what the markers `promise` of the test files say.

The files are parsed, not imported. The table in CONTRIBUTING.md is made of it.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Final

from support.documents.pages import ROOT
from support.run.layers import LAYERS

TESTS: Final = ROOT / "tests"
CONTRIBUTING: Final = ROOT / "CONTRIBUTING.md"

BEGIN: Final = "<!-- promises -->\n"
END: Final = "<!-- end of promises -->\n"

TEST: Final = "test"
"""The tier that `make test` runs."""

ALL: Final = "all"
"""The tier that `make test-all` adds."""

FULL: Final = "full"
"""The tier that `make test-full` adds."""

_SLOW: Final = ("slow", "full")
_HEAD: Final = "| subject | promise | test | tier |\n|---|---|---|---|\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """A promise and one test that looks at it: its id, its layer, and the least tier that runs it."""

    subject: str
    what: str
    test: str
    layer: str
    tier: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """A marker `slow` or `full`: where it stands, and its reason, "" where it has none."""

    place: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Marker:
    name: str
    line: int
    arguments: tuple[ast.expr, ...]


class MarkerError(ValueError):
    """A marker cannot be read from the source."""


@cache
def promises() -> tuple[Promise, ...]:
    """Return the promises of all tests, sorted. Raises MarkerError."""
    found = (each for path in _files() for each in promises_of(path.read_text(), name=_name(path)))
    return tuple(sorted(found, key=lambda each: (each.subject, each.what, each.tier != TEST, each.test)))


def promises_of(source: str, *, name: str) -> Iterator[Promise]:
    """Yield the promises of the source of a test file. Raises MarkerError."""
    if "mark.promise" not in source:
        return
    tree = ast.parse(source)
    names = _assigned(tree)
    of_file = [*_markers(names.get("pytestmark"), names)]
    for test in tree.body:
        if not isinstance(test, ast.FunctionDef) or not test.name.startswith("test_"):
            continue
        markers = [*of_file, *(each for given in test.decorator_list for each in _markers(given, names))]
        marked = {each.name for each in markers}
        for each in markers:
            if each.name == "promise":
                subject, what = _words(each, name)
                yield Promise(
                    subject=subject,
                    what=what,
                    tier=FULL if "full" in marked else ALL if "slow" in marked else TEST,
                    test=f"{name}::{test.name}",
                    layer=max(marked.intersection(LAYERS), key=LAYERS.index, default=""),
                )


def reasons() -> Iterator[Reason]:
    """Yield every marker `slow` and `full`, wherever it stands."""
    for path in _files():
        yield from reasons_of(path.read_text(), name=_name(path))


def reasons_of(source: str, *, name: str) -> Iterator[Reason]:
    """Yield the markers `slow` and `full` of the source of a test file."""
    if not any(f"mark.{each}" in source for each in _SLOW):
        return
    tree = ast.parse(source)
    names = _assigned(tree)
    called = {each.func for each in ast.walk(tree) if isinstance(each, ast.Call)}
    for each in ast.walk(tree):
        marker = None if each in called else _marker(each)
        if marker is not None and marker.name in _SLOW:
            text = _text(marker.arguments[0], names) if marker.arguments else None
            yield Reason(place=f"{name}:{marker.line}", text=(text or "").strip())


def table() -> str:
    """Return the table: one row for each promise and tier, with its tests."""
    rows = groupby(promises(), key=lambda each: (each.subject, each.what, each.tier))
    return _HEAD + "".join(_row(*key, found) for key, found in rows)


def renewed(text: str) -> str:
    """Return CONTRIBUTING with the table of today between its two marks; ValueError where one is missing."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{CONTRIBUTING.name} has no lines {BEGIN.strip()} and {END.strip()}")
    return f"{before}{begin}{table()}{end}{after}"


def _row(subject: str, what: str, tier: str, found: Iterable[Promise]) -> str:
    tests = groupby((each.test for each in found), key=lambda each: each.partition("::")[0])
    return f"| {subject} | {what} | {'<br>'.join(_short(file, of_it) for file, of_it in tests)} | {tier} |\n"


def _short(file: str, tests: Iterable[str]) -> str:
    """Return the tests of one file: its name below tests/ once, and theirs."""
    first, *others = (each.removeprefix(file) for each in tests)
    return ", ".join((f"`{file.removeprefix('tests/')}{first}`", *(f"`{each}`" for each in others)))


def _files() -> list[Path]:
    return sorted(TESTS.rglob("test_*.py"))


def _name(path: Path) -> str:
    return str(path.relative_to(ROOT))


def _assigned(tree: ast.Module) -> dict[str, ast.expr]:
    """Return what names of the module stand for, as `pytestmark`."""
    found: dict[str, ast.expr] = {}
    for each in tree.body:
        if isinstance(each, ast.Assign):
            found |= {target.id: each.value for target in each.targets if isinstance(target, ast.Name)}
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name) and each.value:
            found[each.target.id] = each.value
    return found


def _markers(given: ast.expr | None, names: dict[str, ast.expr]) -> Iterator[_Marker]:
    """Yield the markers of a decorator, or of what `pytestmark` is."""
    match given:
        case ast.Name(id=name) if name in names:
            yield from _markers(names[name], names)
        case ast.Starred(value=several):
            yield from _markers(several, names)
        case ast.BinOp(left=left, right=right):
            yield from _markers(left, names)
            yield from _markers(right, names)
        case ast.List(elts=parts) | ast.Tuple(elts=parts):
            for each in parts:
                yield from _markers(each, names)
        case ast.expr():
            marker = _marker(given)
            if marker is not None:
                yield marker


def _marker(given: ast.AST) -> _Marker | None:
    """Return the marker of `pytest.mark.NAME` or `pytest.mark.NAME(...)`, None where it is something else."""
    arguments: tuple[ast.expr, ...] = ()
    if isinstance(given, ast.Call):
        arguments = (*given.args, *(each.value for each in given.keywords))
        given = given.func
    match given:
        case ast.Attribute(value=ast.Attribute(value=ast.Name(id="pytest"), attr="mark"), attr=name):
            return _Marker(name=name, line=given.lineno, arguments=arguments)
    return None


def _words(marker: _Marker, name: str) -> tuple[str, str]:
    match marker.arguments:
        case (ast.Constant(value=str() as subject), ast.Constant(value=str() as what)):
            return subject, what
    raise MarkerError(f"{name}:{marker.line}: promise(subject, what) takes two strings, as they stand")


def _text(given: ast.expr, names: dict[str, ast.expr]) -> str | None:
    match given:
        case ast.Constant(value=str() as text):
            return text
        case ast.Name(id=name) if name in names:
            return _text(names[name], {})
    return None
