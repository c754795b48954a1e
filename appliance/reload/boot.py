"""The first step of a start: directories, the lock on them, and the configuration that all programs use."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from appliance.model.config.configuration import Config
from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError, Plain
from appliance.model.paths import Paths
from appliance.model.snapshot.found_servers import with_found
from appliance.model.snapshot.snapshot import Snapshot, decode, encode
from appliance.net.files import config_file, found_files, lock_files, snapshots, start_note, state_files
from appliance.net.files.degraded import Degraded, clear_degraded, write_degraded
from appliance.net.files.start_note import StartNote
from appliance.net.files.state_files import FileUnusable
from appliance.net.privileges import private_directory
from appliance.net.process.own_processes import own_processes
from appliance.net.sources.judging import Judged, first_to_come, judge
from appliance.net.sources.read_files import ReadFiles
from appliance.wire.lines.control import AnswerProblem

# sun_path holds 107 bytes (unix(7)); below the runtime directory a name such as
# ".worker-proxy-ingress-100000-100.control.4194304" needs this many.
_LONGEST_RUNTIME: Final = 107 - 50
_ELSEWHERE: Final = "make room there and give this user the right to write, or name another --runtime-dir"
_MEND: Final = "fix it; `appliance check` looks at the file without starting anything"
_SUPERVISOR: Final = "appliance.programs.supervisor"
_TAKE_OVER: Final = "take its place (--take-over), or give this one another --runtime-dir and --state-dir"


class BootError(Exception):
    """Nothing can be started, for these reasons with their places; `step` is the operator's next one."""

    def __init__(self, *problems: AnswerProblem, step: str) -> None:
        self.problems = problems
        self.step = step
        super().__init__("; ".join(each.message for each in problems))

    def __reduce__(self) -> tuple[Callable[..., "BootError"], tuple[AnswerProblem, ...]]:
        """Return how a copy is made, for a child that reports to its parent."""
        return partial(type(self), step=self.step), self.problems


class TakenError(BootError):
    """Another appliance runs in the runtime directory, and continues."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The configuration to start with; `errors` are of the operator's files, if it is not from them.

    Then it is the last-good copy, or an `awaited` snapshot: only the programs that take the first good one
    run. `damaged` are files of ours that could not be read, and what became of each.
    """

    snapshot: Snapshot
    errors: tuple[AnswerProblem, ...]
    warnings: tuple[AnswerProblem, ...]
    damaged: tuple[AnswerProblem, ...] = ()
    note: StartNote | None = None
    """Of which content of the operator's files the snapshot is, None if it is not from them."""

    def __reduce__(self) -> tuple[Callable[..., "Start"], tuple[bytes]]:
        """Return how a copy is made: a snapshot is larger as a pickle, and takes longer."""
        rest = {each.name: getattr(self, each.name) for each in fields(self) if each.name != "snapshot"}
        return partial(_copied, **rest), (encode(self.snapshot),)


def _copied(snapshot: bytes, **rest: Any) -> Start:  # noqa: ANN401  # the fields of a Start
    return Start(snapshot=decode(snapshot), **rest)


def make_directories(paths: Paths) -> None:
    """Create the runtime and state directories, for their owner alone; raises BootError.

    An existing directory that others can write to is refused, as its files take effect. The state directory
    may be missing or read-only: then its files are not kept, and `write` reports that.
    """
    if len(os.fsencode(paths.runtime.absolute())) > _LONGEST_RUNTIME:
        too_long = (
            f"{paths.runtime}: a runtime directory of more than {_LONGEST_RUNTIME} bytes: sockets need room"
        )
        raise BootError(AnswerProblem(message=too_long), step="name a shorter one: --runtime-dir")
    path = paths.runtime
    try:
        _make(path)
    except OSError as error:
        problem = AnswerProblem(message=f"{path}: cannot be created: {error.strerror}")
        raise BootError(problem, step=_ELSEWHERE) from error
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        problem = AnswerProblem(message=f"{path}: not writable for user {os.getuid()}")
        raise BootError(problem, step=_ELSEWHERE)
    with contextlib.suppress(OSError):
        _make(paths.state)


def _make(path: Path) -> None:
    _refuse_shared(path)
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _refuse_shared(path)  # in a directory such as /tmp another user may have been faster


def _refuse_shared(path: Path) -> None:
    found = private_directory.flaw(path, owner=os.geteuid())
    if found:
        words = f"{path}: refused: {found}; whoever can write there runs commands as this user"
        raise BootError(AnswerProblem(message=words), step=f"`chmod go-w {path}`, and see who owns it")


def lock(paths: Paths) -> int:
    """Return a descriptor that holds the runtime directory, over exec too; raises BootError and TakenError.

    If the directory was removed, its lock is free until supervisord has taken it too.
    """
    path = paths.lock
    try:
        descriptor = lock_files.hold(path)
    except OSError as error:
        raise BootError(AnswerProblem(message=f"{path}: {error.strerror}"), step=_ELSEWHERE) from error
    if descriptor is None or any(each.module == _SUPERVISOR for each in own_processes(paths.runtime)):
        problem = AnswerProblem(message=f"{paths.runtime}: an appliance runs here already")
        raise TakenError(problem, step=_TAKE_OVER)
    os.set_inheritable(descriptor, True)  # noqa: FBT003  # its only parameter
    return descriptor


def build_validator() -> None:
    """Build what judges files, for this process and all forks that follow."""
    Config.model_rebuild()


def choose(paths: Paths) -> Start:
    """Return the operator's configuration, or the last accepted one if it has errors; raises BootError.

    The last accepted one is the last-good copy, or the remains of the last run if the copy is older or cannot
    be read. If none was ever accepted, and another program writes the files, they are waited for.
    """
    damaged = tuple(_set_aside(paths))
    found = [each for each in map(snapshots.readable, (paths.accepted, paths.last_good)) if each]
    known = [each for each in found if not each.awaited]
    number = snapshots.unused_number(paths, found)
    files = ReadFiles()
    judged = judge(paths, files, number=number)
    if judged.snapshot is not None:
        return replace(_start(paths, files, judged, judged.snapshot, known), damaged=damaged)
    if not known:
        awaiting = first_to_come(paths, number=number)
        if awaiting is None:
            raise BootError(*judged.errors, *damaged, step=_MEND)
        return Start(snapshot=awaiting, errors=judged.errors, warnings=(), damaged=damaged)
    last_good = max(known, key=lambda each: each.number)
    return Start(snapshot=last_good, errors=judged.errors, warnings=judged.warnings, damaged=damaged)


def choose_beside(paths: Paths) -> Start:
    """Return the start configuration alongside a running appliance; raises TakenError.

    Nothing is repaired, and nothing replaces the operator's files: the running appliance has the last
    accepted configuration.
    """
    found = [each for each in map(snapshots.readable, (paths.accepted, paths.last_good)) if each]
    known = [each for each in found if not each.awaited]
    files = ReadFiles()
    judged = judge(paths, files, number=snapshots.unused_number(paths, found))
    if judged.snapshot is None:
        raise TakenError(*judged.errors, step=_MEND)
    return _start(paths, files, judged, judged.snapshot, known)


def _start(
    paths: Paths, files: ReadFiles, judged: Judged, snapshot: Snapshot, known: Sequence[Snapshot]
) -> Start:
    """Return the start with the operator's configuration."""
    chosen = _chosen(paths, snapshot, known)
    note = StartNote(snapshot=chosen.number, files=files.digest(), common=judged.common, node=judged.node)
    return Start(snapshot=chosen, errors=(), warnings=judged.warnings, note=note)


def _chosen(paths: Paths, judged: Snapshot, known: Sequence[Snapshot]) -> Snapshot:
    """Return the operator's configuration, or the last accepted snapshot if it is the same."""
    last = known[0] if known else None
    wanted = with_found(judged, found_files.read(paths), before=last)
    return last if last and snapshots.same(last, wanted) else wanted


def wanted_readers(paths: Paths) -> str | None:
    """Return the group that the operator's file admits, as far as it can be read before validation."""
    group = _early(paths, b"group").get("group")
    return group if isinstance(group, str) else None


def wanted_sockets(paths: Paths) -> tuple[Path, ...]:
    """Return the further sockets to listen on, as far as they can be read before validation."""
    said = _early(paths, b"socket")
    reload, stats = said.get("reload"), said.get("stats")
    further = reload.get("sockets") if isinstance(reload, dict) else None
    own = stats.get("socket") if isinstance(stats, dict) else None
    named = [*(further if isinstance(further, list) else ()), own]
    return (
        *paths.reload_sockets,
        *(Path(each) for each in named if isinstance(each, str) and each[:1] == "/"),
    )


def _early(paths: Paths, word: bytes) -> Mapping[str, Plain]:
    """Return the content of the operator's file; nothing if it lacks a word, and need not be parsed."""
    with contextlib.suppress(FileUnusable, DocumentError):
        text = config_file.read(paths.config)
        return read(text).value if word in text else {}
    return {}


def write(paths: Paths, start: Start, *, clock: Callable[[], float] = time.time) -> tuple[AnswerProblem, ...]:
    """Write the chosen configuration where every program reads it; return what is not kept; raises BootError.

    Only the files that programs read must be written. Files for a later start are optional.
    """
    try:
        snapshots.propose(paths, start.snapshot)
        snapshots.accept(paths, start.snapshot)
    except OSError as error:
        raise BootError(_problem(error), step=_ELSEWHERE) from error
    steps = (
        *(() if start.snapshot.awaited else (partial(snapshots.keep_as_last_good, paths, start.snapshot),)),
        partial(snapshots.prune, paths, start.snapshot.number),
        partial(_note, paths, start, clock),
        *((partial(start_note.write, paths, start.note),) if start.note else ()),
    )
    return tuple(problem for step in steps if (problem := _attempt(step)))


def _note(paths: Paths, start: Start, clock: Callable[[], float]) -> None:
    if start.errors:
        write_degraded(paths, Degraded(since=clock(), problems=start.errors))
    else:
        clear_degraded(paths)


def _attempt(step: Callable[[], None]) -> AnswerProblem | None:
    try:
        step()
    except OSError as error:
        return _problem(error)
    return None


def _problem(error: OSError) -> AnswerProblem:
    return AnswerProblem(message=f"{error.filename}: {error.strerror or error}")


def _set_aside(paths: Paths) -> Iterator[AnswerProblem]:
    for path, reason in [*snapshots.damaged(paths), *found_files.damaged(paths)]:
        aside = state_files.set_aside(path)
        yield AnswerProblem(message=f"{reason}: " + (f"set aside as {aside}" if aside else "passed over"))


def remove_stale_sockets(paths: Paths) -> None:
    """Remove supervisord's socket of an earlier run: the lock shows that no process listens on it."""
    for path in (paths.supervisor_socket, *paths.runtime.glob(f"{paths.supervisor_socket.name}.*")):
        state_files.clear_way(path) if path.is_dir() else path.unlink(missing_ok=True)
