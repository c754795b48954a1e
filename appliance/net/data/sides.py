"""The two sides of a session: what is read from one socket is written to the other.

A direction copies what it reads at once, and moves to splice through a lent pipe once it proves to be bulk.
What the other side does not take stops the reading, so that a direction holds at most one chunk or one pipe.
Plain Python that Cython compiles unchanged; `sides.pxd` gives it types.
"""

from os import read, splice, write
from typing import Final, Protocol

from appliance.model.end_reasons import EndReason
from appliance.net.data.pipes import PIPE_SIZE, Pipe
from appliance.net.data.tcp import NO_DELAY, set_on_connection, shutdown_write, unsent
from appliance.net.data.traffic import Expiring, Traffic, Watcher

READ: Final = 1
WRITE: Final = 2
CHUNK: Final = 16384
"""Bytes read at a time; fewer make a direction interactive, and full chunks in a row make it bulk."""

_BULK: Final = 2
"""Full reads in a row after which a direction is spliced."""

_IN_VAIN: Final = 16
"""Wake-ups for nothing in one tick after which a side rests."""


class SideOwner(Expiring, Protocol):
    """The session that a side belongs to, as its sides see it."""

    traffic: Traffic

    def side_failed(self, side: "Side") -> None:
        """End: the connection of `side` was reset or has broken."""
        ...

    def fail(self, error: Exception) -> None:
        """Report a bug of ours, and end."""
        ...


class Side:
    """One socket of a session, and the direction that begins there: read here, written to `other`.

    `backlog` and `pipe` hold what the other side has not taken; nothing is read while they do. `shut` says
    that a FIN was sent here, `eof` that one was received, `fd` -1 that the session has ended.
    """

    __slots__ = (
        "active_at",
        "backlog",
        "count",
        "drain",
        "eof",
        "fd",
        "full",
        "other",
        "pipe",
        "session",
        "shut",
        "traffic",
        "unsent",
        "watcher",
        "woken",
        "woken_at",
    )

    def __init__(self, session: SideOwner, fd: int, events: int) -> None:
        traffic = session.traffic
        self.session = session
        self.traffic = traffic
        self.fd = fd
        self.other = self
        self.watcher: Watcher = traffic.loop.io(fd, events)
        self.drain: Watcher | None = None
        self.pipe: Pipe | None = None
        self.backlog: memoryview | None = None
        self.active_at = traffic.now
        self.count = 0
        self.full = 0
        self.eof = False
        self.shut = False
        self.unsent = 0
        self.woken = 0
        self.woken_at = 0.0

    def on_readable(self) -> None:
        """Move what has arrived to the other side."""
        try:
            pipe = self.pipe
            if pipe is None:
                self.copy()
            else:
                self.fill(pipe)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.session.fail(error)

    def on_first(self) -> None:
        """Move what comes first after the connect, and let no later write to the server wait.

        The first write to a connection never waits, and many a client says no more than that.
        """
        self.on_readable()
        if self.fd >= 0 and not self.eof:
            self.watcher.callback = self.on_readable
            set_on_connection(self.other.fd, NO_DELAY)

    def copy(self) -> None:
        """Read a chunk and write it."""
        try:
            data = read(self.fd, CHUNK)
        except BlockingIOError:
            self.woken_for_nothing()
            return
        except OSError:
            self.session.side_failed(self)
            return
        size = len(data)
        if size == 0:
            self.finish()
            return
        other = self.other
        self.active_at = other.active_at = self.traffic.now
        self.count += size
        try:
            sent = write(other.fd, data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.session.side_failed(other)
            return
        if sent < size:
            self.hold(memoryview(data)[sent:])
        elif size < CHUNK:
            self.full = 0
        else:
            self.full += 1
            if self.full >= _BULK:
                self.pipe = self.traffic.pipes.take()

    def fill(self, pipe: Pipe) -> None:
        """Splice what has arrived into the pipe, and on.

        Before urgent data splice stops as if there were nothing to read, or, with the peer's FIN behind it,
        as if that had come (tcp_read_sock). It does so with SO_OOBINLINE too, for as long as nobody reads,
        and the socket stays readable. Only read can tell what it is.
        """
        try:
            size = splice(self.fd, pipe.writer, PIPE_SIZE)
        except BlockingIOError:
            size = 0
        except OSError:
            self.session.side_failed(self)
            return
        if size == 0:
            self.copy_again(pipe)
            self.copy()
            return
        self.active_at = self.traffic.now
        self.count += size
        pipe.held += size
        self.empty(pipe)
        if self.fd < 0:
            return
        if pipe.held:
            self.block()
        elif size < CHUNK:
            self.copy_again(pipe)

    def empty(self, pipe: Pipe) -> None:
        """Splice what the pipe holds to the other side, as much as it takes."""
        other = self.other
        try:
            pipe.held -= splice(pipe.reader, other.fd, pipe.held)
        except BlockingIOError:
            return
        except OSError:
            self.session.side_failed(other)
            return
        other.active_at = self.traffic.now

    def hold(self, rest: memoryview) -> None:
        """Keep what the other side has not taken."""
        self.full = 0
        self.backlog = rest
        self.block()

    def block(self) -> None:
        """Read no more until the other side has taken what is held."""
        self.watcher.stop()
        if self.drain is None:
            self.drain = self.traffic.loop.io(self.other.fd, WRITE)
        self.drain.start(self.on_writable)

    def on_writable(self) -> None:
        """Give the other side what is held, and read again once it has taken all."""
        try:
            before = self.held()
            if self.pipe is not None:
                self.empty(self.pipe)
            elif self.backlog is not None:
                self.flush(self.backlog)
            if self.fd < 0:
                return
            left = self.held()
            if left == 0:
                self.unblock()
            elif left == before:
                self.woken_for_nothing()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.session.fail(error)

    def unblock(self) -> None:
        """Read again; the time that it was not read does not count as this peer's silence."""
        self.active_at = self.traffic.now
        if self.drain is not None:
            self.drain.stop()
        self.watcher.start(self.on_readable)

    def flush(self, backlog: memoryview) -> None:
        """Write the backlog, as much as the other side takes."""
        try:
            sent = write(self.other.fd, backlog)
        except BlockingIOError:
            return
        except OSError:
            self.session.side_failed(self.other)
            return
        self.other.active_at = self.traffic.now
        self.backlog = backlog[sent:] if sent < len(backlog) else None

    def finish(self) -> None:
        """Pass the end of this direction on; when both have ended, so has the session."""
        self.eof = True
        other = self.other
        if other.eof:
            self.session.end(EndReason.COMPLETED)
            return
        self.watcher.stop()
        if self.pipe is not None:
            self.copy_again(self.pipe)
        shutdown_write(other.fd)
        other.shut = True
        other.active_at = self.traffic.now
        self.traffic.every_tick.add(self.session)

    def copy_again(self, pipe: Pipe) -> None:
        """Give the pipe back: what comes now is small."""
        self.traffic.pipes.give(pipe)
        self.pipe = None
        self.full = 0

    def woken_for_nothing(self) -> None:
        """Rest until the next tick where that happens again and again.

        Whatever makes the kernel say ready and then EAGAIN, urgent data before splice or a lack of memory for
        TCP before write, it may cost some wake-ups a tick and never a processor.
        """
        now = self.traffic.now
        if now != self.woken_at:
            self.woken_at = now
            self.woken = 0
        self.woken += 1
        if self.woken >= _IN_VAIN:
            self.watcher.stop()
            if self.drain is not None:
                self.drain.stop()
            self.traffic.resting.append(self)

    def resume(self) -> None:
        """Watch again after a rest."""
        if self.fd < 0:
            return
        if self.drain is not None and self.blocked():
            self.drain.start(self.on_writable)
        elif not self.eof:
            self.watcher.start(self.on_readable)

    def blocked(self) -> bool:
        """Return whether this side may not be read, because the other one has not taken what came before."""
        return self.held() > 0

    def held(self) -> int:
        """Return how many bytes the other side has not taken."""
        if self.backlog is not None:
            return len(self.backlog)
        return self.pipe.held if self.pipe is not None else 0

    def takes(self) -> bool:
        """Return whether the peer still takes what the kernel holds for it, while nothing passes here."""
        before, self.unsent = self.unsent, unsent(self.fd)
        return self.unsent > 1 and self.unsent != before

    def release(self) -> int:
        """Let go of the session and all else; return the descriptor, which is the caller's to close now."""
        self.watcher.close()
        if self.drain is not None:
            self.drain.close()
            self.drain = None
        if self.pipe is not None:
            self.copy_again(self.pipe)
        self.backlog = None
        # These refer back to this object, which would then wait for the collector.
        del self.session, self.other, self.watcher
        fd, self.fd = self.fd, -1
        return fd
