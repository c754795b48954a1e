"""A connection from a client to a server: a state object that watcher callbacks of the gevent hub drive.

No greenlet, no timer and no buffer of its own; everything works on raw non-blocking descriptors. A session is
placed by its pool, may wait for its turn, connects, retries, and then leaves the bytes to its two sides.
Plain Python that Cython compiles unchanged; `relay.pxd` gives it types.
"""

import _socket
import os
from errno import EADDRNOTAVAIL, ECONNREFUSED, ECONNRESET, EINPROGRESS, EMFILE, ENFILE, EPIPE, ETIMEDOUT
from os import read, write
from random import random
from socket import AF_INET, AF_INET6
from typing import Final

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import MustWait
from appliance.model.end_reasons import EndReason
from appliance.net.data.backend import Backend
from appliance.net.data.sides import CHUNK, READ, WRITE, Side
from appliance.net.data.tcp import STREAM, reset, set_on_connection
from appliance.net.data.traffic import Traffic

QUEUED: Final = 0
DELAYED: Final = 1
CONNECTING: Final = 2
OPEN: Final = 3
CLOSED: Final = 4
PHASES: Final = ("queued", "delayed", "connecting", "open", "closed")
"""Names of the phases; DELAYED has a server and waits to connect to it."""

_CONNECT_REASONS: Final = {
    ECONNREFUSED: EndReason.CONNECT_REFUSED,
    ETIMEDOUT: EndReason.CONNECT_TIMEOUT,
    EADDRNOTAVAIL: EndReason.NO_PORTS,
    ECONNRESET: EndReason.SERVER_ABORT,
    EPIPE: EndReason.SERVER_ABORT,
    EMFILE: EndReason.NO_DESCRIPTORS,
    ENFILE: EndReason.NO_DESCRIPTORS,
}
_BRIEF: Final = 1.0
"""Age from which a connection to a server gets TCP keepalive, seconds; probes come after many more."""
_SERVERS_FAULT: Final = frozenset(
    {EndReason.CONNECT_REFUSED, EndReason.CONNECT_TIMEOUT, EndReason.CONNECT_FAILED, EndReason.SERVER_ABORT}
)
"""Failures of a connect that make the server doubtful (HAProxy's `observe layer4`); others are our own."""

_CLEAN: Final = frozenset(
    {
        EndReason.COMPLETED,
        EndReason.CLIENT_TIMEOUT,
        EndReason.SERVER_TIMEOUT,
        EndReason.CLIENT_FIN_TIMEOUT,
        EndReason.SERVER_FIN_TIMEOUT,
        EndReason.MAX_AGE,
    }
)
"""Ends that a peer sees as a FIN; after any other it must not take what it got for the whole."""


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
        "kept",
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
        self.client = Side(self, fd, READ)
        self.server: Side | None = None
        self.member: PoolMember | None = None
        self.tried: tuple[PoolMember, ...] = ()
        self.early: bytes | None = None
        self.key = b""
        self.kept = False
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
        traffic.hurried.add(self)

    def begin(self) -> None:
        """Find a server, wait for one, or end."""
        try:
            backend = self.backend
            if backend.hashed:
                self.key = backend.key(self.client.fd, self.address)
            if self.frontend.max_age > 0.0:
                self.expires = self.frontend.expiry(self.traffic.now, chance=random())  # noqa: S311  # no secret
            self.settle(backend.pool.place(self.key))
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def settle(self, decision: PoolMember | MustWait | EndReason) -> None:
        """Do what the pool has decided."""
        if isinstance(decision, PoolMember):
            self.take(decision)
            if decision in self.tried:
                self.delay(self.backend.retry_delay)
            else:
                self.connect(decision)
        elif isinstance(decision, MustWait):
            self.wait()
        else:
            self.end(decision)

    def take(self, member: PoolMember) -> None:
        """Have a place at a member; after another connect has failed that is counted."""
        self.member = member
        if self.tried:
            again = member in self.tried
            self.traffic.reasons[EndReason.RETRIED if again else EndReason.REDISPATCHED] += 1

    def wait(self) -> None:
        """Stand in the queue, and watch the client: one that leaves frees its place."""
        refused = self.backend.pool.wait(self, self.key, avoid=self.tried)
        if refused is not None:
            self.end(refused)
            return
        if self.phase != QUEUED:
            self.phase = QUEUED
            self.deadline = self.traffic.now + self.backend.timeout_queue
            if self.early is None or len(self.early) < CHUNK:
                self.client.watcher.start(self.on_early)

    def delay(self, seconds: float) -> None:
        """Keep the place at the member, and connect in a while."""
        self.phase = DELAYED
        self.deadline = self.traffic.now + seconds

    def on_early(self) -> None:
        """Keep what the client sends before it has a server; one that was reset has left."""
        try:
            data = read(self.client.fd, CHUNK)
        except BlockingIOError:
            return
        except OSError:
            self.broken(self.client)
            return
        try:
            self.keep_early(data)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def keep_early(self, data: bytes) -> None:
        """Keep at most two chunks.

        A client that has said something and then its end wants the answer: its end is read again when there
        is a server. One that ends without a word has left.
        """
        if not data:
            if self.early is None:
                self.end(EndReason.CLIENT_ABORT)
            else:
                self.client.watcher.stop()
            return
        self.client.count += len(data)
        self.early = data if self.early is None else self.early + data
        if len(self.early) >= CHUNK:
            self.client.watcher.stop()

    def hand_over(self) -> None:
        """Take the place that another session has left, before anybody else does."""
        try:
            decision = self.backend.pool.place(self.key, avoid=self.tried)
            if not isinstance(decision, PoolMember) or decision in self.tried:
                self.settle(decision)
                return
            self.take(decision)
            self.delay(0.0)
            self.traffic.loop.run_callback(self.on_turn)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session, not who hands over
            self.fail(error)

    def on_turn(self) -> None:
        """Connect to the server that was waited for."""
        try:
            if self.phase == DELAYED and self.member is not None:
                self.connect(self.member)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def connect(self, member: PoolMember) -> None:
        """Begin to connect."""
        if self.phase != CONNECTING:
            self.phase = CONNECTING
            self.client.watcher.stop()
        backend = self.backend
        now = self.traffic.now
        if self.connect_at == 0.0:
            self.connect_at = now
        self.deadline = now + backend.timeout_connect
        address = member.address
        if address is None:
            self.retry(EndReason.CONNECT_FAILED)
            return
        try:
            connection = _socket.socket(AF_INET6 if ":" in address[0] else AF_INET, STREAM, 0)
            for level, option, value in backend.options:
                connection.setsockopt(level, option, value)
        except OSError as error:
            self.failed(error)
            return
        code = connection.connect_ex(address)
        if code not in (EINPROGRESS, 0):
            connection.close()
            self.retry(_CONNECT_REASONS.get(code, EndReason.CONNECT_FAILED))
            return
        self.server = server = Side(self, connection.detach(), WRITE)
        server.watcher.start(self.on_connected)

    def on_connected(self) -> None:
        """Learn by the first write whether the connection was made, and relay."""
        try:
            if self.server is not None:
                self.greet(self.server)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def greet(self, server: Side) -> None:
        """Write the first bytes: the PROXY header and what the client has sent so far.

        Even nothing at all, written to a connection that was not made, says why: that saves a getsockopt.
        """
        client, backend = self.client, self.backend
        early = self.early
        if early is None:
            try:
                early = read(client.fd, CHUNK)
            except BlockingIOError:
                early = b""
            except OSError:
                self.broken(client)
                return
            else:
                client.count += len(early)
                client.eof = not early
        data = backend.header(client.fd, self.address) + early if backend.proxied else early
        try:
            sent = write(server.fd, data)
        except OSError as error:
            # For the next server; the header is written anew there, and must not be kept with it.
            self.early = early or None
            self.failed(error)
            return
        self.opened(server)
        if sent < len(data):
            client.hold(memoryview(data)[sent:])
        elif client.eof:
            client.finish()

    def opened(self, server: Side) -> None:
        """Relay in both directions from now on."""
        traffic, client = self.traffic, self.client
        self.phase = OPEN
        self.ready_at = client.active = server.active = traffic.now
        self.early = None
        self.tried = ()
        traffic.hurried.discard(self)
        client.other, server.other = server, client
        watcher = server.watcher
        watcher.stop()
        watcher.events = READ
        watcher.start(server.on_readable)
        client.watcher.start(client.on_first)

    def failed(self, error: OSError) -> None:
        """Note that a connect has failed, and go on."""
        self.retry(_CONNECT_REASONS.get(error.errno or 0, EndReason.CONNECT_FAILED))

    def retry(self, reason: EndReason) -> None:
        """Try another server, the same one after a while, or end: the connect has failed."""
        server, member, pool, traffic = self.server, self.member, self.backend.pool, self.traffic
        if server is not None:
            self.server = None
            os.close(server.release())
        if member is None:
            self.end(reason)
            return
        self.member = None
        self.tried += (member,)
        member.failed += 1
        if reason in _SERVERS_FAULT and member.address is not None:
            self.suspect(member)
        traffic.pass_on(pool.end(member))
        # One that accepts and resets before the first byte may be about to stop: others can still serve this
        # client, but to come back to it would only multiply its load.
        alone = reason is EndReason.SERVER_ABORT and not pool.has_others(self.tried)
        if alone or self.attempts >= self.backend.retries:
            self.end(reason)
            return
        self.attempts += 1
        traffic.reasons[reason] += 1
        decision = pool.place(self.key, avoid=self.tried)
        self.settle(decision)

    def suspect(self, member: PoolMember) -> None:
        """Have health look at a server that fails its clients."""
        if member.suspect():
            self.traffic.doubted.add(member)

    def server_down(self) -> None:
        """End, or connect elsewhere where there is no connection yet: the server has gone down."""
        try:
            if self.phase == OPEN:
                self.end(EndReason.SERVER_DOWN)
            else:
                self.retry(EndReason.SERVER_DOWN)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def broken(self, side: Side) -> None:
        """End: a side was reset, or has gone.

        A server that resets before it has said a word has refused the connection, with other means.
        """
        if side is self.client:
            self.end(EndReason.CLIENT_ABORT)
            return
        if side.count == 0 and self.member is not None:
            self.suspect(self.member)
        self.end(EndReason.SERVER_ABORT)

    def fail(self, error: Exception) -> None:
        """Report a bug, and end."""
        self.traffic.fault(error)
        self.end(EndReason.INTERNAL)

    def expire(self, now: float) -> None:
        """End what has lasted too long."""
        try:
            if self.server is not None and self.phase == OPEN:
                self.expire_open(self.server, now)
            elif now >= self.deadline and self.phase != CLOSED:
                self.expire_early()
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def expire_early(self) -> None:
        """End a wait of a session that has no connection to a server yet."""
        if self.phase == QUEUED:
            self.end(EndReason.QUEUE_TIMEOUT)
        elif self.phase == DELAYED and self.member is not None:
            self.connect(self.member)
        else:
            self.retry(EndReason.CONNECT_TIMEOUT)

    def expire_open(self, server: Side, now: float) -> None:
        """End where a side is idle for too long, which is shorter after a FIN was sent there, or too old."""
        client, frontend, backend = self.client, self.frontend, self.backend
        self.count_bytes()
        if not self.kept and now - self.ready_at >= _BRIEF:
            # The client's side has it from its listener; here each option is a system call, which a brief
            # connection is spared.
            self.kept = True
            set_on_connection(server.fd, backend.keepalive)
        if now - client.active >= (frontend.timeout_client_fin if client.shut else frontend.timeout_client):
            self.expire_side(
                client, EndReason.CLIENT_FIN_TIMEOUT if client.shut else EndReason.CLIENT_TIMEOUT
            )
        if now - server.active >= (backend.timeout_server_fin if server.shut else backend.timeout_server):
            self.expire_side(
                server, EndReason.SERVER_FIN_TIMEOUT if server.shut else EndReason.SERVER_TIMEOUT
            )
        if 0.0 < self.expires <= now:
            self.end(EndReason.MAX_AGE)

    def expire_side(self, side: Side, reason: EndReason) -> None:
        """End, unless it is the other side that keeps this one waiting, or the peer takes what was sent."""
        if self.phase == CLOSED or (side.blocked() and not side.other.blocked()):
            return
        if side.shut and side.takes():
            side.active = self.traffic.now
            return
        self.end(reason)

    def count_bytes(self) -> None:
        """Add what was moved since the last time to the counters."""
        member, server = self.member, self.server
        if member is None or server is None:
            return
        received, sent = self.client.count - self.counted_in, server.count - self.counted_out
        if received == 0 and sent == 0:
            return
        self.counted_in += received
        self.counted_out += sent
        frontend = self.frontend
        frontend.bytes_in += received
        frontend.bytes_out += sent
        member.bytes_in += received
        member.bytes_out += sent
        if sent > 0:
            member.errors = 0
        self.traffic.changed = True

    def waits(self) -> tuple[float, float]:
        """Return the seconds until the first connect, and from there on; -1.0 for what was not reached."""
        queued = self.connect_at - self.started if self.connect_at else -1.0
        connected = self.ready_at - self.connect_at if self.ready_at else -1.0
        return queued, connected

    def end(self, reason: EndReason) -> None:
        """Close both sides, count, and let the next one in; harmless where it has ended already."""
        phase, traffic, member = self.phase, self.traffic, self.member
        if phase == CLOSED:
            return
        self.report(reason)
        self.count_bytes()
        self.phase = CLOSED
        traffic.live.discard(self)
        traffic.hurried.discard(self)
        traffic.reasons[reason] += 1
        traffic.changed = True
        self.close(reason)
        self.frontend.current -= 1
        if phase != OPEN:
            self.frontend.failed += 1
            self.backend.pool.leave(self)
        if member is not None:
            self.member = None
            traffic.pass_on(self.backend.pool.end(member))
        if traffic.paused:
            traffic.make_room()

    def report(self, reason: EndReason) -> None:
        """Log the end; a bug there costs the line, and must not keep the session from its end."""
        report = self.traffic.report
        if report is None:
            return
        try:
            report(self, reason)
        except Exception as error:  # noqa: BLE001  # the boundary: see above
            self.traffic.fault(error)

    def close(self, reason: EndReason) -> None:
        """Close both descriptors; a server that no FIN came from or went to is reset: no TIME_WAIT for it.

        As in HAProxy silence and age end with a FIN, and with a RST where bytes for that peer are dropped.
        """
        client, server, clean = self.client, self.server, reason in _CLEAN
        whole = clean and (server is None or not server.blocked())
        if server is not None:
            ended = clean and (server.eof or server.shut) and not client.blocked()
            (os.close if ended else reset)(server.release())
        (os.close if whole else reset)(client.release())
