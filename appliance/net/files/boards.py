"""Boards: small mmap files with one writer and any number of readers that need no lock.

A board holds two halves. The writer fills the half that nobody is pointed at, then moves the pointer with
one aligned store of eight bytes, so a reader never waits for a writer and a writer killed at any instruction
leaves the last published state readable. A reader copies the half that the pointer names and looks at the
pointer again: if it has moved on, that half may be in use again, and the reader starts over.

Layout, native byte order (a board never leaves its machine)::

    0   8  magic and layout version
    8   8  sequence: 2n + which half is valid, grows with every publish
    16  8  changes: grows when the writer says that the readers' decisions may change
    24  8  capacity of one half, bytes
    32  8  retired: 1 when a larger file has taken this one's name
    40  8  length of half 0      48  8  length of half 1
    64  .. half 0, then half 1
"""

import contextlib
import mmap
import os
import struct
from pathlib import Path
from typing import Final, Self

MAGIC: Final = int.from_bytes(b"LBBOARD1", "little")
_HEADER: Final = 64
_SEQUENCE: Final = 1
_CHANGES: Final = 2
_CAPACITY: Final = 3
_RETIRED: Final = 4
_LENGTHS: Final = (5, 6)


class BoardError(Exception):
    """The file is missing, or is not a board of this layout."""


class BoardWriter:
    """The one writer of a board. Opening a path anew keeps what its last writer published readable."""

    def __init__(self, path: Path, *, capacity: int = 4096) -> None:
        self.path = path
        self._sequence = 0
        self._changes = 0
        self._capacity = capacity
        payload = b""
        with contextlib.suppress(BoardError), BoardReader(path) as last:
            payload = last.read()
            self._sequence, self._changes = last.sequence, last.changes
            self._capacity = max(capacity, last.capacity)
        self._map, self._words = self._start_file(payload)

    def publish(self, payload: bytes | bytearray, *, changed: bool = False) -> None:
        """Show `payload` to the readers; `changed` says that their decisions may differ after it.

        Raises OSError when a larger file cannot be made: what was published before stays readable.
        """
        if changed:
            self._changes += 1
        if len(payload) <= self._capacity:
            self._write(payload)
            return
        old_map, old_words, capacity, sequence = self._map, self._words, self._capacity, self._sequence
        self._capacity = max(len(payload), self._capacity * 2)
        try:
            self._start_file(payload)
        except OSError:
            self._map, self._words, self._capacity, self._sequence = old_map, old_words, capacity, sequence
            self._words[_RETIRED] = 0
            raise
        old_words.release()
        old_map.close()

    def close(self, *, unlink: bool = False) -> None:
        """Let go of the mapping; readers keep theirs. `unlink` removes the name as well."""
        if unlink:
            self.path.unlink(missing_ok=True)
        self._words.release()
        self._map.close()

    def _write(self, payload: bytes | bytearray) -> None:
        half = (self._sequence + 1) & 1
        at = _HEADER + half * self._capacity
        self._map[at : at + len(payload)] = bytes(payload)
        self._words[_LENGTHS[half]] = len(payload)
        self._words[_CHANGES] = self._changes
        self._sequence += 1
        self._words[_SEQUENCE] = self._sequence

    def _start_file(self, payload: bytes | bytearray) -> tuple[mmap.mmap, memoryview]:
        """Give the name to a new file that holds `payload`, then tell readers of the old one to move."""
        scratch = self.path.with_name(self.path.name + ".new")
        descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            # Reserved at once: on a full file system a sparse file would kill its writer by SIGBUS.
            os.posix_fallocate(descriptor, 0, _HEADER + 2 * self._capacity)
            self._map = mmap.mmap(descriptor, 0)
        except OSError as error:
            error.filename = str(scratch)
            scratch.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map)[:_HEADER].cast("Q")
        self._words[0], self._words[_CAPACITY] = MAGIC, self._capacity
        self._write(payload)
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(FileNotFoundError):
                old = stack.enter_context(self.path.open("r+b", buffering=0))
                stack.callback(os.pwrite, old.fileno(), struct.pack("Q", 1), _RETIRED * 8)
            scratch.replace(self.path)
        return self._map, self._words


class BoardReader:
    """A reader of a board; follows the name when the writer had to make a larger file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._map: mmap.mmap | None = None
        self._open()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def sequence(self) -> int:
        """Number of publishes, over all writers this board has had."""
        return self._words[_SEQUENCE]

    @property
    def changes(self) -> int:
        """Number of publishes that were marked as changing decisions. Cheap: look at it often."""
        if self._words[_RETIRED]:
            self._open()
        return self._words[_CHANGES]

    @property
    def capacity(self) -> int:
        """Bytes that one half can hold."""
        return self._words[_CAPACITY]

    def read(self) -> bytes:
        """Return the payload last published, whole; empty before the first publish."""
        if self._words[_RETIRED]:
            self._open()
        while True:
            before = self._words[_SEQUENCE]
            half = before & 1
            at = _HEADER + half * self.capacity
            payload = self._map[at : at + self._words[_LENGTHS[half]]]  # type: ignore[index]  # open since __init__
            # As soon as the writer has published once more, its next publish may be writing over this half.
            if self._words[_SEQUENCE] == before:
                return payload

    def close(self) -> None:
        """Let go of the mapping."""
        if self._map is not None:
            self._words.release()
            self._map.close()
            self._map = None

    def _open(self) -> None:
        try:
            with self.path.open("rb") as file:
                mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise BoardError(f"{self.path}: {error}") from error
        words = memoryview(mapping)[:_HEADER].cast("Q") if len(mapping) >= _HEADER else None
        if words is None or words[0] != MAGIC:
            if words is not None:
                words.release()
            mapping.close()
            raise BoardError(f"{self.path}: not a board of this version")
        self.close()
        self._map, self._words = mapping, words
