"""Snapshots on disk: proposed, accepted, last good, and the note that a start was degraded.

Every file appears whole or not at all (written beside, synced, renamed) and belongs to its owner alone.
Numbers are never used twice, so a program that missed an abort cannot take a new proposal for its old one.
"""

import contextlib
import dataclasses
import glob
import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot import Snapshot, SnapshotError, decode, encode
from appliance.wire.control import ControlError, Problem

_KEPT: Final = 8  # numbers below the accepted one whose files stay: a worker may be about to read them


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600, group: int = -1) -> None:
    """Give `path` new content, on disk when this returns; after OSError it has its old one.

    Mode and group (-1: that of the process) come with the content: a power cut leaves no file that has its
    content and cannot be read.
    """
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchown(descriptor, -1, group)
            os.fchmod(descriptor, mode)
            file.flush()
            os.fsync(descriptor)
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
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
        return decode(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, SnapshotError) as error:
        raise SnapshotError(f"{path}: {error}") from error


def proposed(paths: Paths, number: int) -> Snapshot:
    """Return the snapshot that a command names; raises ControlError, which is its answer."""
    try:
        snapshot = read(paths.snapshot(number))
    except SnapshotError as error:
        raise ControlError(str(error)) from error
    if snapshot is None:
        raise ControlError(f"no snapshot {number}")
    return snapshot


def accepted(paths: Paths, log: FilteringBoundLogger) -> Snapshot | None:
    """Return the snapshot that every program obeys, None where there is none; one that is damaged is told."""
    try:
        return read(paths.accepted)
    except SnapshotError as error:
        log.error("snapshot-unreadable", reason=str(error))  # noqa: TRY400  # a damaged file is no bug
        return None


def same(one: Snapshot, other: Snapshot) -> bool:
    """Say whether two snapshots ask for the same; number and source do not count."""
    return dataclasses.replace(one, number=other.number, source=other.source) == other


def propose(paths: Paths, snapshot: Snapshot) -> None:
    """Write a snapshot where programs find it by its number; raises OSError."""
    path = paths.snapshot(snapshot.number)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    write_atomically(path, encode(snapshot))


def accept(paths: Paths, snapshot: Snapshot) -> None:
    """Make a snapshot the one that every program obeys: the point of no return; raises OSError."""
    write_atomically(paths.accepted, encode(snapshot))


def keep_as_last_good(paths: Paths, snapshot: Snapshot) -> None:
    """Copy an accepted snapshot to where a start with a broken configuration finds it; raises OSError."""
    write_atomically(paths.last_good, encode(snapshot))


def heal_accepted(paths: Paths, snapshot: Snapshot) -> None:
    """Write an accepted snapshot again where somebody has removed it, or all of the runtime directory.

    Raises OSError.
    """
    paths.runtime.mkdir(mode=0o700, exist_ok=True)
    if not paths.snapshot(snapshot.number).exists():
        propose(paths, snapshot)
    if not paths.accepted.exists():
        accept(paths, snapshot)


def heal_last_good(paths: Paths, snapshot: Snapshot) -> None:
    """Copy an accepted snapshot again where the copy is missing, damaged or another; raises OSError."""
    try:
        kept = read(paths.last_good)
    except SnapshotError:
        kept = None
    if kept != snapshot:
        keep_as_last_good(paths, snapshot)


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
    problems: tuple[Problem, ...]


def degraded_path(paths: Paths) -> Path:
    """Return the file that is there while the appliance runs from its last-good copy."""
    return paths.runtime / "degraded.json"


def write_degraded(paths: Paths, note: Degraded) -> None:
    """Leave the note that `appliance status` shows; raises OSError."""
    write_atomically(degraded_path(paths), msgspec.json.encode(note))


def read_degraded(paths: Paths) -> Degraded | None:
    """Return the note, None where the configuration was good."""
    try:
        return msgspec.json.decode(degraded_path(paths).read_bytes(), type=Degraded)
    except (OSError, msgspec.DecodeError):
        return None


def clear_degraded(paths: Paths) -> None:
    """Remove the note: the operator's file has been accepted."""
    degraded_path(paths).unlink(missing_ok=True)


def _numbers(paths: Paths) -> list[int]:
    names = (each.stem for each in paths.snapshot(0).parent.glob("*.json"))
    return [int(name) for name in names if name.isascii() and name.isdecimal()]


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
