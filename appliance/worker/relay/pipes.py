"""Pipes that carry spliced bytes, lent to the directions of sessions that move much at a time.

splice moves pages between sockets and a pipe without copying them into the process and out: half the
processor time per byte. It needs a pipe between the two sockets, which costs two descriptors and kernel
memory.
"""

import contextlib
import fcntl
import os
from typing import Final, Self

PIPE_SIZE: Final = 1 << 18
"""Most bytes that a pipe gets, four times the kernel's default: fewer system calls per byte."""


class Pipe:
    """A pipe and how many bytes it holds."""

    __slots__ = ("held", "reader", "writer")

    def __init__(self) -> None:
        self.reader, self.writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.held = 0
        # Past /proc/sys/fs/pipe-user-pages-soft the kernel refuses, and the pipe works with its present size.
        with contextlib.suppress(OSError):
            fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, PIPE_SIZE)

    @classmethod
    def of(cls, reader: int, writer: int, *, held: int) -> Self:
        """Return the pipe of two descriptors that another process sent."""
        pipe = cls.__new__(cls)
        pipe.reader, pipe.writer, pipe.held = reader, writer, held
        return pipe

    def close(self) -> None:
        """Close both ends; bytes that it holds are lost."""
        os.close(self.reader)
        os.close(self.writer)


class Pipes:
    """At most `limit` pipes; pipes returned empty are lent again, and `spare` of them are kept."""

    def __init__(self, limit: int, *, spare: int = 16) -> None:
        self.lent = 0
        self._limit = limit
        self._spare = spare
        self._idle: list[Pipe] = []

    def take(self) -> Pipe | None:
        """Return a pipe, None if all are lent or the process is out of descriptors."""
        if self.lent >= self._limit:
            return None
        try:
            pipe = self._idle.pop() if self._idle else Pipe()
        except OSError:
            return None
        self.lent += 1
        return pipe

    def adopt(self, pipe: Pipe) -> Pipe:
        """Count a pipe that came with its session as lent, even beyond the limit."""
        self.lent += 1
        return pipe

    def give(self, pipe: Pipe) -> None:
        """Take a pipe back; close one that still holds bytes: no other session may read them."""
        self.lent -= 1
        if pipe.held or len(self._idle) >= self._spare:
            pipe.close()
            return
        self._idle.append(pipe)

    def close(self) -> None:
        """Close the pipes that are not lent."""
        while self._idle:
            self._idle.pop().close()
