"""The two sides of a session: what is read from one socket is written to the other.

A direction copies what it reads at once. Once it proves to move much, it continues with splice through a lent
pipe, which halves the processor time per byte, but costs more system calls if there is little to move.
Reading stops while the other side does not take the bytes, so a direction holds at most one chunk or one
pipe.

Each change is reported once: `readable` remembers that there may be more to read. A short read has emptied
the socket, and later bytes cause a new event (epoll(7)).

This code runs most often of all: attributes are read once into locals, and nothing is called needlessly.
Plain Python that Cython compiles unchanged; `copying.pxd` gives it types.
"""

from typing import Final, Protocol

from appliance.model.end_reasons import EndReason
from appliance.worker.relay.all_sessions import Expiring, Traffic
from appliance.worker.relay.pipes import PIPE_SIZE, Pipe
from appliance.worker.relay.poll_events import ALL, ERROR, FIN, INCOMING, URGENT, WRITABLE
from appliance.worker.relay.poller import Pollable
from appliance.worker.relay.raw_io import AGAIN, CHUNK, Transfer
from appliance.worker.relay.raw_sockets import set_on_connection, shutdown_write
from appliance.worker.relay.tcp import IN_LINE, NO_DELAY, unacknowledged

_COMPLETED: Final = EndReason.COMPLETED  # looking up a member of an enumeration costs a call

_BULK: Final = 2
"""Full reads in a row after which a direction is spliced: a single one is a usual answer of a few records."""

_IN_A_ROW: Final = 4
"""Reads in a row after which the other sessions get their turn: four chunks, or four times a pipe."""


class SideOwner(Expiring, Protocol):
    """The session that a side belongs to, as its sides see it."""

    traffic: Traffic

    def on_side_events(self, side: "Side", events: int) -> None:
        """Handle events of `side` before both sides are connected."""
        ...

    def side_failed(self, side: "Side") -> None:
        """End: the connection of `side` was reset or has broken."""
        ...

    def fail(self, error: Exception) -> None:
        """Report a bug, and end."""
        ...


class Side(Pollable):
    """One socket of a session, and the direction that begins there: read here, written to `other`.

    `backlog` and `pipe` hold what the other side has not taken; nothing is read while they do. `relays` is
    true if both sides are connected, `readable` if a read may find something, `fin` if the peer's FIN has
    arrived behind the bytes to read, `uncertain` if there may be a reset or urgent data, so that a short read
    proves nothing, `in_line` if urgent data is read in line. `shut` is true if a FIN was sent here, `eof` if
    one was read, `copied` if another process may hold the socket too; `fd` is -1 after the session's end.
    `count` is bytes read, `active_at` the time when something last moved here.
    """

    __slots__ = (
        "active_at",
        "backlog",
        "copied",
        "count",
        "eof",
        "fd",
        "fin",
        "first",
        "full_reads",
        "hears_room",
        "in_line",
        "other",
        "pipe",
        "readable",
        "registered",
        "relays",
        "session",
        "shut",
        "traffic",
        "unacknowledged",
        "uncertain",
    )

    def __init__(self, session: SideOwner, fd: int) -> None:
        traffic = session.traffic
        self.session = session
        self.traffic = traffic
        self.fd = fd
        self.other = self
        self.pipe: Pipe | None = None
        self.backlog: memoryview | None = None
        self.active_at = traffic.now
        self.count = 0
        self.full_reads = 0
        self.turn = 0
        self.copied = False
        self.hears_room = False
        self.in_line = False
        self.registered = False
        self.relays = False
        self.readable = False
        self.uncertain = False
        self.fin = False
        self.first = False
        self.eof = False
        self.shut = False
        self.unacknowledged = 0

    def watch(self) -> None:
        """Ask for events from now on; the first one reports the present state."""
        if not self.registered:
            self.registered = True
            self.hears_room = not self.relays or self.other.held() > 0
            self.traffic.poller.register(self.fd, self, ALL if self.hears_room else INCOMING)

    def watch_writable(self) -> None:
        """Ask for an event when there is room for the bytes held for this side; most sides never need one."""
        if self.registered and not self.hears_room:
            self.hears_room = True
            self.traffic.poller.change(self.fd, ALL)

    def pause(self) -> None:
        """Receive no more events until `watch`, which first reports the state then."""
        if self.registered:
            self.registered = False
            self.traffic.poller.unregister(self.fd)
        self.readable = False

    def on_events(self, events: int) -> None:
        """Do what the new state of the socket allows."""
        try:
            if not self.relays:
                self.session.on_side_events(self, events)
                return
            if events & WRITABLE and self.other.held():
                self.other.on_writable()
                if self.fd < 0:
                    return
            if events & ~WRITABLE:
                self.note(events)
                if not self.eof and not self.held():
                    self.on_readable()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.session.fail(error)

    def note(self, events: int) -> None:
        """Note that the socket may be readable now."""
        self.readable = True
        if events & (URGENT | ERROR):
            self.uncertain = True
            self.read_in_line()
        elif events & FIN:
            self.fin = True

    def read_in_line(self) -> None:
        """Leave urgent data where it is in the stream, from the next read on.

        Most connections are spared the call: a read stops before urgent data, and a read that begins there
        follows an event that reports it, or a full read.
        """
        if not self.in_line:
            self.in_line = True
            set_on_connection(self.fd, IN_LINE)

    def go_on(self) -> None:
        """Read on after the others have had their turn."""
        try:
            if self.fd >= 0 and self.readable and not self.eof and not self.held():
                self.on_readable()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.session.fail(error)

    def on_readable(self) -> None:
        """Move the received bytes to the other side, up to a bound."""
        if self.first:
            self.move_first()
            return
        for _ in range(_IN_A_ROW):
            pipe = self.pipe
            if pipe is None:
                self.copy()
            else:
                self.fill(pipe)
            if not self.readable or self.fd < 0 or self.eof or self.held():
                return
        self.traffic.poller.later(self)

    def move_first(self) -> None:
        """Move the first bytes after the connect, and let no later write to the server wait.

        Nagle's algorithm (RFC 896) holds back a small write while an earlier one is not acknowledged. The
        first write to a connection never waits, and many clients send no more: they are spared the system
        call.
        """
        self.first = False
        self.on_readable()
        if self.fd >= 0 and not self.eof:
            set_on_connection(self.other.fd, NO_DELAY)

    def copy(self) -> None:
        """Read a chunk and write it at once: usually the other side takes all without waiting."""
        transfer: Transfer = self.traffic.transfer
        size = transfer.receive(self.fd)
        if size <= 0:
            self.read_nothing(size)
            return
        # A read stops before urgent data, with more behind it (tcp_recvmsg).
        emptied = size < CHUNK and not self.uncertain
        last = emptied and self.fin
        if emptied and not last:
            self.readable = False
        elif size == CHUNK:
            self.read_in_line()
        other = self.other
        self.active_at = other.active_at = self.traffic.now
        self.count += size
        sent = transfer.send_last(other.fd) if last else transfer.send(other.fd)
        if sent == size:
            if size == CHUNK:
                self.full_reads += 1
                if self.full_reads >= _BULK:
                    self.pipe = self.traffic.pipes.take()
                return
            self.full_reads = 0
            if last:
                self.finish()
        elif sent >= 0 or sent == AGAIN:
            self.hold(transfer.rest())
        else:
            self.session.side_failed(other)

    def read_nothing(self, result: int) -> None:
        """Handle the end of the peer's stream, nothing to read, or an error."""
        if result == 0:
            self.finish()
        elif result == AGAIN:
            self.readable = self.uncertain = False
        else:
            self.session.side_failed(self)

    def fill(self, pipe: Pipe) -> None:
        """Splice the received bytes into the pipe, and on to the other side.

        Before urgent data splice stops as if there were nothing to read, or, with the peer's FIN behind it,
        as if the FIN had come (tcp_read_sock). It does so with SO_OOBINLINE too, until the data is read. Only
        a read can distinguish these cases. A short splice proves nothing: pipes have few slots.
        """
        size = self.traffic.transfer.splice(self.fd, pipe.writer, PIPE_SIZE)
        if size == AGAIN and not self.uncertain and not self.fin:
            self.readable = False
            return
        if size in (0, AGAIN):
            self.return_pipe(pipe)
            self.copy()
            return
        if size < 0:
            self.session.side_failed(self)
            return
        self.active_at = self.traffic.now
        self.count += size
        pipe.held += size
        self.empty(pipe)
        if self.fd < 0:
            return
        if pipe.held == 0 and size < CHUNK:
            self.return_pipe(pipe)

    def empty(self, pipe: Pipe) -> None:
        """Splice what the pipe holds to the other side, as much as it takes."""
        other = self.other
        size = self.traffic.transfer.splice(pipe.reader, other.fd, pipe.held)
        if size >= 0:
            pipe.held -= size
            other.active_at = self.traffic.now
        elif size != AGAIN:
            self.session.side_failed(other)
            return
        if pipe.held > 0:
            other.watch_writable()

    def hold(self, rest: memoryview) -> None:
        """Keep what the other side has not taken; nothing is read until it has."""
        self.full_reads = 0
        self.backlog = rest
        self.other.watch_writable()

    def on_writable(self) -> None:
        """Write the held bytes to the other side, and read again once it has taken all."""
        before = self.held()
        if self.pipe is not None:
            self.empty(self.pipe)
        elif self.backlog is not None:
            self.flush(self.backlog)
        if self.fd < 0:
            return
        left = self.held()
        if left == 0:
            # The time in which it was not read does not count as this peer's silence.
            self.active_at = self.traffic.now
            if self.eof:
                self.finish()  # on the node that it came from, all was read
            elif self.readable:
                self.on_readable()
        elif left == before:
            # If TCP is out of memory a write fails though the socket is writable, and no event may follow.
            self.traffic.resting.append(self)

    def flush(self, backlog: memoryview) -> None:
        """Write the backlog, as much as the other side takes."""
        sent = self.traffic.transfer.write(self.other.fd, backlog)
        if sent < 0:
            if sent != AGAIN:
                self.session.side_failed(self.other)
            return
        self.other.active_at = self.traffic.now
        self.backlog = backlog[sent:] if sent < len(backlog) else None

    def finish(self) -> None:
        """Pass the end of this direction on as a FIN; when both directions have ended, so has the session.

        The other direction stays open: a client that has sent its request and its FIN waits for the answer.
        """
        self.eof = True
        other = self.other
        if other.eof:
            self.session.end(_COMPLETED)
            return
        self.readable = False
        if self.pipe is not None:
            self.return_pipe(self.pipe)
        shutdown_write(other.fd)
        other.shut = True
        other.active_at = self.traffic.now
        self.traffic.every_tick.add(self.session)

    def return_pipe(self, pipe: Pipe) -> None:
        """Give the pipe back, and copy from now on: little arrives now."""
        self.traffic.pipes.give(pipe)
        self.pipe = None
        self.full_reads = 0

    def resume(self) -> None:
        """Try again to write the held bytes to the other side."""
        try:
            if self.fd >= 0 and self.held():
                self.on_writable()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.session.fail(error)

    def blocked(self) -> bool:
        """Return whether this side may not be read, because the other one has not taken earlier bytes."""
        return self.held() > 0

    def held(self) -> int:
        """Return how many bytes the other side has not taken."""
        if self.backlog is not None:
            return len(self.backlog)
        return self.pipe.held if self.pipe is not None else 0

    def acknowledges(self) -> bool:
        """Return whether the peer has acknowledged data since the last call; the FIN alone counts as 1."""
        before, self.unacknowledged = self.unacknowledged, unacknowledged(self.fd)
        return self.unacknowledged > 1 and self.unacknowledged != before

    def release(self) -> int:
        """Give the pipe back and receive no more events; return the descriptor, the caller's to close."""
        if self.copied and self.registered:
            # Closing a descriptor removes it from the epoll set only if no copy of it is open (epoll(7)).
            self.traffic.poller.unregister(self.fd)
        elif self.registered:
            self.traffic.poller.forget(self.fd)
        if self.pipe is not None:
            self.return_pipe(self.pipe)
        self.backlog = None
        # These refer back to this object. Without the cycle it is freed at once, and not by a collection that
        # stops all the traffic.
        del self.session, self.other
        fd, self.fd = self.fd, -1
        return fd
