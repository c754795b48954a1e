"""From the text of a configuration to the snapshot that programs obey, or to all that is wrong with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from pydantic import ValidationError

from appliance.model.config.configuration import Config
from appliance.model.document.document import Document, read
from appliance.model.document.tree import Plain, SourceError
from appliance.model.messages import pydantic_errors
from appliance.model.messages.problems import (
    FaultyPaths,
    Finding,
    Path,
    Problem,
    Severity,
    ordered,
    shortened,
)
from appliance.model.messages.quoting import printable, shown
from appliance.model.rules import cross_references
from appliance.model.snapshot.defaults import fill
from appliance.model.snapshot.snapshot import Snapshot

DRAIN_VARIABLE: Final = "OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT"
"""Seconds that an old generation may drain; the variable of OpenShift's HAProxy pod (MCO haproxy.yaml)."""

_SECONDS: Final = re.compile(r"[0-9]{1,8}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Loaded:
    """What came of a configuration: a snapshot exactly where there is no error; warnings in both cases."""

    snapshot: Snapshot | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that refuse the configuration."""
        return tuple(each for each in self.problems if each.severity is Severity.ERROR)

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """The problems that are only told."""
        return tuple(each for each in self.problems if each.severity is Severity.WARNING)


def load(text: str | bytes, *, source: str, number: int, drain: str | None = None) -> Loaded:
    """Read, judge and fill in a configuration.

    `source` names the file in problems, `number` becomes the snapshot's, `drain` is the value of
    DRAIN_VARIABLE in the caller's environment, which wins over the file; never raises.
    """
    seconds, outside = _drain(drain)
    try:
        document = read(text)
    except SourceError as error:
        return Loaded(snapshot=None, problems=(*outside, _unreadable(error, source=source)))
    document, config, found = _judged(document)
    problems = shortened(
        ordered((*outside, *(document.problem(each, source=source) for each in found))), source=source
    )
    if config is None or any(each.severity is Severity.ERROR for each in problems):
        return Loaded(snapshot=None, problems=problems)
    snapshot = fill(config, number=number, source=source, drain=seconds)
    return Loaded(snapshot=snapshot, problems=problems)


def _unreadable(error: SourceError, *, source: str) -> Problem:
    place = error.place
    return Problem(message=printable(error.message), source=source, line=place.line, column=place.column)


def _drain(value: str | None) -> tuple[float | None, tuple[Problem, ...]]:
    if not value:
        return None, ()
    if _SECONDS.fullmatch(value):
        return float(value), ()
    message = f"must be whole seconds such as `120`, not {shown(value)}"
    return None, (Problem(message=message, path=DRAIN_VARIABLE),)


def _judged(document: Document) -> tuple[Document, Config | None, list[Finding]]:
    """Return the configuration if each key is right by itself, and everything that is wrong.

    Findings are those of the document that is returned: with the keys that misspelt ones were meant to be.
    """
    value = document.value
    try:
        config = Config.model_validate(value)
    except ValidationError as error:
        spelling = _spelling(document, error)
        if not spelling:
            return document, None, _faults(value, error)
        told = [
            replace(each, path=(*each.path[:-1], spelling[each.path]))
            for each in pydantic_errors.findings(error)
            if each.path in spelling
        ]
        respelt, _, found = _judged(document.respelt(spelling))
        return respelt, None, [*told, *found]
    return document, config, list(cross_references.findings(config))


def _spelling(document: Document, error: ValidationError) -> Mapping[Path, str]:
    """Return what misspelt keys were meant to be, unless that stands there too: each can be meant once."""
    meant: dict[Path, Path] = {}
    for path, key in pydantic_errors.spelling(error).items():
        meant.setdefault((*path[:-1], key), path)
    return {path: str(right[-1]) for right, path in meant.items() if not document.has(right)}


def _faults(value: Plain, error: ValidationError) -> list[Finding]:
    left, removed = _without_faults(value, error)
    doubts = FaultyPaths(removed | pydantic_errors.misspelt(error))
    sure = (each for each in cross_references.findings(left) if not doubts.concern(each))
    return [*pydantic_errors.findings(error), *sure]


def _without_faults(value: Plain, error: ValidationError) -> tuple[Config, frozenset[Path]]:
    """Return what is right of a configuration, and the paths that had to be left out for it.

    Leaving something out may leave its parent incomplete, which then goes too: each round takes more away,
    and the empty configuration is right.
    """
    removed: frozenset[Path] = frozenset()
    while True:
        faulty = pydantic_errors.faulty(error)
        removed |= faulty
        value = _without(value, faulty, ())
        try:
            return Config.model_validate(value), removed
        except ValidationError as further:
            error = further


def _without(value: Plain, paths: frozenset[Path], at: Path) -> Plain:
    if not isinstance(value, dict):
        return value
    kept = ((key, each) for key, each in value.items() if (*at, key) not in paths)
    return {key: _without(each, paths, (*at, key)) for key, each in kept}
