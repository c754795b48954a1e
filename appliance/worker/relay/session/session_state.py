"""The state and counters of a session, its timeouts once it is open, and its end."""

from typing import Final

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_member import PoolMember
from appliance.model.end_reasons import EndReason
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.backend import Backend
from appliance.worker.relay.copying import Side
from appliance.worker.relay.raw_sockets import set_on_connection
from appliance.worker.relay.session.session_end import close_sides
from appliance.worker.relay.session.session_phases import (
    CLOSED,
    CONNECTING,
    OPEN,
    PHASES,
    SessionEvent,
    UnexpectedEventError,
)
from appliance.worker.relay.session.session_timeouts import first_due, overdue

_COMPLETED: Final = EndReason.COMPLETED  # looking up a member of an enumeration costs a call

_BRIEF: Final = 1.0
"""Age from which a connection to a server gets TCP keepalive, seconds; probes start much later."""


class SessionState:
    """A client's connection; `session.Session` is the only kind, and adds the way to a server.

    `member` is the server at which it has a place, `tried` those that it could not connect to, `early` what
    the client sent before there was a server. `counted_in` and `counted_out` are the bytes that are in the
    counters already. Times are monotonic seconds, 0.0 if not reached: `deadline` ends a phase before `open`,
    `max_age_at` the session; `connect_at` is the first connect, `ready_at` the last one's end, `dialled_at`
    the last one's beginning, by the clock itself, not by the tick. `passed_over` counts ports that were not
    to be used.
    """

    # Slots save a dictionary for each of many thousand sessions, and are fields of a C struct when compiled.
    __slots__ = (
        "address",
        "attempts",
        "backend",
        "client",
        "connect_at",
        "counted_in",
        "counted_out",
        "deadline",
        "dialled_at",
        "early",
        "frontend",
        "keepalive_set",
        "key",
        "max_age_at",
        "member",
        "number",
        "passed_over",
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
        self.member: PoolMember | None = None
        self.tried: tuple[PoolMember, ...] = ()
        self.early: bytes | None = None
        self.key = b""
        self.keepalive_set = False
        self.phase = CONNECTING
        self.attempts = self.passed_over = 0
        self.counted_in = 0
        self.counted_out = 0
        self.deadline = 0.0
        self.max_age_at = 0.0
        self.connect_at = 0.0
        self.ready_at = 0.0
        self.dialled_at = 0.0
        traffic.last_number += 1
        self.number = traffic.last_number
        traffic.live.add(self)
        traffic.every_tick.add(self)

    def place_free(self) -> None:
        """Find a server; see `session`."""
        raise NotImplementedError

    def on_side_events(self, side: Side, events: int) -> None:
        """Handle an event of a side before the relay; see `session`."""
        raise NotImplementedError

    def expire(self, now: float) -> None:
        """End a session that has lasted too long; see `session`."""
        raise NotImplementedError

    def expire_open(self, server: Side, now: float) -> None:
        """Count the bytes, and end if a side is silent for too long, or the session too old."""
        client, backend = self.client, self.backend
        self.count_bytes()
        if not self.keepalive_set and now - self.ready_at >= _BRIEF:
            # The client's side has it from its listener; here each option is a system call, which brief
            # connections are spared.
            self.keepalive_set = True
            set_on_connection(server.fd, backend.keepalive)
        reason = overdue(client, server, frontend=self.frontend, backend=backend, now=now)
        if reason is None and 0.0 < self.max_age_at <= now:
            reason = EndReason.MAX_AGE
        if reason is not None:
            self.end(reason)
            return
        due = first_due(client, server, frontend=self.frontend, backend=backend)
        if self.max_age_at > 0.0:
            due = min(due, self.max_age_at)
        if not self.keepalive_set:
            due = min(due, self.ready_at + _BRIEF)
        self.traffic.first_due = min(self.traffic.first_due, due)

    def count_bytes(self) -> None:
        """Add the bytes moved since the last call to the counters of frontend and server.

        Done once a second and at the end, not with each read, which is the most frequent code of all.
        """
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
            member.errors = 0  # error_limit counts errors in a row, and this server has just answered
        self.traffic.changed = True

    def count_server_error(self, member: PoolMember) -> None:
        """Count an error of a server; at its error limit `health` is asked to check it now."""
        if member.count_error():
            self.traffic.failing_servers.add(member)

    def count_abort(self, member: PoolMember, reason: EndReason) -> None:
        """Count at the server which side has broken the connection, if one has."""
        if reason is EndReason.CLIENT_ABORT:
            member.client_aborts += 1
        elif reason is EndReason.SERVER_ABORT:
            member.server_aborts += 1

    def side_failed(self, side: Side) -> None:
        """End: the connection of a side was reset or has broken.

        A server that resets before it has sent a byte has refused the connection just as with a RST to the
        SYN, and it counts as an error of the server.
        """
        if side is self.client:
            self.end(EndReason.CLIENT_ABORT)
            return
        if side.count == 0 and self.member is not None:
            self.count_server_error(self.member)
        self.end(EndReason.SERVER_ABORT)

    def report_unexpected(self, event: SessionEvent) -> None:
        """Report an event that cannot happen in this phase, and do nothing else."""
        self.traffic.fault(UnexpectedEventError(f"session {self.number}: {event} while {PHASES[self.phase]}"))

    def fail(self, error: Exception) -> None:
        """Report a bug, and end."""
        self.traffic.fault(error)
        self.end(EndReason.INTERNAL)

    def waits(self) -> tuple[float, float]:
        """Return the seconds until the first connect, and from there on; -1.0 if not reached."""
        queued = self.connect_at - self.started if self.connect_at else -1.0
        connected = self.ready_at - self.connect_at if self.ready_at else -1.0
        return queued, connected

    def end(self, reason: EndReason) -> None:
        """Close both sides, count, and let the next one in; harmless if it has ended already."""
        phase, traffic, member = self.phase, self.traffic, self.member
        if phase == CLOSED:
            return
        self.report(reason)
        self.count_bytes()
        self.phase = CLOSED
        traffic.live.discard(self)
        traffic.every_tick.discard(self)
        traffic.reasons[reason] += 1
        traffic.changed = True
        close_sides(self.client, self.server, reason)
        self.frontend.current -= 1
        if phase != OPEN:
            self.frontend.failed += 1
            self.backend.pool.dequeue(self)
        if member is not None:
            if phase == OPEN:
                member.count_end(traffic.now - self.started)
            if reason is not _COMPLETED:
                self.count_abort(member, reason)
            self.member = None
            traffic.wake_queued(self.backend.pool.release(member))
        if traffic.paused:
            traffic.make_room()

    def report(self, reason: EndReason) -> None:
        """Log the end; a bug there costs only the line, and must not prevent the session's end."""
        report = self.traffic.report
        if report is None:
            return
        try:
            report(self, reason)
        except Exception as error:  # noqa: BLE001  # the boundary: see above
            self.traffic.fault(error)
