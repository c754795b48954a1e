"""The first step of a start: directories, the lock on them, and the configuration that everything obeys."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from appliance.model.document.document import read
from appliance.model.document.tree import DocumentError, Plain
from appliance.model.paths import Paths
from appliance.model.snapshot.found_servers import with_found
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import config_file, found_files, lock_files, snapshots, state_files
from appliance.net.files.degraded import Degraded, clear_degraded, write_degraded
from appliance.net.files.state_files import FileUnusable
from appliance.net.privileges import private_directory
from appliance.net.process.own_processes import own_processes
from appliance.net.sources.judging import first_to_come, judge
from appliance.wire.lines.control import AnswerProblem

# sun_path holds 107 bytes (unix(7)); below the runtime directory a name such as
# ".worker-proxy-ingress-100000-100.control.4194304" needs this many.
_LONGEST_RUNTIME: Final = 107 - 50
_ELSEWHERE: Final = "make room there and give this user the right to write, or name another --runtime-dir"
_MEND: Final = "put it right; `appliance check` looks at the file without starting anything"
_SUPERVISOR: Final = "appliance.programs.supervisor"
_TAKE_OVER: Final = "take its place (--take-over), or give this one another --runtime-dir and --state-dir"


class BootError(Exception):
    """Nothing can be started; every reason, each with its place in the configuration where it has one.

    `step` is what the operator does next.
    """

    def __init__(self, *problems: AnswerProblem, step: str) -> None:
        self.problems = problems
        self.step = step
        super().__init__("; ".join(each.message for each in problems))


class TakenError(BootError):
    """Another appliance runs in the runtime directory, and goes on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What to start with; `errors` are of the operator's files, where something else is used instead.

    That is the last-good copy, or a snapshot that is `awaited`: nothing runs but what takes the first good
    one. `damaged` are files of ours that could not be read, and what became of each.
    """

    snapshot: Snapshot
    errors: tuple[AnswerProblem, ...]
    warnings: tuple[AnswerProblem, ...]
    damaged: tuple[AnswerProblem, ...] = ()


def make_directories(paths: Paths) -> None:
    """Create the runtime and state directories, for their owner alone; raises BootError.

    One that is there and that others can write to is refused: what lies in it is obeyed.
    The state directory may be missing or read-only: then what it is for is not kept, and `write` says so.
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
    _refuse_shared(path)  # in a directory such as /tmp somebody may have been faster


def _refuse_shared(path: Path) -> None:
    found = private_directory.flaw(path, owner=os.geteuid())
    if found:
        words = f"{path}: refused: {found}; whoever can write there runs commands as this user"
        raise BootError(AnswerProblem(message=words), step=f"`chmod go-w {path}`, and see who owns it")


def lock(paths: Paths) -> int:
    """Return a descriptor that holds the runtime directory, over exec too; raises BootError and TakenError.

    Where somebody has removed the directory, its lock is free until supervisord has taken that as well.
    """
    path = paths.lock
    try:
        descriptor = lock_files.hold(path)
    except OSError as error:
        raise BootError(AnswerProblem(message=f"{path}: {error.strerror}"), step=_ELSEWHERE) from error
    if descriptor is None or _is_supervised(paths):
        problem = AnswerProblem(message=f"{paths.runtime}: an appliance runs here already")
        raise TakenError(problem, step=_TAKE_OVER)
    os.set_inheritable(descriptor, True)  # noqa: FBT003  # its only parameter
    return descriptor


def _is_supervised(paths: Paths) -> bool:
    return any(each.module == _SUPERVISOR for each in own_processes(paths.runtime))


def choose(paths: Paths) -> Start:
    """Return the operator's configuration, or what was accepted last where that has errors; raises BootError.

    That is the last-good copy, or what is left of the last run where the copy is older or cannot be read.
    Where nothing was ever accepted, and somebody else writes the files, they are waited for.
    """
    damaged = tuple(_set_aside(paths))
    found = [each for each in map(snapshots.readable, (paths.accepted, paths.last_good)) if each]
    known = [each for each in found if not each.awaited]
    number = snapshots.unused_number(paths, found)
    judged = judge(paths, number=number)
    if judged.snapshot is not None:
        chosen = _chosen(paths, judged.snapshot, known)
        return Start(snapshot=chosen, errors=(), warnings=judged.warnings, damaged=damaged)
    if not known:
        awaiting = first_to_come(paths, number=number)
        if awaiting is None:
            raise BootError(*judged.errors, *damaged, step=_MEND)
        return Start(snapshot=awaiting, errors=judged.errors, warnings=(), damaged=damaged)
    last_good = max(known, key=lambda each: each.number)
    return Start(snapshot=last_good, errors=judged.errors, warnings=judged.warnings, damaged=damaged)


def choose_beside(paths: Paths) -> Start:
    """Return what to start with beside an appliance that runs; raises TakenError.

    Nothing is repaired, and nothing else is used instead of what the operator wrote: the other one has that.
    """
    found = [each for each in map(snapshots.readable, (paths.accepted, paths.last_good)) if each]
    known = [each for each in found if not each.awaited]
    judged = judge(paths, number=snapshots.unused_number(paths, found))
    if judged.snapshot is None:
        raise TakenError(*judged.errors, step=_MEND)
    return Start(snapshot=_chosen(paths, judged.snapshot, known), errors=(), warnings=judged.warnings)


def _chosen(paths: Paths, judged: Snapshot, known: Sequence[Snapshot]) -> Snapshot:
    """Return the operator's configuration, as what was accepted last where that is the same."""
    last = known[0] if known else None
    wanted = with_found(judged, found_files.read(paths), before=last)
    return last if last and snapshots.same(last, wanted) else wanted


def wanted_readers(paths: Paths) -> str | None:
    """Return the group that the operator's file lets in, as far as it can be read before it is judged."""
    group = _early(paths, b"group").get("group")
    return group if isinstance(group, str) else None


def wanted_sockets(paths: Paths) -> tuple[Path, ...]:
    """Return the sockets elsewhere that are to be listened on, as far as can be read likewise."""
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
    """Return what the operator's file says; nothing where it is without a word, and need not be parsed."""
    with contextlib.suppress(FileUnusable, DocumentError):
        text = config_file.read(paths.config)
        return read(text).value if word in text else {}
    return {}


def write(paths: Paths, start: Start, *, clock: Callable[[], float] = time.time) -> tuple[AnswerProblem, ...]:
    """Put what was chosen where every program reads it; return what is not kept; raises BootError.

    Only what programs read has to be written. What a later start may want is disposable.
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
    """Remove supervisord's socket of an earlier run: the lock says that nobody listens on it."""
    for path in (paths.supervisor_socket, *paths.runtime.glob(f"{paths.supervisor_socket.name}.*")):
        state_files.clear_way(path) if path.is_dir() else path.unlink(missing_ok=True)
