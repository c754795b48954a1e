"""State files, read whatever has become of them: no damage to one may keep a program from starting.

A file that cannot be understood is renamed to another name beside it, for the operator to look at, and counts
as missing. Nothing here waits: a FIFO or a device at the path is not opened for long, and a file that someone
writes to is read a few times, not until that ends. What is read between two writes looks whole: only another
look can tell.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, TypeVar

import msgspec

_Value = TypeVar("_Value")

LIMIT: Final = 64 << 20
"""Longest file of ours, bytes: some hundred thousand servers."""

_CHUNK: Final = 64 << 10
_TRIES: Final = 3  # reads of a file that changes meanwhile
_MARK: Final = ".damaged"
_MOST: Final = 9  # set aside beside one name; the last one is then overwritten
_KINDS: Final = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


class FileUnusable(Exception):  # noqa: N818  # a state of the file, not a mistake of ours
    """What is at a path cannot be read as a file; says why, without the path."""


def read(path: Path, *, limit: int = LIMIT) -> bytes | None:
    """Return the content of a regular file, None where there is none; raises FileUnusable."""
    try:
        return _whole(path, limit)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise FileUnusable(error.strerror or str(error)) from error


def unusual(path: Path) -> str:
    """Return what is at a path where that is no regular file, "" for one; raises OSError.

    Called before the open: opening some devices has effects (a tape rewinds).
    """
    return _kind(path.stat().st_mode)


def set_aside(path: Path) -> Path | None:
    """Rename what is at a path, and return the new path; None where that is not possible."""
    for target in _targets(path):
        if target.exists() or target.is_symlink():
            continue
        with contextlib.suppress(OSError):
            return path.rename(target)
        return None
    with contextlib.suppress(OSError):
        return path.replace(_aside(path, _MOST))
    return None


def clear_way(path: Path) -> Path | None:
    """Rename what is at a path and no regular file; return the new path, None where there was nothing."""
    with contextlib.suppress(OSError):
        if not unusual(path):
            return None
    return set_aside(path) if os.path.lexists(path) else None


def decoded(path: Path, kind: type[_Value]) -> _Value | None:
    """Return the value in a JSON file, None where there is none that can be understood."""
    with contextlib.suppress(FileUnusable, ValueError, RecursionError):  # msgspec's errors are ValueErrors
        data = read(path)
        return None if data is None else msgspec.json.decode(data, type=kind)
    return None


def found_aside(directory: Path) -> list[Path]:
    """Return what was set aside in a directory."""
    with contextlib.suppress(OSError):
        return sorted(each for each in directory.iterdir() if _MARK in each.name)
    return []


def _targets(path: Path) -> Iterator[Path]:
    return (_aside(path, number) for number in range(1, _MOST + 1))


def _aside(path: Path, number: int) -> Path:
    return path.with_name(f"{path.name}{_MARK}" + (f"-{number}" if number > 1 else ""))


def _whole(path: Path, limit: int) -> bytes:
    """Return what a file held at one moment."""
    for left in reversed(range(_TRIES)):
        try:
            if (data := _content(path, limit)) is not None:
                return data
        except FileNotFoundError:
            # kubelet removes the folder behind `..data` right after the swap: who was on the way tries again.
            if not left or not path.is_symlink():
                raise
    raise FileUnusable("is written while it is read")


def _content(path: Path, limit: int) -> bytes | None:
    """Return the content of a regular file, None where it has changed meanwhile."""
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
    """Return what each write changes: by the length where the clock of the file system stands still."""
    return status.st_size, status.st_mtime_ns


def _bounded(file: BinaryIO, *, expected: int, limit: int) -> bytes:
    """Return the content of a file of about `expected` bytes, which may grow, up to one byte over `limit`.

    `file.read(limit + 1)` would get memory for as many bytes first. `vrrp` has its memory locked: the kernel
    fills all of it with zeros at once, 64 MB in 10 to 50 ms, in which no advert is sent (mlockall(2)).
    """
    data = file.read(min(expected, limit) + 1)
    while len(data) <= limit and (more := file.read(min(_CHUNK, limit + 1 - len(data)))):
        data += more
    return data


def _kind(mode: int) -> str:
    if stat.S_ISREG(mode):
        return ""
    return next((name for test, name in _KINDS if test(mode)), "no file")
