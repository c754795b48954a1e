"""The first step of a start: directories, the lock on them, and the configuration that everything obeys."""

import fcntl
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from appliance.model.paths import Paths
from appliance.model.snapshot import Snapshot, SnapshotError
from appliance.net.files import snapshots
from appliance.net.files.operators_file import judge
from appliance.net.process import private_directory
from appliance.wire.control import Problem

# sun_path holds 107 bytes (unix(7)); below the runtime directory a name such as
# ".worker-proxy-ingress-100000-100.control.4194304" needs this many.
_LONGEST_RUNTIME: Final = 107 - 50


class BootError(Exception):
    """Nothing can be started; every reason, each with its place in the configuration where it has one."""

    def __init__(self, *problems: Problem) -> None:
        self.problems = problems
        super().__init__("; ".join(each.message for each in problems))


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What to start with; `errors` are of the operator's file, where the last-good copy is used instead."""

    snapshot: Snapshot
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


def make_directories(paths: Paths) -> None:
    """Create the runtime and state directories, for their owner alone; raises BootError.

    One that is there and that others can write to is refused: what lies in it is obeyed.
    """
    if len(os.fsencode(paths.runtime.absolute())) > _LONGEST_RUNTIME:
        too_long = (
            f"{paths.runtime}: a runtime directory of more than {_LONGEST_RUNTIME} bytes: sockets need room"
        )
        raise BootError(Problem(message=too_long))
    for path in (paths.runtime, paths.state):
        try:
            _refuse_shared(path)
            path.mkdir(mode=0o700, parents=True, exist_ok=True)
            _refuse_shared(path)  # in a directory such as /tmp somebody may have been faster
        except OSError as error:
            raise BootError(Problem(message=f"{path}: cannot be created: {error.strerror}")) from error
        if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
            raise BootError(Problem(message=f"{path}: not writable for user {os.getuid()}"))


def _refuse_shared(path: Path) -> None:
    found = private_directory.flaw(path, owner=os.geteuid())
    if found:
        words = f"{path}: refused: {found}; whoever can write there runs commands as this user"
        raise BootError(Problem(message=words))


def lock(paths: Paths) -> int:
    """Return a descriptor that holds the runtime directory, over exec too; raises BootError."""
    path = paths.runtime / "appliance.lock"
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise BootError(Problem(message=f"{path}: {error.strerror}")) from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        raise BootError(Problem(message=f"{paths.runtime}: an appliance runs here already")) from error
    os.set_inheritable(descriptor, True)  # noqa: FBT003  # its only parameter
    return descriptor


def choose(paths: Paths) -> Start:
    """Return the operator's configuration, or what was accepted last where that has errors; raises BootError.

    That is the last-good copy, or what is left of the last run where the copy is older or cannot be read.
    """
    known = [each for each in map(_readable, (paths.accepted, paths.last_good)) if each]
    judged = judge(paths.config, number=snapshots.unused_number(paths, known))
    if judged.snapshot is not None:
        last = known[0] if known else None
        unchanged = last is not None and snapshots.same(last, judged.snapshot)
        chosen = last if last and unchanged else judged.snapshot
        return Start(snapshot=chosen, errors=(), warnings=judged.warnings)
    if not known:
        raise BootError(*judged.errors)
    last_good = max(known, key=lambda each: each.number)
    return Start(snapshot=last_good, errors=judged.errors, warnings=judged.warnings)


def write(paths: Paths, start: Start, *, clock: Callable[[], float] = time.time) -> None:
    """Put what was chosen where every program reads it; raises BootError."""
    try:
        snapshots.propose(paths, start.snapshot)
        snapshots.accept(paths, start.snapshot)
        snapshots.keep_as_last_good(paths, start.snapshot)
        snapshots.prune(paths, start.snapshot.number)
        if start.errors:
            snapshots.write_degraded(paths, snapshots.Degraded(since=clock(), problems=start.errors))
        else:
            snapshots.clear_degraded(paths)
    except OSError as error:
        raise BootError(Problem(message=f"{error.filename}: {error.strerror}")) from error


def remove_stale_sockets(paths: Paths) -> None:
    """Remove supervisord's socket of an earlier run: the lock says that nobody listens on it."""
    for path in (paths.supervisor_socket, *paths.runtime.glob(f"{paths.supervisor_socket.name}.*")):
        path.unlink(missing_ok=True)


def _readable(path: Path) -> Snapshot | None:
    """Return a snapshot; a damaged file is as good as none."""
    try:
        return snapshots.read(path)
    except SnapshotError:
        return None
