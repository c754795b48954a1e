"""Boards: small mmap files with one writer and any number of readers that need no lock.

A board holds two halves. The writer fills the half that nobody is pointed at, then moves the pointer with
one aligned store of eight bytes, so a reader never waits for a writer and a writer killed at any instruction
leaves the last published state readable.

No reader relies on the order in which it sees the writer's stores: a processor such as arm64 may show them in
any other one. Each half says which publish it is, has the count of changes that belongs to its payload, and a
checksum over all of that. A reader takes a half only where the checksum is right and the number is the
pointer's, and else starts over. So payload and count are of one publish, whenever a reader comes; one that
keeps this count can never take an older payload for it, and misses no change.

Layout, native byte order (a board never leaves its machine)::

    0   8  magic and layout version
    8   8  sequence: the pointer, grows with every publish; its lowest bit is the half that is valid
    16  8  retired: 1 when another file has taken this one's name
    24  .. reserved
    64  .. half 0, then half 1, each:
           0   8  sequence of this publish
           8   8  changes: grows when the writer says that the readers' decisions may change
           16  8  length of the payload
           24  8  CRC-32 of the three above and the payload
           32  .. payload
"""

import contextlib
import mmap
import os
import struct
import sys
import time
import zlib
from pathlib import Path
from typing import Final, NamedTuple, Self

from appliance.net.files import readers, state_files

MAGIC: Final = int.from_bytes(b"LBBOARD2", "little")
_HEADER: Final = 64
_SEQUENCE: Final = 1
_RETIRED: Final = 2
_NUMBERS: Final = struct.Struct("=QQQ")
_HALF: Final = struct.Struct("=QQQQ")
_LOOK_AGAIN: Final = 1.0  # seconds between two looks whether the file is still there
_TRIES: Final = 100
"""Looks at a half that the pointer does not leave, until it counts as damaged; a store is seen within one."""


class BoardError(Exception):
    """The file is missing, damaged, or not a board of this layout."""


class Published(NamedTuple):
    """A payload, and the count of changes that belongs to it."""

    payload: bytes
    changes: int


class BoardWriter:
    """The one writer of a board. Opening a path anew keeps what its last writer published readable.

    Without room for a new file it goes on with the last writer's, and where there is none either nothing is
    published yet: `publish` raises until there is room.
    """

    def __init__(self, path: Path, *, capacity: int = 4096) -> None:
        self.path = path
        self._sequence = 0
        self._looked_at = time.monotonic()
        self._gone = False
        # No count that a reader may know already from a file that is gone or cannot be read.
        self._changes = time.time_ns()
        self._capacity = _aligned(capacity)
        payload = b""
        with contextlib.suppress(BoardError), BoardReader(path) as last:
            payload, self._changes = last.published()
            self._capacity = max(self._capacity, last.capacity)
        self._named = True
        self._map: mmap.mmap
        self._words: memoryview
        state_files.clear_way(path)
        try:
            self._start_file(payload)
        except OSError:
            self._go_on_without_room()

    def publish(self, payload: bytes | bytearray, *, changed: bool = False) -> None:
        """Show `payload` to the readers; `changed` says that their decisions may differ after it.

        Raises OSError when a larger file cannot be made: what was published before stays readable.
        """
        if changed:
            self._changes += 1
        if not self._named:
            self._capacity = max(self._capacity, _aligned(len(payload)))
            self._start_file(payload)
            self._named = True
            return
        if len(payload) > self._capacity:
            self._renew(payload, capacity=_aligned(max(len(payload), self._capacity * 2)))
            return
        if self.is_gone():  # with its directory, perhaps: what cannot be made again now is tried again
            with contextlib.suppress(OSError):
                self._renew(payload, capacity=self._capacity)
                return
        self._write(payload)

    def is_gone(self) -> bool:
        """Look now and then whether somebody has removed the file; a publish makes it again."""
        now = time.monotonic()
        if now - self._looked_at >= _LOOK_AGAIN:
            self._looked_at = now
            self._gone = not self.path.exists()
        return self._gone

    def _renew(self, payload: bytes | bytearray, *, capacity: int) -> None:
        old_map, old_words, old_capacity, sequence = self._map, self._words, self._capacity, self._sequence
        self._capacity = capacity
        try:
            self._start_file(payload)
        except OSError:
            self._map, self._words, self._capacity, self._sequence = (
                old_map,
                old_words,
                old_capacity,
                sequence,
            )
            self._words[_RETIRED] = 0
            raise
        self._gone = False
        old_words[_RETIRED] = 1  # where the name is gone, nobody else has said so
        old_words.release()
        old_map.close()

    def close(self, *, unlink: bool = False) -> None:
        """Let go of the mapping; readers keep theirs. `unlink` removes the name as well."""
        if unlink:
            self.path.unlink(missing_ok=True)
        self._words.release()
        self._map.close()

    def _write(self, payload: bytes | bytearray) -> None:
        sequence = self._sequence + 1
        at = _HEADER + (sequence & 1) * (_HALF.size + self._capacity)
        numbers = _NUMBERS.pack(sequence, self._changes, len(payload))
        self._map[at + _HALF.size : at + _HALF.size + len(payload)] = bytes(payload)
        self._map[at : at + _HALF.size] = numbers + struct.pack("=Q", _checksum(numbers, payload))
        self._words[_SEQUENCE] = self._sequence = sequence

    def _go_on_without_room(self) -> None:
        try:
            with BoardReader(self.path) as last, self.path.open("r+b", buffering=0) as file:
                self._capacity, self._sequence = last.capacity, last.sequence
                self._map = mmap.mmap(file.fileno(), 0)
        except (BoardError, OSError):
            self._map, self._named = mmap.mmap(-1, _HEADER), False
        self._words = memoryview(self._map)[:_HEADER].cast("Q")

    def _start_file(self, payload: bytes | bytearray) -> None:
        """Give the name to a new file that holds `payload`, then tell readers of the old one to move."""
        scratch = self.path.with_name(self.path.name + ".new")
        descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, readers.file_mode(self.path.parent))
            # Reserved at once: on a full file system a sparse file would kill its writer by SIGBUS.
            os.posix_fallocate(descriptor, 0, _HEADER + 2 * (_HALF.size + self._capacity))
            self._map = mmap.mmap(descriptor, 0)
        except OSError as error:
            error.filename = str(scratch)
            scratch.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map)[:_HEADER].cast("Q")
        self._words[0] = MAGIC
        self._write(payload)
        with contextlib.ExitStack() as stack:
            with contextlib.suppress(FileNotFoundError):
                old = stack.enter_context(self.path.open("r+b", buffering=0))
                stack.callback(os.pwrite, old.fileno(), struct.pack("Q", 1), _RETIRED * 8)
            scratch.replace(self.path)


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
        """Number of publishes into this file."""
        return self._words[_SEQUENCE]

    @property
    def changes(self) -> int:
        """How often a publish was marked as changing decisions. Cheap: look at it often.

        Only a hint, as it is not checked: compare it with the count that `published` gave. Where it
        differs, ask `published`; where it should and does not yet, it does at the next look.
        """
        words = self._words
        if words[_RETIRED]:
            self._open()
            words = self._words
        return words[self._changes_at[words[_SEQUENCE] & 1]]

    @property
    def capacity(self) -> int:
        """Bytes that one half can hold."""
        return self._stride - _HALF.size

    def published(self) -> Published:
        """Return the payload last published, whole, with its count; empty before the first publish.

        Raises BoardError where the file is damaged, or another took its name and cannot be opened.
        """
        if self._words[_RETIRED]:
            self._open()
        tries = 0
        while tries < _TRIES:
            pointer = self._words[_SEQUENCE]
            found = self._half(pointer)
            if found is not None:
                return found
            tries = tries + 1 if self._words[_SEQUENCE] == pointer else 0
        raise BoardError(f"{self.path}: damaged")

    def read(self) -> bytes:
        """Return the payload last published, whole; empty before the first publish; raises BoardError."""
        return self.published().payload

    def follow(self) -> None:
        """Move to the file that has the name now, where it is another one; raises BoardError.

        A writer says so in the file that it replaces, and cannot where somebody has removed it.
        """
        with contextlib.suppress(FileNotFoundError):
            if _identity(os.stat(self.path)) != self._file:  # noqa: PTH116  # often asked; no object for it
                self._open()

    def close(self) -> None:
        """Let go of the mapping."""
        if self._map is not None:
            self._words.release()
            self._map.close()
            self._map = None

    def _half(self, pointer: int) -> Published | None:
        """Return the half that the pointer names; None where it is not, or not yet, of that publish."""
        at = _HEADER + (pointer & 1) * self._stride
        start = at + _HALF.size
        numbers: bytes = self._map[at:start]  # type: ignore[index]  # open since __init__
        sequence, changes, length, checksum = _HALF.unpack(numbers)
        if sequence != pointer or length > self.capacity:
            return None
        payload: bytes = self._map[start : start + length]  # type: ignore[index]  # the same
        if _checksum(numbers[: _NUMBERS.size], payload) != checksum:
            return None
        return Published(payload, changes)

    def _open(self) -> None:
        try:
            if unusual := state_files.unusual(self.path):
                raise BoardError(f"{self.path}: is {unusual}, not a file")
            with self.path.open("rb") as file:
                found = _identity(os.fstat(file.fileno()))
                mapping = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        except (OSError, ValueError) as error:
            raise BoardError(f"{self.path}: {error}") from error
        stride = (len(mapping) - _HEADER) // 2
        if stride < _HALF.size or stride % 8 or int.from_bytes(mapping[:8], sys.byteorder) != MAGIC:
            mapping.close()
            raise BoardError(f"{self.path}: not a board of this version")
        self.close()
        self._map, self._file, self._stride = mapping, found, stride
        self._words = memoryview(mapping)[: _HEADER + 2 * stride].cast("Q")
        self._changes_at = (_HEADER + 8) // 8, (_HEADER + stride + 8) // 8


def _aligned(size: int) -> int:
    """Return a capacity with which the numbers of both halves are at multiples of eight."""
    return (size + 7) & ~7


def _checksum(numbers: bytes, payload: bytes | bytearray) -> int:
    return zlib.crc32(payload, zlib.crc32(numbers))


def _identity(found: os.stat_result) -> tuple[int, int]:
    return found.st_dev, found.st_ino
