"""Snapshots on disk: proposed, accepted, and the last good one.

Every file appears whole or not at all (atomic_write) and belongs to its owner alone. Only the last good
one has to outlive a power cut: syncing the others to the disk would take longer than the rest of a reload.
Numbers are never reused, so a program that missed an abort cannot take a new proposal for its old one.
"""

import contextlib
import dataclasses
import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final, TypeVar
from weakref import ref

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import (
    Log,
    Snapshot,
    SnapshotError,
    decode,
    decode_log,
    encode,
    without_secrets,
)
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_atomically, write_whole
from appliance.net.files.state_files import FileUnusable
from appliance.net.process.collection import no_collection
from appliance.wire.checksummed_json import ChecksumError, checksummed, verified
from appliance.wire.lines.control import ControlError

_NUMBER: Final = re.compile("[0-9]{1,9}", re.ASCII)
_KEPT: Final = 8  # numbers below the accepted one that keep their files: a worker may be about to read them


@no_collection()
def _decoded(data: bytes) -> Snapshot:
    return decode(verified(data))


_Content = TypeVar("_Content")

_decoded_once: Final = lru_cache(maxsize=1)(_decoded)
"""For the copies of the accepted snapshot, which have the same bytes, and are often checked."""


class LastWritten:
    """`content` of the last file, while its snapshot is in use: it is proposed, accepted and kept in turn."""

    def __init__(self) -> None:
        self._snapshot: Callable[[], Snapshot | None] = lambda: None
        self.content = b""

    def of(self, snapshot: Snapshot) -> bytes:
        """Return the content of a snapshot's files."""
        if self._snapshot() is not snapshot:
            self.content = checksummed(encode(snapshot))
            self._snapshot = ref(snapshot, self._forget)
        return self.content

    def _forget(self, snapshot: Callable[[], Snapshot | None]) -> None:
        if snapshot is self._snapshot:
            self.content = b""


_LAST_WRITTEN: Final = LastWritten()


def read(path: Path) -> Snapshot | None:
    """Return the snapshot in a file, None without a file; raises SnapshotError."""
    return _read(path, _decoded)


def _read(path: Path, decoded: Callable[[bytes], _Content]) -> _Content | None:
    try:
        data = state_files.read(path)
        return None if data is None else decoded(data)
    except (FileUnusable, ChecksumError, SnapshotError) as error:
        raise SnapshotError(f"{path}: {error}") from error


def numbered(paths: Paths, number: int) -> Snapshot | None:
    """Return a snapshot by number, accepted or proposed, None if there is none; raises SnapshotError.

    If its own file is lost, the copies of the accepted snapshot may have that number.
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
    """Return the accepted snapshot, which every program applies; None without one.

    If it is damaged, this is logged and the last-good copy used; `reload` then gives all programs its own.
    """
    try:
        return read(paths.accepted)
    except SnapshotError as error:
        log.error("snapshot-unreadable", reason=str(error))  # noqa: TRY400  # a damaged file is no bug
        return readable(paths.last_good)


def same(one: Snapshot, other: Snapshot) -> bool:
    """Return whether two snapshots are equal except for number and source."""
    return dataclasses.replace(one, number=other.number, source=other.source) == other


def propose(paths: Paths, snapshot: Snapshot) -> None:
    """Write a snapshot to where programs find it by number; raises OSError."""
    path = paths.snapshot(snapshot.number)
    if not path.parent.is_dir() and os.path.lexists(path.parent):
        state_files.set_aside(path.parent)
    path.parent.mkdir(mode=0o700, exist_ok=True)
    _write(path, snapshot, write_whole)


def accept(paths: Paths, snapshot: Snapshot) -> None:
    """Make a snapshot the accepted one, for every program: the point of no return; raises OSError."""
    _write(paths.accepted, snapshot, write_whole)
    _write_for_readers(paths, snapshot)


def for_readers(paths: Paths) -> Snapshot | None:
    """Return the accepted snapshot without secrets, cached by content; raises SnapshotError."""
    is_closed = os.path.lexists(paths.accepted) and not os.access(paths.accepted, os.R_OK)
    return _read(paths.accepted_for_readers if is_closed else paths.accepted, _decoded_once)


def keep_as_last_good(paths: Paths, snapshot: Snapshot) -> None:
    """Copy an accepted snapshot to where a start with a broken configuration finds it; raises OSError."""
    _write(paths.last_good, snapshot, write_atomically)


def heal_last_good(paths: Paths, snapshot: Snapshot) -> None:
    """Copy an accepted snapshot again if the copy is missing, damaged or another's; raises OSError."""
    if readable(paths.last_good) != snapshot:
        keep_as_last_good(paths, snapshot)


def damaged(paths: Paths) -> Iterator[tuple[Path, str]]:
    """Yield which of the files that programs start with cannot be read, and why."""
    for path in (paths.accepted, paths.last_good):
        try:
            _read(path, _decoded_once)
        except SnapshotError as error:
            yield path, str(error)


def heal(paths: Paths, snapshot: Snapshot) -> None:
    """Write the accepted snapshot again if its files or their directory are lost or damaged.

    Raises OSError. Does nothing if there is another one: another appliance may have this directory by now.
    """
    paths.runtime.mkdir(mode=0o700, exist_ok=True)
    if readable(paths.accepted) is None:
        accept(paths, snapshot)
    _write_for_readers(paths, snapshot)
    if readable(paths.snapshot(snapshot.number)) is None:
        propose(paths, snapshot)


def unused_number(paths: Paths, known: Iterable[Snapshot | None]) -> int:
    """Return a number above those of `known` and of every proposal on disk."""
    return 1 + max([0, *(each.number for each in known if each), *_numbers(paths)])


def prune(paths: Paths, accepted: int) -> None:
    """Remove the files of old snapshots, and of refused ones except the last: its number stays used.

    Raises OSError.
    """
    numbers = _numbers(paths)
    for number in numbers:
        if not accepted - _KEPT <= number <= accepted and number != max(numbers):
            path = paths.snapshot(number)
            state_files.clear_way(path)
            path.unlink(missing_ok=True)


def _numbers(paths: Paths) -> list[int]:
    names = (each.stem for each in paths.snapshot(0).parent.glob("*.json"))
    return [int(name) for name in names if _NUMBER.fullmatch(name)]


def _write(path: Path, snapshot: Snapshot, write: Callable[[Path, bytes], None]) -> None:
    """Write a snapshot unless the file already has it: then a full file system does not matter."""
    data = _LAST_WRITTEN.of(snapshot)
    with contextlib.suppress(FileUnusable):
        if state_files.read(path) == data:
            return
    state_files.clear_way(path)
    write(path, data)


def _write_for_readers(paths: Paths, snapshot: Snapshot) -> None:
    """Write the accepted snapshot for the group, without secrets; no file rather than an outdated one.

    Raises nothing: a full disk here matters only to readers.
    """
    path, shown = paths.accepted_for_readers, without_secrets(snapshot)
    is_open = readers.are_let_in(paths.runtime)
    if is_open and readable(path) == shown:
        return
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
        if is_open:
            write_whole(path, checksummed(encode(shown)), mode=readers.file_mode(paths.runtime))


def readable(path: Path) -> Snapshot | None:
    """Return the snapshot in a file, None for a damaged or missing one."""
    try:
        return _read(path, _decoded_once)
    except SnapshotError:
        return None


def log_settings(path: Path) -> Log | None:
    """Return the log settings of the snapshot in a file, None for a damaged or missing one."""
    try:
        return _read(path, lambda data: decode_log(verified(data)))
    except SnapshotError:
        return None


def _copy(paths: Paths, number: int) -> Snapshot | None:
    copies = (readable(path) for path in (paths.accepted, paths.last_good))
    return next((each for each in copies if each and each.number == number), None)
