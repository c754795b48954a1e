"""Heartbeats: a file of four words in shared memory per process, which shows that its main loop runs.

A beat is one store of an aligned word: no system call, no lock. The watchdog reads it. The file outlives its
process, so that a restart needs no room on a full file system. Layout, native byte order::

0   8  magic and layout version
    8   8  process id, 0 before it is known
    16  8  start time of that process, as in proc_pid_stat(5): a number may be used again, this pair is not
    24  8  the last beat: CLOCK_MONOTONIC, nanoseconds; 0 before the first
"""

import contextlib
import mmap
import os
import struct
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import Final

from appliance.net.files import state_files
from appliance.net.process.process_stat import process_stat

PAUSE: Final = 1.0
"""Maximum seconds between the beats of a loop that runs."""

RENEW: Final = 10.0
"""Seconds between two checks that the file is still at its path."""

_MAGIC: Final = int.from_bytes(b"LBHEART1", "little")
_WORDS: Final = struct.Struct("=4Q")
_EXITED: Final = "ZX"
_PID: Final = 1
_STARTED: Final = 2
_BEAT: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessHeartbeat:
    """A heartbeat: `started` in ticks since boot, `beat` in nanoseconds of CLOCK_MONOTONIC."""

    pid: int
    started: int
    beat: int

    @property
    def is_alive(self) -> bool:
        """Return whether that process still runs, and its number was not reused."""
        return self.pid > 0 and started(self.pid) == self.started


class Heartbeat:
    """The heartbeat of this process, or of `pid`; `trouble` is why others cannot see it, None if they can."""

    def __init__(self, path: Path, *, pid: int | None = None) -> None:
        self.path = path
        self._pid = os.getpid() if pid is None else pid
        self.trouble: str | None = None
        self._renew_at = 0.0
        self._begin()

    def _begin(self) -> None:
        state_files.clear_way(self.path)
        try:
            self._map = _mapped(self.path)
            self._inode = self.path.stat().st_ino
        except OSError as error:
            self.trouble = f"{self.path}: {error.strerror}"
            self._map, self._inode = mmap.mmap(-1, _WORDS.size), 0
        self._words = memoryview(self._map)[: _WORDS.size].cast("Q")
        self._words[_PID] = 0
        self._words[_BEAT] = 0
        self._write_identity()

    def _write_identity(self) -> None:
        self._words[0] = _MAGIC
        self._words[_STARTED] = started(self._pid)
        self._words[_PID] = self._pid

    def beat(self, now: float) -> None:
        """Record a turn of the loop; `now` is monotonic seconds."""
        if now >= self._renew_at:
            self._renew_at = now + RENEW
            self._renew()
        self._words[_BEAT] = int(now * 1e9)

    def _renew(self) -> None:
        """Create the file again if it was removed, perhaps with its directory."""
        try:
            if self.path.stat().st_ino == self._inode:
                self._write_identity()  # it may have been damaged
                return
        except OSError:
            if not self.path.parent.is_dir():
                return
        self.close()
        self.trouble = None
        self._begin()

    def close(self, *, unlink: bool = False) -> None:
        """Unmap the file; `unlink` removes its name as well."""
        if unlink:
            self.path.unlink(missing_ok=True)
        self._words.release()
        self._map.close()


def prepare(path: Path) -> None:
    """Create or empty the file for a process that is about to start; raises OSError."""
    state_files.clear_way(path)
    with _reserved(path) as file:
        file.write(_WORDS.pack(_MAGIC, 0, 0, 0))


def expect(path: Path, pid: int) -> None:
    """Name a child just started as the owner, so that one that hangs at once is noticed.

    Raises OSError. The child writes the same words itself when it begins.
    """
    prepare(path)
    with _reserved(path) as file:
        file.write(_WORDS.pack(_MAGIC, pid, started(pid), 0))


def make_room(path: Path) -> None:
    """Create the file if there is none; the words of a running process stay. Raises OSError."""
    _reserved(path).close()


def read(path: Path) -> ProcessHeartbeat | None:
    """Return the content of a heartbeat file, None if there is none."""
    try:
        if state_files.unusual(path):
            return None
        with path.open("rb", buffering=0) as file:
            magic, pid, started_at, beat = _WORDS.unpack(file.read(_WORDS.size))
    except (OSError, struct.error):
        return None
    return ProcessHeartbeat(pid=pid, started=started_at, beat=beat) if magic == _MAGIC else None


def started(pid: int) -> int:
    """Return when a process started, in the kernel's ticks; 0 if it does not exist, or has exited."""
    with contextlib.suppress(OSError):
        found = process_stat(pid)
        return 0 if found.state in _EXITED else found.started
    return 0


def _mapped(path: Path) -> mmap.mmap:
    with _reserved(path) as file:
        return mmap.mmap(file.fileno(), _WORDS.size)


def _reserved(path: Path) -> FileIO:
    """Return the file with room for the words.

    supervisord writes to it and never maps it: a truncated file kills who has it mapped (SIGBUS).
    """
    file = FileIO(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600), "r+")
    try:
        # Reserved at once: on a full file system a store into a sparse file is SIGBUS, too.
        os.posix_fallocate(file.fileno(), 0, _WORDS.size)
    except OSError:
        file.close()
        raise
    return file
