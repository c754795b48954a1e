"""Snapshots on disk: proposed, accepted, last good, and the note that a start was degraded.

Every file appears whole or not at all (written beside, synced, renamed) and belongs to its owner alone.
Numbers are never used twice, so a program that missed an abort cannot take a new proposal for its old one.
"""

import contextlib
import dataclasses
import glob
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError, decode, encode, without_secrets
from appliance.net.files import readers, state_files
from appliance.net.files.state_files import FileUnusable
from appliance.wire.lines.control import AnswerProblem, ControlError
from appliance.wire.seal import SealError, seal, unseal

_NUMBER: Final = re.compile("[0-9]{1,9}", re.ASCII)
_KEPT: Final = 8  # numbers below the accepted one whose files stay: a worker may be about to read them


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600, group: int = -1) -> None:
    """Give `path` new content, on disk when this returns; after OSError it has its old one.

    Mode and group (-1: that of the process) come with the content: a power cut leaves no file that has its
    content and cannot be read.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchown(descriptor, -1, group)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        error.filename, error.filename2 = str(path), None  # what a write raises names no file at all
        raise
    with contextlib.suppress(OSError):  # it has the new content: a failure would be taken for the old one
        _sync_directory(path.parent)


def remove_scratches(path: Path) -> None:
    """Remove what a power cut left of earlier writes, where nobody else writes this file; raises OSError."""
    for each in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if each.suffix[1:].isdecimal():
            each.unlink(missing_ok=True)


def read(path: Path) -> Snapshot | None:
    """Return the snapshot in a file, None where there is no file; raises SnapshotError."""
    try:
        data = state_files.read(path)
        return None if data is None else decode(unseal(data))
    except (FileUnusable, SealError, SnapshotError) as error:
        raise SnapshotError(f"{path}: {error}") from error


def numbered(paths: Paths, number: int) -> Snapshot | None:
    """Return a snapshot by its number, accepted or proposed, None where there is none; raises SnapshotError.

    Where its own file is lost, the copies of what was accepted may be of that number.
    """
    try:
        found = read(paths.snapshot(number))
    except SnapshotError:
        copy = _copy(paths, number)
        if copy is None:
            raise
        return copy
    return found or _copy(paths, number)


def proposed(paths: Paths, number: int) -> Snapshot:
    """Return the snapshot that a command names; raises ControlError, which is its answer."""
    try:
        snapshot = numbered(paths, number)
    except SnapshotError as error:
        raise ControlError(str(error)) from error
    if snapshot is None:
        raise ControlError(f"no snapshot {number}")
    return snapshot


def accepted(paths: Paths, log: FilteringBoundLogger) -> Snapshot | None:
    """Return the snapshot that every program obeys, None where there is none.

    One that is damaged is told, and the last-good copy is taken; `reload` leads everybody to what it obeys.
    """
    try:
        return read(paths.accepted)
    except SnapshotError as error:
        log.error("snapshot-unreadable", reason=str(error))  # noqa: TRY400  # a damaged file is no bug
        return readable(paths.last_good)


def same(one: Snapshot, other: Snapshot) -> bool:
    """Say whether two snapshots ask for the same; number and source do not count."""
    return dataclasses.replace(one, number=other.number, source=other.source) == other


def propose(paths: Paths, snapshot: Snapshot) -> None:
    """Write a snapshot where programs find it by its number; raises OSError."""
    path = paths.snapshot(snapshot.number)
    if not path.parent.is_dir() and os.path.lexists(path.parent):
        state_files.set_aside(path.parent)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    _write(path, snapshot)


def accept(paths: Paths, snapshot: Snapshot) -> None:
    """Make a snapshot the one that every program obeys: the point of no return; raises OSError."""
    _write(paths.accepted, snapshot)
    _show(paths, snapshot)


def for_readers(paths: Paths) -> Snapshot | None:
    """Return what is accepted, without its secrets where we may not read them; raises SnapshotError."""
    is_closed = os.path.lexists(paths.accepted) and not os.access(paths.accepted, os.R_OK)
    return read(paths.accepted_for_readers if is_closed else paths.accepted)


def keep_as_last_good(paths: Paths, snapshot: Snapshot) -> None:
    """Copy an accepted snapshot to where a start with a broken configuration finds it; raises OSError."""
    _write(paths.last_good, snapshot)


def heal_last_good(paths: Paths, snapshot: Snapshot) -> None:
    """Copy an accepted snapshot again where the copy is missing, damaged or another; raises OSError."""
    if readable(paths.last_good) != snapshot:
        keep_as_last_good(paths, snapshot)


def damaged(paths: Paths) -> Iterator[tuple[Path, str]]:
    """Yield which of the files that programs start with cannot be read, and why."""
    for path in (paths.accepted, paths.last_good):
        try:
            read(path)
        except SnapshotError as error:
            yield path, str(error)


def heal(paths: Paths, snapshot: Snapshot) -> None:
    """Write the accepted snapshot again where its files, or all of their directory, are lost or damaged.

    Raises OSError. Not where there is another one: another appliance may have this directory by now.
    """
    paths.runtime.mkdir(mode=0o700, exist_ok=True)
    if readable(paths.accepted) is None:
        accept(paths, snapshot)
    _show(paths, snapshot)
    if readable(paths.snapshot(snapshot.number)) is None:
        propose(paths, snapshot)


def unused_number(paths: Paths, known: Iterable[Snapshot | None]) -> int:
    """Return a number above those of `known` and of every proposal on disk."""
    return 1 + max([0, *(each.number for each in known if each), *_numbers(paths)])


def prune(paths: Paths, accepted: int) -> None:
    """Remove the files of snapshots long past, and of refused ones but the last: its number stays used."""
    numbers = _numbers(paths)
    for number in numbers:
        if not accepted - _KEPT <= number <= accepted and number != max(numbers):
            paths.snapshot(number).unlink(missing_ok=True)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Degraded:
    """Why the appliance runs from its last-good copy; `since` is unix seconds."""

    since: float
    problems: tuple[AnswerProblem, ...]


def degraded_path(paths: Paths) -> Path:
    """Return the file that is there while the appliance runs from its last-good copy."""
    return paths.runtime / "degraded.json"


def write_degraded(paths: Paths, note: Degraded) -> None:
    """Leave the note that `appliance status` shows; raises OSError."""
    write_atomically(degraded_path(paths), msgspec.json.encode(note), mode=readers.file_mode(paths.runtime))


def read_degraded(paths: Paths) -> Degraded | None:
    """Return the note, None where the configuration was good."""
    return state_files.decoded(degraded_path(paths), Degraded)


def clear_degraded(paths: Paths) -> None:
    """Remove the note: the operator's file has been accepted; raises OSError."""
    state_files.clear_way(degraded_path(paths))
    degraded_path(paths).unlink(missing_ok=True)


def _numbers(paths: Paths) -> list[int]:
    names = (each.stem for each in paths.snapshot(0).parent.glob("*.json"))
    return [int(name) for name in names if _NUMBER.fullmatch(name)]


def _write(path: Path, snapshot: Snapshot) -> None:
    """Write a snapshot, unless the file holds it: what needs no room cannot fail for want of it."""
    data = seal(encode(snapshot))
    with contextlib.suppress(FileUnusable):
        if state_files.read(path) == data:
            return
    state_files.clear_way(path)
    write_atomically(path, data)


def _show(paths: Paths, snapshot: Snapshot) -> None:
    """Let the group see what is accepted; nothing rather than what was accepted before.

    Raises nothing: a full disk, or what somebody has put there, matters to those who look only.
    """
    path, shown = paths.accepted_for_readers, without_secrets(snapshot)
    is_open = readers.are_let_in(paths.runtime)
    if is_open and readable(path) == shown:
        return
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if is_open:
            write_atomically(path, seal(encode(shown)), mode=readers.file_mode(paths.runtime))


def readable(path: Path) -> Snapshot | None:
    """Return the snapshot in a file; a damaged file is as good as none."""
    try:
        return read(path)
    except SnapshotError:
        return None


def _copy(paths: Paths, number: int) -> Snapshot | None:
    copies = (readable(path) for path in (paths.accepted, paths.last_good))
    return next((each for each in copies if each and each.number == number), None)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
