"""The operator's files, read and checked together, with their problems in the form of answers."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError, Plain
from appliance.model.loading import awaiting, loading
from appliance.model.loading.loading import Loaded
from appliance.model.messages.problems import Problem
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files.state_files import FileUnusable
from appliance.net.sources.foreign_files import ForeignFiles, translated
from appliance.net.sources.read_files import FileMissing, ReadFiles
from appliance.translation.composing import load_together
from appliance.translation.translation import Translation
from appliance.wire.lines.control import AnswerProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsFiles:
    """What the operator's files hold, before it is checked.

    `config` is the name of our YAML, `text` what it says: None where it is not there, which is no error where
    there are `foreign` files. `problems` are of files that could not be read.
    """

    config: Path
    text: bytes | None
    foreign: ForeignFiles
    translations: tuple[Translation, ...]
    problems: tuple[Problem, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """Our YAML, unless it is only not there, and the foreign files."""
        return (*(() if self.is_foreign_alone else (self.config,)), *self.foreign.paths)

    @property
    def is_foreign_alone(self) -> bool:
        """Whether there is no YAML, and none is needed."""
        return self.text is None and bool(self.foreign.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The result of a check: a snapshot and its warnings, or None and every error."""

    snapshot: Snapshot | None
    errors: tuple[AnswerProblem, ...]
    warnings: tuple[AnswerProblem, ...]


def collect(paths: Paths, files: ReadFiles) -> OperatorsFiles:
    """Return what the operator's files hold; what cannot be read is a problem."""
    found = files.content(paths.config)
    text = found if isinstance(found, bytes) else None
    values = _values(paths, text)
    foreign = _foreign(paths, values)
    others = translated(foreign, files, groups=values)
    unread: tuple[Problem, ...] = ()
    if isinstance(found, FileUnusable) and not (isinstance(found, FileMissing) and foreign.paths):
        unread = (Problem(message=f"cannot be read: {found}", source=str(paths.config)),)
    return OperatorsFiles(
        config=paths.config,
        text=text,
        foreign=foreign,
        translations=others.translations,
        problems=(*unread, *others.problems),
    )


def load(found: OperatorsFiles, *, number: int) -> Loaded:
    """Return the snapshot of all files together, or every problem. `number` is the snapshot's."""
    drain = os.environ.get(loading.DRAIN_VARIABLE)
    if found.text is not None and not found.foreign.paths:
        return loading.load(found.text, source=str(found.config), number=number, drain=drain)
    loaded = load_together(
        found.text,
        found.translations,
        source=str(found.config),
        number=number,
        drain=drain,
        unread=found.problems,
    )
    if loaded.snapshot is None:
        return loaded
    origin = " with ".join(map(str, found.files))
    return replace(loaded, snapshot=replace(loaded.snapshot, source=origin))


def judge(paths: Paths, files: ReadFiles | None = None, *, number: int) -> Judged:
    """Read and check the operator's files; `files` is what was read of them already."""
    loaded = load(collect(paths, files or ReadFiles()), number=number)
    return Judged(
        snapshot=loaded.snapshot,
        errors=_as_answer(loaded.errors, paths.config),
        warnings=_as_answer(loaded.warnings, paths.config),
    )


def first_to_come(paths: Paths, *, number: int) -> Snapshot | None:
    """Return what is obeyed while the first configuration is still to come; None where nobody writes it.

    Somebody does who asks for reloads from the first moment on, and whoever writes haproxy.cfg for HAProxy:
    OpenShift's monitor renders it only when it has found the reload socket.
    """
    content = ReadFiles().content(paths.config)
    text = content if isinstance(content, bytes) else b""
    if not paths.reload_sockets and not _foreign(paths, _values(paths, text)).paths:
        return None
    return awaiting.awaiting(text, source=str(paths.config), number=number)


def _foreign(paths: Paths, values: Mapping[str, Plain]) -> ForeignFiles:
    """Return the foreign files: those that were set outside, else those of `source`, where it is right."""
    source = values.get("source")
    said = source if isinstance(source, dict) else {}
    return ForeignFiles(
        haproxy=paths.haproxy or _path(said.get("haproxy")),
        keepalived=paths.keepalived or _path(said.get("keepalived")),
    )


def _path(value: Plain) -> Path | None:
    return Path(value) if isinstance(value, str) and value.startswith("/") and "\0" not in value else None


def _values(paths: Paths, text: bytes | None) -> Mapping[str, Plain]:
    """Return what the YAML says at its top, as far as it matters for other files."""
    if not text or not (paths.haproxy or paths.keepalived or b"source" in text):
        return {}  # most files name none, and to parse a long one takes its time
    try:
        return read(text).value
    except DocumentError:
        return {}


def _as_answer(found: Iterable[Problem], config: Path) -> tuple[AnswerProblem, ...]:
    """Return problems as answers; those of our YAML do not name it, for who reads them knows it."""
    return tuple(_answer_problem(each, str(config)) for each in found)


def _answer_problem(problem: Problem, config: str) -> AnswerProblem:
    if problem.source and problem.line is None:
        return AnswerProblem(message=f"{problem.source}: {problem.message}", path=problem.path)
    return AnswerProblem(
        message=problem.message,
        path=problem.path,
        line=problem.line,
        column=problem.column,
        source=None if problem.source == config else problem.source,
    )
