"""The one writer of a board: a file in shared memory that others read without a lock."""

import contextlib
import mmap
import os
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from appliance.net.boards.board_layout import (
    HALF,
    HEADER,
    MAGIC,
    RETIRED,
    SEQUENCE,
    BoardError,
    aligned,
    half_header,
)
from appliance.net.boards.board_reader import BoardReader
from appliance.net.files import readers, state_files
from appliance.net.files.atomic_write import write_whole

_LOOK_AGAIN: Final = 1.0  # seconds between two checks that the file still exists


class BoardWriter:
    """The one writer of a board. What the last writer of the path published stays readable.

    On a full file system the last writer's file is used. Without one, nothing is published, and `publish`
    raises until there is room.
    """

    def __init__(self, path: Path, *, capacity: int = 4096) -> None:
        self.path = path
        self._sequence = 0
        self._looked_at = time.monotonic()
        self._gone = False
        # A count that no reader can have seen in a file that is gone or unreadable: otherwise a reader would
        # take the new payload for an old one.
        self._changes = time.time_ns()
        self._capacity = aligned(capacity)
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
        """Publish `payload`; `changed` means that readers' decisions may differ after it.

        Raises OSError if a larger file cannot be created: the previous payload stays readable.
        """
        if changed:
            self._changes += 1
        if not self._named:
            self._capacity = max(self._capacity, aligned(len(payload)))
            self._start_file(payload)
            self._named = True
            return
        if len(payload) > self._capacity:
            self._renew(payload, capacity=aligned(max(len(payload), self._capacity * 2)))
            return
        if self.is_gone():  # perhaps with its directory: a failure is tried again
            with contextlib.suppress(OSError):
                self._renew(payload, capacity=self._capacity)
                return
        self._write(payload)

    def is_gone(self) -> bool:
        """Return whether the file was removed, checked once a second; a publish recreates it."""
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
            self._words[RETIRED] = 0
            raise
        self._gone = False
        old_words[RETIRED] = 1  # if the name was gone, _start_file had no file to mark
        old_words.release()
        old_map.close()

    def close(self, *, unlink: bool = False) -> None:
        """Unmap the file; readers keep their mappings. `unlink` removes the file's name as well."""
        if unlink:
            self.path.unlink(missing_ok=True)
        self._words.release()
        self._map.close()

    def _write(self, payload: bytes | bytearray) -> None:
        sequence = self._sequence + 1
        at = HEADER + (sequence & 1) * (HALF.size + self._capacity)
        self._map[at + HALF.size : at + HALF.size + len(payload)] = bytes(payload)
        self._map[at : at + HALF.size] = half_header(sequence, self._changes, payload)
        # Last, and in one store of an aligned word: from here on readers use the half just filled.
        self._words[SEQUENCE] = self._sequence = sequence

    def _go_on_without_room(self) -> None:
        try:
            with BoardReader(self.path) as last, self.path.open("r+b", buffering=0) as file:
                self._capacity, self._sequence = last.capacity, last.sequence
                self._map = mmap.mmap(file.fileno(), 0)
        except (BoardError, OSError):
            self._map, self._named = mmap.mmap(-1, HEADER), False
        self._words = memoryview(self._map)[:HEADER].cast("Q")

    def _start_file(self, payload: bytes | bytearray) -> None:
        """Give the name to a new file with `payload`; a mark in the old one notifies its readers."""
        scratch = self.path.with_name(self.path.name + ".new")
        descriptor = os.open(scratch, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            os.fchmod(descriptor, readers.file_mode(self.path.parent))
            # Reserved at once: if the file system is full, a store into an unreserved page is SIGBUS, which
            # kills the writer; this call fails with ENOSPC instead.
            os.posix_fallocate(descriptor, 0, HEADER + 2 * (HALF.size + self._capacity))
            self._map = mmap.mmap(descriptor, 0)
        except OSError as error:
            error.filename = str(scratch)
            scratch.unlink(missing_ok=True)
            raise
        finally:
            os.close(descriptor)
        self._words = memoryview(self._map)[:HEADER].cast("Q")
        self._words[0] = MAGIC
        self._write(payload)
        with _retiring(self.path):
            scratch.replace(self.path)


class UnmappedBoardWriter:
    """The one writer of a board that maps no file: a truncated one kills who has it mapped (SIGBUS).

    It costs some system calls per publish, and is for supervisord, whose exit ends everything.
    """

    def __init__(self, path: Path, *, capacity: int) -> None:
        self.path = path
        self._capacity = capacity
        self._begun = False

    def publish(self, payload: bytes | bytearray, *, changed: bool = False) -> None:
        """Publish `payload` as `BoardWriter` does: first in a new file with the right mode, if there is room.

        Raises OSError if a new file is needed and cannot be created.
        """
        if not self._begun:
            with contextlib.suppress(OSError):
                self._start_file(payload)
                return
        with contextlib.suppress(BoardError), BoardReader(self.path, mapped=False) as last:
            if len(payload) <= last.capacity:
                self._write(last, payload, last.published().changes + changed)
                return
        self._start_file(payload)

    def _start_file(self, payload: bytes | bytearray) -> None:
        state_files.clear_way(self.path)
        self._capacity = aligned(max(self._capacity, len(payload) * 2))
        stride = HALF.size + self._capacity
        content = struct.pack("=QQ", MAGIC, 1).ljust(HEADER + stride, b"\0")
        content += half_header(1, time.time_ns(), payload) + payload
        with _retiring(self.path):
            mode = readers.file_mode(self.path.parent)
            write_whole(self.path, content.ljust(HEADER + 2 * stride, b"\0"), mode=mode)
        self._begun = True

    def close(self, *, unlink: bool = False) -> None:
        """Remove the file's name, with `unlink`."""
        if unlink:
            self.path.unlink(missing_ok=True)

    def _write(self, last: BoardReader, payload: bytes | bytearray, changes: int) -> None:
        sequence = last.sequence + 1
        at = HEADER + (sequence & 1) * (HALF.size + last.capacity)
        with self.path.open("r+b", buffering=0) as file:
            os.pwrite(file.fileno(), half_header(sequence, changes, payload) + payload, at)
            os.pwrite(file.fileno(), struct.pack("=Q", sequence), SEQUENCE * 8)


@contextlib.contextmanager
def _retiring(path: Path) -> Iterator[None]:
    """Mark the file that has this name once another one has it."""
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(FileNotFoundError):
            old = stack.enter_context(path.open("r+b", buffering=0))
            stack.callback(os.pwrite, old.fileno(), struct.pack("=Q", 1), RETIRED * 8)
        yield
