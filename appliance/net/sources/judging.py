"""The operator's files, read and checked together, with their problems as answers."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from appliance.model.document.document import Document, read
from appliance.model.document.tree import DocumentError, EmptyDocumentError, Plain
from appliance.model.loading import loading
from appliance.model.loading.awaiting import awaiting
from appliance.model.loading.by_node import ByNode
from appliance.model.loading.loading import Loaded, unreadable
from appliance.model.messages.problems import Problem
from appliance.model.messages.quoting import printable
from appliance.model.paths import NODE_VARIABLE, Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files.state_files import FileUnusable
from appliance.net.process.collection import no_collection
from appliance.net.process.this_node import this_node
from appliance.net.sources.foreign_files import ForeignFiles, translated
from appliance.net.sources.read_files import FileMissing, ReadFiles
from appliance.translation.combined_files import left_to_haproxy, load_together, together
from appliance.translation.translation import Translation
from appliance.wire.lines.control import AnswerProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorsFiles:
    """The contents of the operator's files, not yet checked.

    `config` is the name of our YAML, `document` its content: None if it is missing or empty, which is not an
    error if there are `foreign` files. `problems` are of unreadable files.
    """

    config: Path
    document: Document | None
    foreign: ForeignFiles
    translations: tuple[Translation, ...]
    problems: tuple[Problem, ...]

    @property
    def files(self) -> tuple[Path, ...]:
        """Our YAML, unless it is just missing, and the foreign files."""
        return (*(() if self.is_foreign_alone else (self.config,)), *self.foreign.paths)

    @property
    def is_foreign_alone(self) -> bool:
        """Whether there is no YAML and none is needed."""
        return self.document is None and bool(self.foreign.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The result of a check: a snapshot with its warnings, or None and all errors; else as in `Loaded`."""

    snapshot: Snapshot | None
    errors: tuple[AnswerProblem, ...]
    warnings: tuple[AnswerProblem, ...]
    common: str = ""
    node: str = ""


@no_collection()
def collect(paths: Paths, files: ReadFiles) -> OperatorsFiles:
    """Return the contents of the operator's files; an unreadable one is a problem."""
    own = _own(paths.config, files)
    foreign = _foreign(paths, _at_this_node(own.document))
    others = translated(foreign, files, groups=own.document.keys if own.document else ())
    return OperatorsFiles(
        config=paths.config,
        document=own.document,
        foreign=foreign,
        translations=others.translations,
        problems=(*([] if own.says_nothing and foreign.paths else own.problems), *others.problems),
    )


@no_collection()
def load(found: OperatorsFiles, *, number: int, here: bool = True) -> Loaded:
    """Return the snapshot of all files together, or every problem. `number` is the snapshot's.

    Without `here` they are checked for no particular node, unless NODE_VARIABLE names one.
    """
    loaded = load_together(
        found.document,
        found.translations,
        source=str(found.config),
        number=number,
        drain=os.environ.get(loading.DRAIN_VARIABLE),
        node=this_node() if here else os.environ.get(NODE_VARIABLE),
        unread=found.problems,
    )
    if loaded.snapshot is None:
        return loaded
    origin = printable(" with ".join(map(str, found.files)))
    left = tuple(left_to_haproxy(found.translations))
    return replace(loaded, snapshot=replace(loaded.snapshot, source=origin, left_out=left))


def judge(paths: Paths, files: ReadFiles | None = None, *, number: int) -> Judged:
    """Read and check the operator's files; `files` are those already read."""
    loaded = load(collect(paths, files or ReadFiles()), number=number)
    return Judged(
        snapshot=loaded.snapshot,
        errors=as_answer(loaded.errors, paths.config),
        warnings=as_answer(loaded.warnings, paths.config),
        common=loaded.common,
        node=loaded.node,
    )


def document(paths: Paths, files: ReadFiles) -> Document:
    """Return the operator's files as one document, for the places of keys."""
    found = collect(paths, files)
    return together(found.document, found.translations, source=str(paths.config))[0]


def first_to_come(paths: Paths, *, number: int) -> Snapshot | None:
    """Return the snapshot to use until the first configuration exists; None if no program writes one.

    A program that requests reloads from the start writes one, and so does one that writes haproxy.cfg for
    HAProxy: OpenShift's monitor renders it only after it has found the reload socket.
    """
    document = _at_this_node(_own(paths.config, ReadFiles()).document)
    if not paths.reload_sockets and not _foreign(paths, document).paths:
        return None
    return awaiting(document, source=printable(str(paths.config)), number=number)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OwnFile:
    """Our YAML; `says_nothing` if it is missing or empty."""

    document: Document | None = None
    problems: tuple[Problem, ...] = ()
    says_nothing: bool = False


def _own(path: Path, files: ReadFiles) -> _OwnFile:
    content = files.content(path)
    if isinstance(content, FileUnusable):
        problem = Problem(message=f"cannot be read: {content}", source=str(path))
        return _OwnFile(problems=(problem,), says_nothing=isinstance(content, FileMissing))
    try:
        return _OwnFile(document=read(content))
    except DocumentError as error:
        problem = unreadable(error, source=str(path))
        return _OwnFile(problems=(problem,), says_nothing=isinstance(error, EmptyDocumentError))


def _at_this_node(document: Document | None) -> Document | None:
    return ByNode(document).of(this_node()) if document else None


def _foreign(paths: Paths, document: Document | None) -> ForeignFiles:
    """Return the foreign files: those set from outside, else those of `source` if valid."""
    source = document.section("source") if document else None
    said = source if isinstance(source, dict) else {}
    return ForeignFiles(
        haproxy=paths.haproxy or tuple(filter(None, [_path(said.get("haproxy"))])),
        keepalived=paths.keepalived or _path(said.get("keepalived")),
        bgp_peers=_path(said.get("bgp_peers")),
        http="skip" if said.get("http") == "skip" else "refuse",
    )


def _path(value: Plain) -> Path | None:
    return Path(value) if isinstance(value, str) and value.startswith("/") and "\0" not in value else None


def as_answer(found: Iterable[Problem], config: Path) -> tuple[AnswerProblem, ...]:
    """Return problems as answers; those of our YAML do not name it, as their reader knows it."""
    return tuple(_answer_problem(each, str(config)) for each in found)


def _answer_problem(problem: Problem, config: str) -> AnswerProblem:
    # The name of a file may be any bytes, and answers are UTF-8.
    source = printable(problem.source) if problem.source else None
    if source and problem.line is None:
        return AnswerProblem(message=f"{source}: {problem.message}", path=problem.path)
    return AnswerProblem(
        message=problem.message,
        path=problem.path,
        line=problem.line,
        column=problem.column,
        source=None if problem.source == config else source,
    )
