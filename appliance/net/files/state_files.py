"""State files, read in whatever condition: a damaged one must not prevent a program from starting.

An invalid file is renamed within its directory, for the operator to examine, and counts as missing. Nothing
here blocks: a FIFO or a device at the path is not opened for long, and a file that is being written is read a
few times, not until the writing ends. Content read between two writes looks whole: only another read shows
whether it is.
"""

import contextlib
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import msgspec

_Value = TypeVar("_Value")

LIMIT: Final = 64 << 20
"""Longest file of ours, bytes: some hundred thousand servers."""

_CHUNK: Final = 64 << 10
_TRIES: Final = 3  # reads of a file that changes meanwhile
_MARK: Final = ".damaged"
_MOST: Final = 9  # files set aside per name; then the last one is overwritten
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class FileUnusable(Exception):  # noqa: N818  # a state of the file, not a mistake of ours
    """A path cannot be read as a file; has the reason, without the path."""


def read(path: Path, *, limit: int = LIMIT) -> bytes | None:
    """Return the content of a regular file, None if it does not exist; raises FileUnusable."""
    try:
        return _whole(path, limit)
    except FileNotFoundError:
        return None
    except PermissionError as error:
        raise FileUnusable(f"{error.strerror} for user {os.geteuid()}") from error
    except OSError as error:
        raise FileUnusable(error.strerror or str(error)) from error


def unusual(path: Path) -> str:
    """Return what a path is, "" for a regular file; raises OSError. Opens nothing: a tape would rewind."""
    return _kind(path.stat().st_mode)


def set_aside(path: Path) -> Path | None:
    """Rename a path, and return the new one; None if that is not possible."""
    for target in (_aside(path, number) for number in range(1, _MOST + 1)):
        if target.exists() or target.is_symlink():
            continue
        with contextlib.suppress(OSError):
            return path.rename(target)
        return None
    with contextlib.suppress(OSError):
        return path.replace(_aside(path, _MOST))
    return None


def clear_way(path: Path) -> Path | None:
    """Rename a path that is not a regular file; return the new one, None if nothing was in the way."""
    with contextlib.suppress(OSError):
        if not unusual(path):
            return None
    return set_aside(path) if os.path.lexists(path) else None


def decoded(path: Path, kind: type[_Value]) -> _Value | None:
    """Return the value in a JSON file, None without a valid one."""
    with contextlib.suppress(FileUnusable, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        data = read(path)
        return None if data is None else msgspec.json.decode(data, type=kind)
    return None


def found_aside(directory: Path) -> list[Path]:
    """Return the files set aside in a directory."""
    with contextlib.suppress(OSError):
        return sorted(each for each in directory.iterdir() if _MARK in each.name)
    return []


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}{_MARK}" + (f"-{number}" if number > 1 else ""))


def _whole(path: Path, limit: int) -> bytes:
    """Return the content of a file at one moment."""
    for left in reversed(range(_TRIES)):
        try:
            if (data := _content(path, limit)) is not None:
                return data
        except FileNotFoundError:
            # kubelet removes the folder behind `..data` right after the swap: an open in progress must be
            # repeated.
            if not left or not path.is_symlink():
                raise
    raise FileUnusable("is written while it is read")


def _content(path: Path, limit: int) -> bytes | None:
    """Return the content of a regular file, None if it changed meanwhile."""
    if found := unusual(path):
        raise FileUnusable(f"is {found}, not a file")
    # O_NONBLOCK: since `unusual` it may have become a FIFO, whose open waits for a writer (fifo(7)).
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        before = os.fstat(descriptor)
        if kind := _kind(before.st_mode):
            raise FileUnusable(f"is {kind}, not a file")
        data = _bounded(file, expected=before.st_size, limit=limit) if before.st_size <= limit else b""
        after = os.fstat(descriptor)
    if len(data) > limit or before.st_size > limit:
        raise FileUnusable(f"is larger than {limit} bytes")
    return data if _written(before) == _written(after) else None


def _written(status: os.stat_result) -> tuple[int, int]:
    """Return a value that each write changes: the length serves if the file system's clock stands still."""
    return status.st_size, status.st_mtime_ns


def _bounded(file: BinaryIO, *, expected: int, limit: int) -> bytes:
    """Return the content of a file of about `expected` bytes, which may grow, up to one byte over `limit`.

    `file.read(limit + 1)` would first allocate as many bytes. `vrrp` has its memory locked: the kernel fills
    all of it with zeros at once, 64 MB in 10 to 50 ms, in which no advert is sent (mlockall(2)).
    """
    data = file.read(min(expected, limit) + 1)
    while len(data) <= limit and (more := file.read(min(_CHUNK, limit + 1 - len(data)))):
        data += more
    return data


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return ""
    return next((name for test, name in _KINDS if test(mode)), "no file")
