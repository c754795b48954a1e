"""The archive of a ticket: a new file, for its owner alone, of bounded size."""

import io
import os
import tarfile
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

MOST_PART: Final = 4 << 20
"""Longest part, bytes; of a longer one the beginning is kept."""

MOST: Final = 64 << 20
"""Longest sum of all parts, bytes, before they are compressed."""

_READ_WRITE: Final = 0o600


class ArchiveFull(Exception):  # noqa: N818  # an outcome, told with the part that is left out
    """There is no room left."""


class Archive:
    """A tar file, compressed, at a path where nothing was; raises OSError where something is.

    Where the block ends with an error the file is removed: half an archive would be taken for a whole one.
    """

    def __init__(self, path: Path, *, folder: str, now: float) -> None:
        self._path = path
        self._folder = folder
        self._now = now
        self._left = MOST
        descriptor = os.open(
            path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, _READ_WRITE
        )
        self._file: IO[bytes] = os.fdopen(descriptor, "wb")
        self._tar = tarfile.open(fileobj=self._file, mode="w:gz")  # noqa: SIM115  # closed by __exit__

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        with self._file:
            self._tar.close()
        if kind is not None:
            self._path.unlink(missing_ok=True)

    def add(self, name: str, text: str) -> bool:
        """Write one part; return whether it was cut. Raises ArchiveFull, OSError."""
        data = text.encode(errors="backslashreplace")
        kept = data[:MOST_PART]
        if len(kept) > self._left:
            raise ArchiveFull(f"the archive is full: {MOST >> 20} MB before it is compressed")
        self._left -= len(kept)
        self._put(name, kept)
        return len(data) > len(kept)

    def add_index(self, name: str, text: str) -> None:
        """Write the part that tells of all others: there is always room for it. Raises OSError."""
        self._put(name, text.encode(errors="backslashreplace"))

    def _put(self, name: str, data: bytes) -> None:
        entry = tarfile.TarInfo(f"{self._folder}/{name}")
        entry.size, entry.mtime, entry.mode = len(data), int(self._now), _READ_WRITE
        self._tar.addfile(entry, io.BytesIO(data))
