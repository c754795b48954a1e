"""The readers of a board: a file in shared memory with one writer, for which they never wait."""

import contextlib
import mmap
import os
import sys
from io import FileIO
from pathlib import Path
from typing import Final

from appliance.net.boards.board_layout import (
    HALF,
    HEADER,
    MAGIC,
    NUMBERS,
    RETIRED,
    SEQUENCE,
    BoardError,
    Published,
    checksum_of,
)
from appliance.net.closable import Closable
from appliance.net.files import state_files

_MOST: Final = 1 << 20
"""Bytes of a board that are copied."""

_TRIES: Final = 100
"""Reads of a half with the same pointer before it counts as damaged. A store is visible at once."""


class BoardReader(Closable):
    """A reader of a board; reopens the path when the writer has replaced the board by a larger file.

    Without `mapped` it has a copy of the file as it was when it was opened.
    """

    def __init__(self, path: Path, *, mapped: bool = True) -> None:
        self.path = path
        self._mapped = mapped
        self._map: mmap.mmap | None = None
        self._open()

    @property
    def sequence(self) -> int:
        """Return how many payloads were published into this file."""
        return self._words[SEQUENCE]

    @property
    def changes(self) -> int:
        """Return how often a publish was marked as changing decisions. Cheap enough for every connection.

        It is a hint, as no checksum is checked: if it differs from the last count of `published`, call
        `published`. A new count not yet visible is visible at the next call.
        """
        words = self._words
        if words[RETIRED]:
            self._open()
            words = self._words
        return words[self._changes_at[words[SEQUENCE] & 1]]

    @property
    def capacity(self) -> int:
        """Return how many bytes of payload one half can hold."""
        return self._stride - HALF.size

    def published(self) -> Published:
        """Return the payload last published, whole, with its count; empty before the first publish.

        Raises BoardError if the file is damaged, or was replaced by one that cannot be opened.
        """
        if self._words[RETIRED]:
            self._open()
        tries = 0
        while tries < _TRIES:
            pointer = self._words[SEQUENCE]
            found = self._half(pointer)
            if found is not None:
                return found
            tries = tries + 1 if self._words[SEQUENCE] == pointer else 0
        raise BoardError(f"{self.path}: damaged")

    def read(self) -> bytes:
        """Return the payload last published, whole; empty before the first publish; raises BoardError."""
        return self.published().payload

    def follow(self) -> bool:
        """Open the path again if another file has it now, and return whether; raises BoardError.

        A writer marks a replaced file as retired. It cannot mark a removed one, so a long-lived reader calls
        this periodically.
        """
        with contextlib.suppress(FileNotFoundError):
            if _identity(os.stat(self.path)) != self._file:  # noqa: PTH116  # often asked; no object for it
                self._open()
                return True
        return False

    def close(self) -> None:
        """Unmap the file; another call is harmless."""
        if self._map is not None:
            self._words.release()
            self._map.close()
            self._map = None

    def _half(self, pointer: int) -> Published | None:
        """Return the content of the half that the pointer names; None if incomplete or another publish's."""
        at = HEADER + (pointer & 1) * self._stride
        start = at + HALF.size
        numbers: bytes = self._map[at:start]  # type: ignore[index]  # open since __init__
        sequence, changes, length, checksum = HALF.unpack(numbers)
        if sequence != pointer or length > self.capacity:
            return None
        payload: bytes = self._map[start : start + length]  # type: ignore[index]  # the same
        if checksum_of(numbers[: NUMBERS.size], payload) != checksum:
            return None
        return Published(payload, changes)

    def _open(self) -> None:
        try:
            if unusual := state_files.unusual(self.path):
                raise BoardError(f"{self.path}: is {unusual}, not a file")
            with self.path.open("rb", buffering=0) as file:
                found = _identity(os.fstat(file.fileno()))
                mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) if self._mapped else _copy(file)
        except (OSError, ValueError) as error:
            raise BoardError(f"{self.path}: {error}") from error
        stride = (len(mapping) - HEADER) // 2
        if stride < HALF.size or stride % 8 or int.from_bytes(mapping[:8], sys.byteorder) != MAGIC:
            mapping.close()
            raise BoardError(f"{self.path}: not a board of this version")
        self.close()
        self._map, self._file, self._stride = mapping, found, stride
        self._words = memoryview(mapping)[: HEADER + 2 * stride].cast("Q")
        self._changes_at = (HEADER + 8) // 8, (HEADER + stride + 8) // 8


def _copy(file: FileIO) -> mmap.mmap:
    copied = mmap.mmap(-1, min(os.fstat(file.fileno()).st_size, _MOST))
    file.readinto(copied)
    return copied


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
