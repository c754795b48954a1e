"""Files that appear whole or not at all: written under another name, synced to the disk, then renamed.

rename(2) replaces a name in one step, so readers and a crash see the old content or the new. Without the
fsync(2) before it, a power cut could leave the new name with no content: file systems may write the name
first. The rename itself is on the disk once the directory is synced.
"""

import contextlib
import glob
import os
from collections.abc import Callable
from pathlib import Path


def write_atomically(path: Path, data: bytes, *, mode: int = 0o600, group: int = -1) -> None:
    """Replace the content of `path`, on the disk when this returns; after OSError the old content remains.

    Mode and group (-1: that of the process) are set before the rename, so the new content never appears
    without them. O_TMPFILE would need no temporary name, but linkat(2) cannot replace an existing name.
    """
    _replace(path, data, mode, group, os.fsync)
    with contextlib.suppress(OSError):  # the content is already new, and OSError would mean that it is not
        _sync_directory(path.parent)


def write_whole(path: Path, data: bytes, *, mode: int = 0o600) -> None:
    """Replace the content without waiting for the disk: after a power cut the file may be empty.

    For the runtime directory, which does not outlive a start of the machine, and for programs that must not
    wait: fsync(2) on a busy disk takes seconds.
    """
    _replace(path, data, mode, -1, lambda _: None)


def _replace(path: Path, data: bytes, mode: int, group: int, sync: Callable[[int], None]) -> None:
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)
        descriptor = os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            os.fchown(descriptor, -1, group)
            os.fchmod(descriptor, mode)
            file.flush()
            sync(descriptor)
        scratch.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink()
        error.filename, error.filename2 = str(path), None  # an error of write names no file
        raise


def remove_scratch_files(path: Path) -> None:
    """Remove a power cut's temporary files while no other process writes this file; raises OSError."""
    for each in path.parent.glob(f".{glob.escape(path.name)}.*"):
        if each.suffix[1:].isdecimal():
            each.unlink(missing_ok=True)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
