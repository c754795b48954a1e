"""The operator's configuration file, read and checked, with its problems in the form of answers."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from appliance.model.loading import loading
from appliance.model.messages import problems
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import config_file
from appliance.net.files.state_files import FileUnusable
from appliance.wire.lines.control import AnswerProblem


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The result of a check: a snapshot and its warnings, or None and every error."""

    snapshot: Snapshot | None
    errors: tuple[AnswerProblem, ...]
    warnings: tuple[AnswerProblem, ...]


def judge(path: Path, *, number: int) -> Judged:
    """Read and check a file; one that cannot be read has one error."""
    try:
        content: bytes | FileUnusable = config_file.read(path)
    except FileUnusable as error:
        content = error
    return judge_content(content, path=path, number=number)


def judge_content(content: bytes | FileUnusable, *, path: Path, number: int) -> Judged:
    """Check the content of a file, or what kept it from being read. `number` is the snapshot's."""
    if isinstance(content, FileUnusable):
        return Judged(snapshot=None, errors=(AnswerProblem(message=f"{path}: {content}"),), warnings=())
    drain = os.environ.get(loading.DRAIN_VARIABLE)
    loaded = loading.load(content, source=str(path), number=number, drain=drain)
    return Judged(
        snapshot=loaded.snapshot, errors=_as_answer(loaded.errors), warnings=_as_answer(loaded.warnings)
    )


def _as_answer(found: Iterable[problems.Problem]) -> tuple[AnswerProblem, ...]:
    return tuple(
        AnswerProblem(message=each.message, path=each.path, line=each.line, column=each.column)
        for each in found
    )
