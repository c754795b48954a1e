"""The tracker, a child process of `vrrp` for work that may block: tracked checks and notify commands.

Lines go both ways over a socket pair whose descriptor number is the child's last argument. When the child
exits, another one is started, after a pause that grows while children exit early. The states that it reported
hold until its successor reports others.
"""

import contextlib
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from appliance.net.loop.loop import Loop
from appliance.wire.lines.control import ControlError
from appliance.wire.lines.line_buffer import LineBuffer

_CHUNK: Final = 65536
_LONGEST_BACKLOG: Final = 1 << 20  # most bytes queued for a child that does not read
_SHORTEST_PAUSE: Final = 0.25
_LONGEST_PAUSE: Final = 10.0
_SETTLED: Final = 30.0  # a child that lived this long did not fail to start
_GRACE: Final = 2.0  # from the end of its socket to the end of the child
_LOOK_AGAIN: Final = 0.1
_ITS_SOCKET: Final = 3

Line = Callable[[bytes], None]


class TrackerChild:
    """One child at a time. `greeting` returns the first lines for a new one, `on_line` gets its lines.

    `on_start` is called with the process id of a started child, `on_end` with the reason when one has exited.
    The loop calls `tick` at `deadline`.
    """

    def __init__(
        self,
        loop: Loop,
        words: Sequence[str],
        *,
        greeting: Callable[[], bytes],
        on_line: Line,
        on_start: Callable[[int], None],
        on_end: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._words = (sys.executable, *words)
        self._greeting = greeting
        self._on_line = on_line
        self._on_start = on_start
        self._on_end = on_end
        self._socket: socket.socket | None = None
        self._lines = LineBuffer()
        self._backlog = bytearray()
        self._unsent = bytearray()
        self._pid = 0
        self._pause = _SHORTEST_PAUSE
        self._started_at = 0.0
        self._start_at: float | None = None
        self._wanted = False
        self._leaving: dict[int, float] = {}
        self._reap_at: float | None = None
        loop.add(self)

    @property
    def pid(self) -> int:
        """Return the child's process id, 0 without one."""
        return self._pid

    @property
    def deadline(self) -> float | None:
        """Return when to start a child or to reap an exited one."""
        return min((at for at in (self._start_at, self._reap_at) if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Start a child if due, and reap earlier ones."""
        if self._reap_at is not None and now >= self._reap_at:
            self._reap(now)
        if self._start_at is not None and now >= self._start_at:
            self._start(now)

    def require(self) -> None:
        """Keep a child running from now on."""
        if not self._wanted:
            self._wanted = True
            self._start_at = 0.0

    def greet(self) -> None:
        """Send the greeting again to the running child; a later one gets it when it starts."""
        if self._socket is not None:
            self._put(self._greeting())

    def send(self, line: bytes) -> None:
        """Send a line to the child, or to the next one if none runs now."""
        if self._socket is not None:
            self._put(line)
        elif self._wanted and len(self._unsent) < _LONGEST_BACKLOG:
            self._unsent += line

    def close(self) -> None:
        """Close the child's socket, which ends the child, and start no other."""
        self._loop.remove(self)
        self._disconnect()

    def _start(self, now: float) -> None:
        self._start_at = None
        self._started_at = now
        try:
            ours = self._spawn()
        except OSError as error:
            self._ended(str(error))
            return
        self._on_start(self._pid)
        ours.settimeout(0)
        self._socket, self._lines = ours, LineBuffer()
        self._loop.read(ours.fileno(), self._read)
        self._put(self._greeting() + bytes(self._unsent))
        self._unsent.clear()

    def _spawn(self) -> socket.socket:
        """Start a child and return our end of its socket; raises OSError.

        posix_spawn(3) would wait until the child has run up to its exec, which on a loaded machine takes an
        ordinary process longer than an advertisement may be late.
        """
        Path(self._words[0]).stat()  # a child could not report why its exec failed
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._pid = os.fork()
            except OSError:
                ours.close()
                raise
            if self._pid == 0:
                self._become(theirs)
        return ours

    def _become(self, theirs: socket.socket) -> NoReturn:
        """Become the tracker; runs in the child, and must not return."""
        try:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGPIPE):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            if theirs.fileno() == _ITS_SOCKET:
                os.set_inheritable(_ITS_SOCKET, True)  # noqa: FBT003  # its only form
            else:
                os.dup2(theirs.fileno(), _ITS_SOCKET)
            os.execve(self._words[0], (*self._words, str(_ITS_SOCKET)), os.environ)  # noqa: S606  # no shell is the point
        finally:
            os._exit(127)

    def _put(self, line: bytes) -> None:
        self._backlog += line
        if len(self._backlog) > _LONGEST_BACKLOG:
            self._ended("does not read")
        else:
            self._write()

    def _read(self) -> None:
        if self._socket is None:
            return
        try:
            chunk = self._socket.recv(_CHUNK)
            for line in self._lines.feed(chunk):
                self._on_line(line)
        except BlockingIOError:
            return
        except (OSError, ControlError) as error:
            self._ended(str(error))
            return
        if not chunk:
            self._ended("ended")

    def _write(self) -> None:
        if self._socket is None:
            return
        try:
            del self._backlog[: self._socket.send(self._backlog)]
        except BlockingIOError:
            pass
        except OSError as error:
            self._ended(str(error))
            return
        self._loop.write(self._socket.fileno(), self._write if self._backlog else None)

    def _ended(self, reason: str) -> None:
        self._disconnect()
        now = time.monotonic()
        self._pause = (
            _SHORTEST_PAUSE if now - self._started_at > _SETTLED else min(self._pause * 2, _LONGEST_PAUSE)
        )
        self._start_at = now + self._pause
        self._on_end(reason)

    def _disconnect(self) -> None:
        if self._socket is not None:
            self._loop.forget(self._socket.fileno())
            self._socket.close()
            self._socket = None
        self._backlog.clear()
        if self._pid:
            self._leaving[self._pid] = time.monotonic() + _GRACE
            self._pid = 0
            self._reap_at = 0.0

    def _reap(self, now: float) -> None:
        for pid, patience in list(self._leaving.items()):
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(pid, os.WNOHANG) == (0, 0):
                    if now > patience:
                        os.kill(pid, signal.SIGKILL)
                    continue
            del self._leaving[pid]
        self._reap_at = now + _LOOK_AGAIN if self._leaving else None
