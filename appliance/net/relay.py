"""A connection from a client to a server: a state object that watcher callbacks of the gevent hub drive.

No greenlet, no timer and no buffer of its own. Everything works on raw non-blocking descriptors: a direction
copies what it reads at once, and moves to splice through a lent pipe once it proves to be bulk. What the
other side does not take stops the reading, so that a session holds at most one chunk or one pipe each way.
The module is plain Python that Cython compiles unchanged; `relay.pxd` gives it types.
"""

import _socket
import os
from errno import EADDRNOTAVAIL, ECONNREFUSED, EINPROGRESS, EMFILE, ENFILE, ETIMEDOUT
from os import read, splice, write
from random import random
from socket import AF_INET, AF_INET6
from typing import Final

from appliance.core.dispatch import WAIT, Queue
from appliance.core.frontends import FrontendState
from appliance.core.members import Member
from appliance.net.backend import Backend
from appliance.net.pipes import PIPE_SIZE, Pipe
from appliance.net.tcp import STREAM, reset, shutdown_write
from appliance.net.traffic import Traffic, Watcher
from appliance.wire.worker_board import Reason

READ: Final = 1
WRITE: Final = 2
CHUNK: Final = 16384

QUEUED: Final = 0
DELAYED: Final = 1
CONNECTING: Final = 2
OPEN: Final = 3
CLOSED: Final = 4
PHASES: Final = ("queued", "delayed", "connecting", "open", "closed")

_BULK: Final = 2
"""Full reads in a row after which a direction is spliced."""

_CONNECT_REASONS: Final = {
    ECONNREFUSED: Reason.CONNECT_REFUSED,
    ETIMEDOUT: Reason.CONNECT_TIMEOUT,
    EADDRNOTAVAIL: Reason.NO_PORTS,
    EMFILE: Reason.NO_DESCRIPTORS,
    ENFILE: Reason.NO_DESCRIPTORS,
}
_CLEAN: Final = frozenset(
    {
        Reason.COMPLETED,
        Reason.CLIENT_TIMEOUT,
        Reason.SERVER_TIMEOUT,
        Reason.CLIENT_FIN_TIMEOUT,
        Reason.SERVER_FIN_TIMEOUT,
        Reason.MAX_AGE,
    }
)
"""Ends that the client sees as a FIN; after any other it must not take what it got for the whole."""


class Side:
    """One socket of a session, and the direction that begins there: read here, written to `other`.

    `backlog` and `pipe` hold what the other side has not taken; nothing is read while they do. `shut` says
    that a FIN was sent here, `eof` that one was received.
    """

    __slots__ = (
        "active",
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
        "watcher",
    )

    def __init__(self, session: "Session", fd: int) -> None:
        self.session: Session | None = session
        self.fd = fd
        self.other: Side = self
        self.watcher: Watcher | None = None
        self.drain: Watcher | None = None
        self.pipe: Pipe | None = None
        self.backlog: memoryview | None = None
        self.active = session.traffic.now
        self.count = 0
        self.full = 0
        self.eof = False
        self.shut = False

    def on_readable(self) -> None:
        """Move what has arrived to the other side."""
        try:
            if self.pipe is None:
                self.copy()
            else:
                self.fill(self.pipe)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            fail(self.session, error)

    def copy(self) -> None:
        """Read a chunk and write it."""
        try:
            data = read(self.fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self.session.broken(self)
            return
        if not data:
            self.finish()
            return
        size = len(data)
        other = self.other
        self.active = other.active = self.session.traffic.now
        self.count += size
        try:
            sent = write(other.fd, data)
        except BlockingIOError:
            sent = 0
        except OSError:
            self.session.broken(other)
            return
        if sent < size:
            self.backlog = memoryview(data)[sent:]
            self.block()
        if size < CHUNK:
            self.full = 0
            return
        self.full += 1
        if self.full >= _BULK and self.backlog is None:
            self.pipe = self.session.traffic.pipes.take()

    def fill(self, pipe: Pipe) -> None:
        """Splice what has arrived into the pipe and on."""
        try:
            size = splice(self.fd, pipe.writer, PIPE_SIZE)
        except BlockingIOError:
            return
        except OSError:
            self.session.broken(self)
            return
        if size == 0:
            self.finish()
            return
        self.active = self.session.traffic.now
        self.count += size
        pipe.held += size
        self.empty(pipe)
        if pipe.held:
            self.block()
        elif size < CHUNK and self.pipe is not None:
            self.copy_again()

    def empty(self, pipe: Pipe) -> None:
        """Splice what the pipe holds to the other side, as much as it takes."""
        other = self.other
        try:
            pipe.held -= splice(pipe.reader, other.fd, pipe.held)
        except BlockingIOError:
            return
        except OSError:
            self.session.broken(other)
            return
        other.active = self.session.traffic.now

    def block(self) -> None:
        """Read no more until the other side has taken what is held."""
        self.watcher.stop()
        if self.drain is None:
            self.drain = self.session.traffic.loop.io(self.other.fd, WRITE)
        self.drain.start(self.on_writable)

    def on_writable(self) -> None:
        """Give the other side what is held, and read again once it has taken all."""
        try:
            if self.pipe is not None:
                self.empty(self.pipe)
            else:
                self.flush()
            if (
                self.session is not None
                and self.backlog is None
                and (self.pipe is None or not self.pipe.held)
            ):
                self.drain.stop()
                self.watcher.start(self.on_readable)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            fail(self.session, error)

    def flush(self) -> None:
        """Write the backlog, as much as the other side takes."""
        try:
            sent = write(self.other.fd, self.backlog)
        except BlockingIOError:
            return
        except OSError:
            self.session.broken(self.other)
            return
        self.other.active = self.session.traffic.now
        self.backlog = self.backlog[sent:] if sent < len(self.backlog) else None

    def finish(self) -> None:
        """Pass the end of this direction on; when both have ended, so has the session."""
        session = self.session
        self.eof = True
        if self.other.eof:
            session.end(Reason.COMPLETED)
            return
        self.watcher.stop()
        if self.pipe is not None:
            self.copy_again()
        shutdown_write(self.other.fd)
        self.other.shut = True
        self.other.active = session.traffic.now
        session.traffic.hurried.add(session)

    def copy_again(self) -> None:
        """Give the pipe back: what comes now is small."""
        self.session.traffic.pipes.give(self.pipe)
        self.pipe = None
        self.full = 0

    def release(self) -> None:
        """Let go of everything but the descriptor, and of the session."""
        if self.watcher is not None:
            self.watcher.close()
        if self.drain is not None:
            self.drain.close()
        if self.pipe is not None:
            self.copy_again()
        self.watcher = self.drain = self.backlog = self.session = None
        self.other = self


class Session:
    """A client's connection from its acceptance to its end."""

    __slots__ = (
        "address",
        "attempts",
        "backend",
        "client",
        "connect_at",
        "counted_in",
        "counted_out",
        "deadline",
        "early",
        "expires",
        "frontend",
        "key",
        "member",
        "number",
        "phase",
        "ready_at",
        "server",
        "started",
        "traffic",
        "tried",
    )

    def __init__(
        self, traffic: Traffic, frontend: FrontendState, backend: Backend, fd: int, address: bytes
    ) -> None:
        self.traffic = traffic
        self.frontend = frontend
        self.backend = backend
        self.address = address
        self.started = traffic.now
        self.client = Side(self, fd)
        self.server: Side | None = None
        self.member: Member | None = None
        self.tried: tuple[Member, ...] = ()
        self.early: bytes | None = None
        self.key = b""
        self.phase = CONNECTING
        self.attempts = 0
        self.counted_in = 0
        self.counted_out = 0
        self.deadline = 0.0
        self.expires = 0.0
        self.connect_at = 0.0
        self.ready_at = 0.0
        traffic.serial += 1
        self.number = traffic.serial
        traffic.live.add(self)

    def begin(self) -> None:
        """Find a server, wait for one, or end."""
        try:
            backend = self.backend
            if backend.hashed:
                self.key = backend.key(self.client.fd, self.address)
            if self.frontend.config.max_age is not None:
                self.expires = self.frontend.expiry(self.traffic.now, chance=random())
            self.traffic.hurried.add(self)
            self.settle(backend.pool.place(self.key))
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            fail(self, error)

    def settle(self, decision: "Member | Queue | Reason") -> None:
        """Do what the pool has decided."""
        if isinstance(decision, Member):
            self.member = decision
            if decision in self.tried:
                self.delay()
            else:
                self.connect()
        elif decision is WAIT:
            self.wait()
        else:
            self.end(decision)

    def wait(self) -> None:
        """Stand in the queue, and watch the client: one that leaves frees its place."""
        refused = self.backend.pool.wait(self, self.key)
        if refused is not None:
            self.end(refused)
            return
        if self.phase != QUEUED:
            self.phase = QUEUED
            self.deadline = self.traffic.now + self.backend.timeout_queue
            self.watch_early()

    def delay(self) -> None:
        """Wait a little before the same server is tried again."""
        self.phase = DELAYED
        self.deadline = self.traffic.now + self.backend.retry_delay

    def watch_early(self) -> None:
        """Keep what the client sends while it waits, up to a chunk."""
        client = self.client
        if client.watcher is None:
            client.watcher = self.traffic.loop.io(client.fd, READ)
        client.watcher.start(self.on_early)

    def on_early(self) -> None:
        """Keep what the client sends; an end or an error means that it has left."""
        try:
            data = read(self.client.fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        try:
            self.keep_early(data)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            fail(self, error)

    def keep_early(self, data: bytes) -> None:
        """Keep data that no server is there for yet."""
        if not data:
            self.end(Reason.CLIENT_ABORT)
            return
        self.client.count += len(data)
        self.early = data if self.early is None else self.early + data
        if len(self.early) >= CHUNK:
            self.client.watcher.stop()

    def hand_over(self) -> None:
        """Take the place that another session has left, before anybody else does."""
        decision = self.backend.pool.place(self.key)
        if isinstance(decision, Member):
            self.member = decision
            self.phase = DELAYED
            self.deadline = 0.0
            self.traffic.loop.run_callback(self.on_turn)
            return
        self.settle(decision)

    def on_turn(self) -> None:
        """Connect to the server that was waited for."""
        try:
            if self.phase == DELAYED:
                self.connect()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            fail(self, error)

    def connect(self) -> None:
        """Begin to connect to the member."""
        client, backend, member = self.client, self.backend, self.member
        if client.watcher is not None:
            client.watcher.stop()
        self.phase = CONNECTING
        self.connect_at = self.traffic.now
        self.deadline = self.connect_at + backend.timeout_connect
        address = member.address
        if address is None:
            self.retry(Reason.CONNECT_FAILED)
            return
        try:
            connection = _socket.socket(AF_INET6 if ":" in address[0] else AF_INET, STREAM, 0)
        except OSError as error:
            self.retry(_CONNECT_REASONS.get(error.errno, Reason.CONNECT_FAILED))
            return
        for level, option, value in backend.options:
            connection.setsockopt(level, option, value)
        code = connection.connect_ex(address)
        fd = connection.detach()
        if code != EINPROGRESS and code != 0:
            os.close(fd)
            self.retry(_CONNECT_REASONS.get(code, Reason.CONNECT_FAILED))
            return
        self.server = server = Side(self, fd)
        server.watcher = self.traffic.loop.io(fd, WRITE)
        server.watcher.start(self.on_connected)

    def on_connected(self) -> None:
        """Learn by the first write whether the connection was made, then relay."""
        try:
            self.greet()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            fail(self, error)

    def greet(self) -> None:
        """Write the first bytes: PROXY header and what the client has sent, b"" where there are none.

        Even nothing written to a connection that was not made says why, which saves a getsockopt.
        """
        client, server = self.client, self.server
        ended = False
        data = self.early
        if data is None:
            try:
                data = read(client.fd, CHUNK)
                client.count += len(data)
                ended = not data
            except BlockingIOError:
                data = b""
            except OSError:
                self.broken(client)
                return
        out = self.backend.header(client.fd, self.address) + data if self.backend.proxied else data
        try:
            sent = write(server.fd, out)
        except BlockingIOError:
            sent = 0
        except OSError as error:
            self.early = data or None
            self.drop_server()
            self.retry(_CONNECT_REASONS.get(error.errno, Reason.CONNECT_FAILED))
            return
        self.opened(memoryview(out)[sent:] if sent < len(out) else None)
        if ended:
            client.finish()

    def opened(self, rest: memoryview | None) -> None:
        """Relay in both directions; `rest` is what the server has not taken yet."""
        traffic, client, server = self.traffic, self.client, self.server
        self.phase = OPEN
        self.ready_at = traffic.now
        self.early = None
        self.tried = ()
        traffic.hurried.discard(self)
        client.other, server.other = server, client
        client.active = server.active = traffic.now
        watcher = server.watcher
        watcher.stop()
        watcher.events = READ
        watcher.start(server.on_readable)
        watcher = client.watcher
        if watcher is None:
            watcher = client.watcher = traffic.loop.io(client.fd, READ)
        watcher.start(client.on_readable)
        if rest is not None:
            client.backlog = rest
            client.block()

    def drop_server(self) -> None:
        """Close a connection to a server that was not made."""
        server = self.server
        if server is not None:
            server.release()
            os.close(server.fd)
            self.server = None

    def retry(self, reason: Reason) -> None:
        """Try another server, the same one after a while, or end: the connect has failed."""
        member, pool, traffic = self.member, self.backend.pool, self.traffic
        member.failed += 1
        self.tried += (member,)
        self.member = None
        waiter = pool.end(member)
        if self.attempts >= self.backend.retries:
            traffic.pass_on(waiter)
            self.end(reason)
            return
        self.attempts += 1
        traffic.reasons[reason] += 1
        decision = pool.place(self.key, avoid=self.tried)
        again = decision in self.tried
        traffic.reasons[Reason.RETRIED if again else Reason.REDISPATCHED] += 1
        traffic.pass_on(waiter)
        self.settle(decision)

    def broken(self, side: Side) -> None:
        """End: a side was reset, or has gone."""
        self.end(Reason.CLIENT_ABORT if side is self.client else Reason.SERVER_ABORT)

    def expire(self, now: float) -> None:
        """End what has lasted too long."""
        try:
            if self.phase == OPEN:
                self.expire_open(now)
            elif now >= self.deadline and self.phase != CLOSED:
                self.expire_early()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            fail(self, error)

    def expire_early(self) -> None:
        """End a wait of a session that has no server yet."""
        if self.phase == QUEUED:
            self.end(Reason.QUEUE_TIMEOUT)
        elif self.phase == DELAYED:
            self.connect()
        else:
            self.drop_server()
            self.retry(Reason.CONNECT_TIMEOUT)

    def expire_open(self, now: float) -> None:
        """End a session of which a side is idle or half-closed for too long, or that is too old."""
        client, server, frontend, backend = self.client, self.server, self.frontend, self.backend
        self.count_bytes()
        if now - client.active >= (frontend.timeout_client_fin if client.shut else frontend.timeout_client):
            self.end(Reason.CLIENT_FIN_TIMEOUT if client.shut else Reason.CLIENT_TIMEOUT)
        elif now - server.active >= (backend.timeout_server_fin if server.shut else backend.timeout_server):
            self.end(Reason.SERVER_FIN_TIMEOUT if server.shut else Reason.SERVER_TIMEOUT)
        elif 0.0 < self.expires <= now:
            self.end(Reason.MAX_AGE)

    def count_bytes(self) -> None:
        """Add what was moved since the last time to the counters."""
        frontend, member = self.frontend, self.member
        size = self.client.count - self.counted_in
        if size:
            self.counted_in += size
            frontend.bytes_in += size
            if member is not None:
                member.bytes_in += size
        server = self.server
        size = server.count - self.counted_out if server is not None else 0
        if size and member is not None:
            self.counted_out += size
            frontend.bytes_out += size
            member.bytes_out += size

    def waits(self) -> tuple[float, float]:
        """Return the seconds in the queue and to the server, -1.0 for what was not reached."""
        queued = self.connect_at - self.started if self.connect_at else -1.0
        connected = self.ready_at - self.connect_at if self.ready_at else -1.0
        return queued, connected

    def end(self, reason: Reason) -> None:
        """Close both sides, count, and let the next one in; harmless where it has ended already."""
        if self.phase == CLOSED:
            return
        traffic, frontend, member = self.traffic, self.frontend, self.member
        if traffic.report is not None:
            traffic.report(self, reason)
        self.count_bytes()
        waited = self.phase == QUEUED
        made = self.phase == OPEN
        self.phase = CLOSED
        traffic.live.discard(self)
        traffic.hurried.discard(self)
        traffic.reasons[reason] += 1
        traffic.changed = True
        self.close_sides(clean=reason in _CLEAN)
        frontend.current -= 1
        if not made:
            frontend.failed += 1
        if waited:
            self.backend.pool.leave(self)
        if member is not None:
            self.member = None
            traffic.pass_on(self.backend.pool.end(member))
        if traffic.room is not None:
            traffic.room()

    def close_sides(self, clean: bool) -> None:
        """Close both descriptors; one that owes us its end is reset, so that no TIME_WAIT holds a port."""
        client, server = self.client, self.server
        client.release()
        if clean:
            os.close(client.fd)
        else:
            reset(client.fd)
        if server is None:
            return
        server.release()
        if clean and server.eof:
            os.close(server.fd)
        else:
            reset(server.fd)


def fail(session: Session | None, error: Exception) -> None:
    """Report a bug, and end the session that it has met."""
    if session is None:
        return
    session.traffic.fault(error)
    session.end(Reason.INTERNAL)
