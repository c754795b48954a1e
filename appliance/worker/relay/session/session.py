"""A connection from a client to a server: a state object that the events of its two sockets drive.

It has no greenlet, no timer and no buffer: a greenlet per connection costs three to four times the processor
time. Everything works on raw non-blocking descriptors: a socket object costs a getsockname. This module
covers a session's way to a server. `session_state` holds what it counts and how it ends, `sides` moves its
bytes, and `session_phases` defines which events may happen when.

Plain Python that Cython compiles unchanged; `session.pxd` gives it types.
"""

from collections.abc import Callable
from random import random
from time import monotonic
from typing import Final

from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import MustWait
from appliance.model.end_reasons import EndReason
from appliance.worker.relay.copying import Side
from appliance.worker.relay.poll_events import WRITABLE
from appliance.worker.relay.raw_io import AGAIN, CHUNK
from appliance.worker.relay.raw_sockets import close, connect
from appliance.worker.relay.session.session_end import CONNECT_REASONS, PORT_GIVEN, SERVERS_FAULT
from appliance.worker.relay.session.session_phases import (
    CLOSED,
    CONNECTING,
    DELAYED,
    OPEN,
    QUEUED,
    SessionEvent,
    UnexpectedEventError,
    by_phase,
)
from appliance.worker.relay.session.session_state import SessionState

_FAR: Final = 64
"""Connects that wait for an event after one that did not finish at once."""

_MOST_PASSED_OVER: Final = 16
"""Ports of sessions on other nodes that one session meets before that counts as a failed connect."""


class Session(SessionState):
    """A client's connection to a server: placed by its pool, queued, connected, and tried again.

    It is no object separate from the state: creating a second object per connection would cost time.
    """

    __slots__ = ()

    def begin(self) -> None:
        """Find a server, wait for one, or end; the acceptor calls it once."""
        try:
            backend = self.backend
            if backend.hashed:
                self.key = backend.key(self.client.fd, self.address)
            if self.frontend.max_age > 0.0:
                self.max_age_at = self.frontend.expiry(self.traffic.now, chance=random())  # noqa: S311  # no secret
            self.act_on(backend.pool.place(self.key))
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def act_on(self, decision: PoolMember | MustWait | EndReason) -> None:
        """Apply the pool's decision: connect, wait, or end."""
        if isinstance(decision, PoolMember):
            self.assign(decision)
            if decision in self.tried:
                self.delay(self.backend.retry_delay)
            else:
                self.connect(decision)
        elif isinstance(decision, MustWait):
            self.enqueue()
        else:
            self.end(decision)

    def assign(self, member: PoolMember) -> None:
        """Note that the pool counts this session at a member; after a failed connect it is a retry.

        HAProxy counts the same way: `wretr` for the same server again, `wredis` for another one.
        """
        self.member = member
        if self.tried:
            again = member in self.tried
            left = self.tried[-1]
            if again:
                left.retried += 1
            else:
                left.redispatched += 1
            self.traffic.reasons[EndReason.RETRIED if again else EndReason.REDISPATCHED] += 1

    def enqueue(self) -> None:
        """Wait in the pool's queue, and watch the client: if it leaves, its place becomes free."""
        refused = self.backend.pool.enqueue(self, self.key, avoid=self.tried)
        if refused is not None:
            self.end(refused)
            return
        if self.phase != QUEUED:
            self.phase = QUEUED
            self.deadline = self.traffic.now + self.backend.timeout_queue
            client = self.client
            client.watch()
            if client.readable:
                self.on_early()

    def delay(self, seconds: float) -> None:
        """Keep the place at the member, and connect after `seconds`."""
        self.phase = DELAYED
        self.deadline = self.traffic.now + seconds

    def on_side_events(self, side: Side, events: int) -> None:
        """Handle an event before the relay: the client sends, or the server's connect has ended."""
        if side is not self.client:
            self.on_connected(events)
            return
        if events & ~WRITABLE:
            side.note(events)
            if self.phase in (QUEUED, DELAYED):  # otherwise it is read with the first write
                self.on_early()

    def on_early(self) -> None:
        """Keep what the client sends before it has a server; a client whose connection was reset has left."""
        client, transfer = self.client, self.traffic.transfer
        while client.readable and (self.early is None or len(self.early) < CHUNK):
            size = transfer.receive(client.fd)
            if size == AGAIN:
                client.readable = client.uncertain = False
            elif size < 0:
                self.side_failed(client)
                return
            else:
                self.keep_early(bytes(transfer.rest()))
            if size == 0:
                return

    def keep_early(self, data: bytes) -> None:
        """Keep at most two chunks; no data is the client's FIN.

        A client that sent something before its FIN wants the answer: the FIN is read again when there is a
        server, as every read after it returns nothing. A client that sent nothing has left.
        """
        if not data:
            if self.early is None:
                self.end(EndReason.CLIENT_ABORT)
            return
        self.client.count += len(data)
        self.early = data if self.early is None else self.early + data

    def place_free(self) -> None:
        """Take the place that another session has left; the pool has just removed this one from its queue.

        The place is taken now, before another session can, but the connect waits for the next turn of the
        loop: the caller is a session that ends, and a connect that fails at once would wake the next one in
        the queue from in here, and so on through a long queue.
        """
        try:
            if self.phase != QUEUED:
                self.report_unexpected(SessionEvent.PLACE_FREE)
                return
            decision = self.backend.pool.place(self.key, avoid=self.tried)
            if not isinstance(decision, PoolMember) or decision in self.tried:
                self.act_on(decision)
                return
            self.assign(decision)
            self.delay(0.0)
            self.traffic.poller.soon(self.on_delay_over)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session, not the one that ends
            self.fail(error)

    def on_delay_over(self) -> None:
        """Connect to the server that was waited for, unless the session has since moved on."""
        try:
            _ON_DELAY_OVER[self.phase](self)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def connect(self, member: PoolMember) -> None:
        """Begin to connect to a member at which this session has a place."""
        if self.phase != CONNECTING:
            self.phase = CONNECTING  # what the client sends now is read with the first write
        backend = self.backend
        now = self.traffic.now
        if self.connect_at == 0.0:
            self.connect_at = now
        self.deadline = now + backend.timeout_connect
        address = member.address
        if address is None:
            self.retry(EndReason.CONNECT_FAILED)
            return
        self.dialled_at = monotonic()
        source = backend.source
        fd = connect(address, backend.options) if source is None else source.connect(self.client.fd, address)
        if fd < 0:
            self.connect_failed(-fd)
            return
        self.server = server = Side(self, fd)
        if backend.far > 0:
            backend.far -= 1
            server.watch()
        else:
            self.write_at_once(server)

    def write_at_once(self, server: Side) -> None:
        """Write without waiting for the connect's event, if the client has sent something.

        To a server on this machine the handshake is over when connect(2) returns: this saves the event that
        would report that, and work that the client does not wait for comes after the write.
        """
        if self.early is None:
            size = self.receive_first(self.client)
            if size == AGAIN:
                server.watch()
                return
            if size < 0:
                return
        self.write_first(server)

    def on_connected(self, events: int) -> None:
        """Find out by the first write whether the connection was made, and relay; the connect has ended."""
        server = self.server
        if server is None:
            self.report_unexpected(SessionEvent.CONNECTED)
            return
        if self.send_first(server) and events & ~WRITABLE:
            server.note(events)
            server.go_on()

    def send_first(self, server: Side) -> bool:
        """Read what the client has sent so far, and write it; return whether the session relays now."""
        if self.early is None:
            size = self.receive_first(self.client)
            if size < 0 and size != AGAIN:
                return False
        return self.write_first(server)

    def write_first(self, server: Side) -> bool:
        """Write the first bytes: PROXY header and what the client sent; return whether it relays now.

        A socket is writable when its connect has succeeded or failed. After a failure a write, even one of no
        bytes, returns the reason: that saves a getsockopt of SO_ERROR.
        """
        client, transfer = self.client, self.traffic.transfer
        early = self.early
        if self.backend.proxied:
            early = bytes(transfer.rest()) if early is None else early
            transfer.put(self.backend.header(client.fd, self.address) + early)
        elif early is not None:
            transfer.put(early)
        sent = transfer.send(server.fd)
        if sent < 0:
            # Kept for the next server, without the header: the next connect builds a new one.
            self.early = (bytes(transfer.rest()) if early is None else early) or None
            if sent == AGAIN and not server.registered:
                self.backend.far = _FAR
                server.watch()
            else:
                self.connect_failed(-sent)
            return False
        self.enter_open(server)
        if transfer.left() > 0:
            client.hold(transfer.rest())
        elif client.eof:
            client.finish()
        server.watch()
        if client.registered:
            client.go_on()
        else:
            client.watch()
        return True

    def receive_first(self, client: Side) -> int:
        """Return how much was read from the client, 0 for a FIN, or minus errno: ended unless AGAIN."""
        size = self.traffic.transfer.receive(client.fd)
        if size >= 0:
            client.count += size
            client.eof = size == 0
        elif size != AGAIN:
            self.side_failed(client)
        return size

    def enter_open(self, server: Side) -> None:
        """Relay in both directions from now on: the sides follow their events themselves."""
        traffic, client = self.traffic, self.client
        self.phase = OPEN
        self.ready_at = client.active_at = server.active_at = traffic.now
        self.count_connected()
        self.early = None
        self.tried = ()
        traffic.every_tick.discard(self)
        client.other, server.other = server, client
        client.relays = server.relays = client.first = True

    def count_connected(self) -> None:
        """Count the connect at its server and in its pool, with the times that it and the queue took."""
        member = self.member
        if member is None:
            return
        seconds = monotonic() - self.dialled_at
        member.count_connect(self.connect_at - self.started, seconds)
        self.backend.count_connect(seconds)

    def connect_failed(self, code: int) -> None:
        """Continue after a connect that failed with this errno."""
        server, member = self.server, self.member
        known = code in PORT_GIVEN and self.backend.source is not None
        if known and server is not None and member is not None and self.passed_over < _MOST_PASSED_OVER:
            self.passed_over += 1
            self.server = None
            close(server.release())
            self.connect(member)
            return
        self.retry(CONNECT_REASONS.get(code, EndReason.CONNECT_FAILED))

    def retry(self, reason: EndReason) -> None:
        """After a failed connect, try another server, the same one after a while, or end."""
        server, member, pool, traffic = self.server, self.member, self.backend.pool, self.traffic
        if server is not None:
            self.server = None
            close(server.release())
        if member is None:  # cannot happen: a session that connects has a place
            self.end(reason)
            return
        self.member = None
        self.tried += (member,)
        member.failed += 1
        if reason in SERVERS_FAULT and member.address is not None:
            self.count_server_error(member)
        traffic.wake_queued(pool.release(member))
        # A server that accepts and resets before the first byte may be about to stop: others can still serve
        # this client, but retrying it would only multiply its load.
        alone = reason is EndReason.SERVER_ABORT and not pool.has_others(self.tried)
        if alone or self.attempts >= self.backend.retries:
            member.given_up += 1
            self.end(reason)
            return
        self.attempts += 1
        traffic.reasons[reason] += 1
        decision = pool.place(self.key, avoid=self.tried)
        self.act_on(decision)

    def leave_server(self, reason: EndReason) -> None:
        """End, or connect elsewhere if there is no connection yet; `reason` is a key of `_ON_SERVER_LOST`."""
        try:
            _ON_SERVER_LOST[reason][self.phase](self)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def expire(self, now: float) -> None:
        """End a session that has lasted too long; `traffic` calls this at ticks."""
        try:
            if self.server is not None and self.phase == OPEN:
                self.expire_open(self.server, now)
            elif now >= self.deadline:
                _ON_DEADLINE[self.phase](self)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this session and no other
            self.fail(error)

    def connect_after_delay(self) -> None:
        """Connect to the server at which this session has a place."""
        if self.member is None:
            raise UnexpectedEventError("delayed, and no server")
        self.connect(self.member)


def _ignore(_: Session) -> None:
    """Do nothing: a tick or a callback is late, and the session has already moved on or ended."""


_ON_DELAY_OVER: Final = by_phase(
    SessionEvent.DELAY_OVER,
    {
        QUEUED: _ignore,
        DELAYED: Session.connect_after_delay,
        CONNECTING: _ignore,
        OPEN: _ignore,
        CLOSED: _ignore,
    },
)
_ON_DEADLINE: Final = by_phase(
    SessionEvent.DEADLINE,
    {
        QUEUED: lambda session: session.end(EndReason.QUEUE_TIMEOUT),
        DELAYED: Session.connect_after_delay,
        CONNECTING: lambda session: session.retry(EndReason.CONNECT_TIMEOUT),
        CLOSED: _ignore,
    },
)
"""OPEN is not here: `expire` tests it first, as nearly every examined session is open."""


def _on_server_lost(reason: EndReason) -> tuple[Callable[[Session], None], ...]:
    return by_phase(
        SessionEvent.SERVER_LOST,
        {
            DELAYED: lambda session: session.retry(reason),
            CONNECTING: lambda session: session.retry(reason),
            OPEN: lambda session: session.end(reason),
        },
    )


_ON_SERVER_LOST: Final = {
    reason: _on_server_lost(reason) for reason in (EndReason.SERVER_DOWN, EndReason.SERVER_UP)
}
