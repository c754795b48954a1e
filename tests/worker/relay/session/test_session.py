"""Sessions in this process: what a whole worker's tests cannot bring about at will."""

import errno
import os
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from random import Random

import gevent
import pytest
from support.processes.greenlets import until
from support.worker.lone_sessions import LoneSessions
from support.worker.lone_worker import up
from support.worker.trace import is_reset, read_all

from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import PoolState
from appliance.model.end_reasons import EndReason
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot.pools import Balance, SendProxy
from appliance.wire import proxy_protocol
from appliance.worker.relay import raw_sockets
from appliance.worker.relay.raw_io import AGAIN, CHUNK, Transfer
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import CLOSED, CONNECTING, DELAYED, OPEN, QUEUED
from appliance.worker.relay.virtual_source import VirtualSource

pytestmark = pytest.mark.sockets


@pytest.fixture
def setup() -> Iterator[LoneSessions]:
    """Give a setup; whatever is left is closed."""
    with ExitStack() as stack:
        made = LoneSessions(stack)
        yield made
        made.traffic.end_all(EndReason.KILLED)
        made.traffic.close()


def test_bug_costs_one_session(setup: LoneSessions):
    """An error of ours is reported, ends its session with a reset, and no other."""
    good, session = setup.session()
    setup.until(lambda: session.ready_at)
    server = setup.server()
    setup.member.address = ("127.0.0.1", 99999)
    bad, _ = setup.session()
    assert [type(fault) for fault in setup.faults] == [OverflowError]
    assert setup.traffic.reasons[EndReason.INTERNAL] == 1
    assert is_reset(bad)
    good.sendall(b"still here")
    setup.until(lambda: session.client.count == 10)
    assert server.recv(100) == b"still here"
    assert (setup.member.current, setup.frontend.current) == (1, 1)


def test_without_pipes_bulk_is_copied(setup: LoneSessions):
    """With all pipes lent a stuck reader is waited for with one chunk held, which then arrives in order."""
    while setup.traffic.pipes.take() is not None:
        pass
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    server = setup.server()
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    data = os.urandom(1 << 16)
    sent = 0

    def blocked() -> bool:
        nonlocal sent
        try:
            sent += client.send(data)
        except BlockingIOError:
            return session.client.backlog is not None
        return False

    setup.until(blocked)
    assert session.client.pipe is None
    assert len(session.client.backlog or b"") <= 1 << 14
    server.setblocking(False)  # noqa: FBT003  # the same
    received = bytearray()

    def taken() -> bool:
        try:
            received.extend(server.recv(1 << 20))
        except BlockingIOError:
            return len(received) == sent
        return False

    setup.until(taken)
    whole = data * (sent // len(data) + 1)
    assert bytes(received[: len(data)]) == whole[: len(data)]
    assert session.client.backlog is None


def test_pipe_returns_when_a_session_ends_with_bytes_in_it(setup: LoneSessions):
    """A spliced direction that is cut in the middle gives its pipe back."""
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    server = setup.server()
    for each in (client, server):
        each.setblocking(False)  # noqa: FBT003  # the standard library's signature

    def stuck() -> bool:
        try:
            client.send(bytes(1 << 16))
        except BlockingIOError:
            if session.client.pipe is None:  # reads were short: not yet bulk
                server.recv(1 << 20)
            return session.client.pipe is not None and session.client.blocked()
        return False

    setup.until(stuck)
    assert session.client.pipe is not None
    assert setup.traffic.pipes.lent == 1
    session.end(EndReason.KILLED)
    assert setup.traffic.pipes.lent == 0


def test_reset_while_the_other_side_is_stuck_ends_the_session(setup: LoneSessions):
    """What is held for a server that has been reset is dropped, and its client is reset."""
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    server = setup.server()
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature

    def stuck() -> bool:
        try:
            client.send(bytes(1 << 16))
        except BlockingIOError:
            return session.client.blocked()
        return False

    setup.until(stuck)
    raw_sockets.reset(server.detach())
    setup.until(lambda: setup.traffic.reasons[EndReason.SERVER_ABORT] == 1)
    assert not setup.traffic.live
    assert not setup.faults


def test_end_is_harmless_twice(setup: LoneSessions):
    """A session that has ended ends no second time, and counts once."""
    _, session = setup.session()
    session.end(EndReason.KILLED)
    session.end(EndReason.DRAIN_CUT)
    session.expire(1e12)
    assert setup.traffic.reasons[EndReason.DRAIN_CUT] == 0
    assert (setup.member.current, setup.frontend.current) == (0, 0)


def test_what_the_client_has_sent_is_written_at_once(setup: LoneSessions):
    """A connect to this machine has ended when the call returns: no event is waited for."""
    client, session = setup.session(b"hello")
    assert session.phase == OPEN
    server = setup.server()
    assert server.recv(10) == b"hello"
    server.sendall(b"answer")
    setup.until(lambda: session.server.count == 6)
    assert client.recv(10) == b"answer"


def test_connect_that_has_not_ended_is_waited_for(setup: LoneSessions):
    """What was to be written at once is kept, and the next sessions do not try."""
    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        setup.member.address = full.getsockname()
        for _ in range(2):  # with these its queue is full, and a SYN more is not answered
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)  # noqa: FBT003  # the standard library's signature
            filler.connect_ex(full.getsockname())
        _, session = setup.session(b"hello")
        assert (session.phase, session.early, session.client.count) == (CONNECTING, b"hello", 5)
        far = setup.backend.far
        assert far > 0
        _, another = setup.session(b"hello")
        assert (another.phase, another.early, setup.backend.far) == (CONNECTING, None, far - 1)
        setup.traffic.end_all(EndReason.KILLED)


def test_port_of_a_session_on_another_node_is_passed_over(setup: LoneSessions):
    """The session connects from another one, and only after many of them that is a failed connect."""
    setup.backend.source = VirtualSource(
        ["127.0.0.1"], (20000, 29999), (), on_failure=lambda *_: pytest.fail("no port")
    )
    setup.backend.far = 100
    _, session = setup.session(b"hello")
    for count in range(1, 17):
        former = session.server
        session.connect_failed(errno.EACCES if count % 2 else errno.ENOPROTOOPT)
        assert (session.phase, session.passed_over, setup.member.current) == (CONNECTING, count, 1)
        assert session.server is not former
    assert setup.member.failed == 0
    session.connect_failed(errno.EACCES)
    assert setup.member.failed == 1


def test_connect_that_ends_later_is_followed_by_what_was_kept(setup: LoneSessions):
    """The first bytes arrive once, and the rest behind them."""
    setup.backend.far = 1
    client, session = setup.session(b"hello")
    assert session.phase == CONNECTING
    session.early, session.client.count = client_bytes(session), 5
    client.sendall(b" again")
    setup.until(lambda: session.client.count == 11)
    client.shutdown(socket.SHUT_WR)
    setup.until(lambda: session.client.eof)
    assert read_all(setup.server()) == b"hello again"


def client_bytes(session: Session) -> bytes:
    """Read what the client has sent, as the session would."""
    return os.read(session.client.fd, 100)


def test_server_that_resets_before_the_first_byte_is_left_for_another():
    """A server that accepts and resets at once, as one that is stopping, costs its client nothing."""
    with ExitStack() as stack:
        setup = LoneSessions(stack, servers=2)
        client, session = setup.session()
        client.sendall(b"hello")
        raw_sockets.reset(setup.server(0).detach())
        setup.until(lambda: session.ready_at)
        assert setup.server(1).recv(10) == b"hello"
        assert (
            setup.traffic.reasons[EndReason.SERVER_ABORT]
            == setup.traffic.reasons[EndReason.REDISPATCHED]
            == 1
        )
        setup.traffic.end_all(EndReason.KILLED)


def test_only_server_that_resets_before_the_first_byte_is_not_tried_again(setup: LoneSessions):
    """Where there is no other server the client sees the reset."""
    client, session = setup.session()
    raw_sockets.reset(setup.server().detach())
    setup.until(lambda: not setup.traffic.live)
    assert is_reset(client)
    assert session.attempts == 0
    assert setup.traffic.reasons[EndReason.SERVER_ABORT] == 1


@pytest.mark.parametrize("version", [SendProxy.V1, SendProxy.V2])
@pytest.mark.parametrize("first", [b"", b"early "])
def test_proxy_header_is_written_once_to_the_server_that_takes_over(version: SendProxy, first: bytes):
    """After a failed connect the next server gets one header, then all the client's bytes, early or late."""
    with ExitStack() as stack:
        setup = LoneSessions(stack, servers=2, send_proxy=version)
        setup.origins[0].close()
        client, session = setup.session(first)
        setup.until(lambda: session.ready_at)
        client.sendall(b"late")
        setup.until(lambda: session.client.count == len(first + b"late"))
        assert setup.traffic.reasons[EndReason.REDISPATCHED] == 1
        client.shutdown(socket.SHUT_WR)
        setup.until(lambda: session.client.eof)
        header = proxy_protocol.encode(version, client.getsockname(), client.getpeername())
        assert read_all(setup.server(1)) == header + first + b"late"
        setup.traffic.end_all(EndReason.KILLED)


def jam(setup: LoneSessions, session: Session, origin: socket.socket) -> int:
    """Let the server write until its client takes no more and all of it has been read; return how much."""
    origin.setblocking(False)  # noqa: FBT003  # the standard library's signature
    sent = 0

    def read() -> bool:
        return session.server.count == sent or session.server.blocked()

    while not session.server.blocked():
        sent += origin.send(bytes(10_000))
        setup.until(read)
    return sent


@pytest.mark.parametrize(
    ("half_closed", "reason"), [(False, EndReason.SERVER_TIMEOUT), (True, EndReason.SERVER_FIN_TIMEOUT)]
)
def test_slow_client_does_not_cost_its_server_time(setup: LoneSessions, half_closed: bool, reason: EndReason):  # noqa: FBT001  # a parameter
    """While its client is slow a server is not read; its timeout begins when it is read again."""
    setup.backend.timeout_server = setup.backend.timeout_server_fin = 10.0
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    origin = setup.server()
    if half_closed:
        client.shutdown(socket.SHUT_WR)
        setup.until(lambda: session.client.eof)
    sent = jam(setup, session, origin)
    setup.traffic.now = later = setup.traffic.now + 30.0
    session.expire(later)
    received = 0
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    with gevent.Timeout(10):
        while received < sent:
            with suppress(BlockingIOError):
                received += len(client.recv(1 << 20))
            gevent.sleep(0.001)
    session.expire(later + 9.9)
    assert session in setup.traffic.live
    session.expire(later + 10.0)
    assert setup.traffic.reasons[reason] == 1
    client.setblocking(True)  # noqa: FBT003  # the same
    assert not is_reset(client)


class Refusing(Transfer):
    """Answers as sockets do that were called ready and are not; counts how often it was asked to read."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0

    def receive(self, source: int) -> int:
        """Find nothing."""
        del source
        self.reads += 1
        return AGAIN

    def write(self, target: int, data: memoryview) -> int:
        """Find no room."""
        del target, data
        return AGAIN

    def splice(self, source: int, target: int, size: int) -> int:
        """Find neither."""
        del source, target, size
        return AGAIN


def test_socket_that_is_readable_for_nothing_is_read_once(setup: LoneSessions):
    """Where the kernel says readable and then EAGAIN, a side waits for the next event."""
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    refusing = Refusing()
    setup.traffic.transfer = refusing
    client.sendall(b"a")
    setup.until(lambda: refusing.reads)
    for _ in range(10):
        setup.traffic.tick()
        gevent.sleep(0.001)
    assert refusing.reads == 1
    setup.traffic.transfer = Transfer()
    client.sendall(b"b")
    setup.until(lambda: session.client.count == 2)
    assert setup.server().recv(10) == b"ab"


def test_socket_that_is_writable_for_nothing_is_tried_at_each_tick(setup: LoneSessions):
    """Without memory for TCP a write fails though the socket is writable, and no event need follow."""
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    sent = jam(setup, session, setup.server())
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    setup.traffic.transfer = Refusing()
    received = 0

    def taken() -> bool:
        nonlocal received
        with suppress(BlockingIOError):  # what its kernel has: there is room now
            received += len(client.recv(1 << 22))
        return bool(setup.traffic.resting)

    until(taken)
    for _ in range(3):
        setup.traffic.tick()
        assert len(setup.traffic.resting) == 1
    setup.traffic.transfer = Transfer()
    setup.until(lambda: taken() or received == sent)
    assert received == sent


def test_rest_ends_with_the_session(setup: LoneSessions):
    """A session that ends while a side rests is not tried again."""
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    jam(setup, session, setup.server())
    setup.traffic.transfer = Refusing()
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    until(lambda: client.recv(1 << 22) and setup.traffic.resting)
    session.end(EndReason.KILLED)
    setup.traffic.tick()
    assert not setup.faults
    assert not setup.traffic.resting


def test_client_that_loses_bytes_is_reset(setup: LoneSessions):
    """A client that is too slow to take what is held for it does not see a clean end."""
    setup.frontend.timeout_client = 10.0
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    jam(setup, session, setup.server())
    session.expire(setup.traffic.now + 10.0)
    assert setup.traffic.reasons[EndReason.CLIENT_TIMEOUT] == 1
    assert is_reset(client)


def test_server_that_loses_bytes_is_reset(setup: LoneSessions):
    """A server that has ended its own direction sees no clean end of an upload that is cut."""
    setup.backend.timeout_server_fin = setup.backend.timeout_server = 10.0
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    origin = setup.server()
    origin.shutdown(socket.SHUT_WR)
    setup.until(lambda: session.server.eof)
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature

    def stuck() -> bool:
        with suppress(BlockingIOError):
            client.send(bytes(1 << 16))
        return session.client.blocked()

    setup.until(stuck)
    setup.frontend.timeout_client_fin = 60.0
    session.expire(setup.traffic.now + 10.0)
    assert setup.traffic.reasons[EndReason.SERVER_TIMEOUT] == 1
    assert is_reset(origin)


def test_log_that_raises_costs_its_line_only(setup: LoneSessions):
    """A bug in the report of an end is reported; the session ends as it would have."""

    def report(*_: object) -> None:
        raise ZeroDivisionError

    setup.traffic.report = report
    client, session = setup.session()
    setup.until(lambda: session.ready_at)
    server = setup.server()
    setup.traffic.end_all(EndReason.KILLED)
    assert [type(fault) for fault in setup.faults] == [ZeroDivisionError]
    assert not setup.traffic.live
    assert (session.client.fd, session.server.fd) == (-1, -1)
    assert is_reset(client)
    assert is_reset(server)
    assert (setup.member.current, setup.frontend.current) == (0, 0)
    assert setup.traffic.reasons[EndReason.KILLED] == 1


def test_bug_in_taking_a_free_place_costs_the_waiter_alone():
    """Where a waiter cannot be placed it ends as a bug, and the session that made room ends as it should."""
    with ExitStack() as stack:
        setup = LoneSessions(stack, each={"max_connections": 1})
        client, session = setup.session()
        setup.until(lambda: session.ready_at)
        waiting, waiter = setup.session()
        assert waiter.phase == QUEUED
        waiter.key = None  # type: ignore[assignment]  # no key that a pool could use
        setup.backend.pool.apply(replace(setup.backend.pool.config, balance=Balance.SOURCE))
        session.end(EndReason.KILLED)
        assert is_reset(client)
        assert is_reset(waiting)
        assert [type(fault) for fault in setup.faults] == [TypeError]
        assert (setup.member.current, setup.frontend.current, len(setup.traffic.live)) == (0, 0, 0)


def test_waiter_is_let_in_again_where_it_has_failed_after_a_delay():
    """Handed a place at the only server, which it has failed at, it waits as any other retry does."""
    with ExitStack() as stack:
        setup = LoneSessions(stack, each={"max_connections": 1})
        setup.backend.retry_delay = 60.0
        setup.origins[0].close()
        first, second = setup.session(), setup.session()
        setup.until(lambda: second[1].tried and second[1].phase == QUEUED)
        for _ in range(5):
            setup.traffic.tick()
            gevent.sleep(0)
        assert (first[1].phase, first[1].attempts) == (DELAYED, 1)
        assert second[1].phase == QUEUED
        setup.traffic.end_all(EndReason.KILLED)


def test_redispatch_is_counted_when_there_is_another_server():
    """A connect that failed is followed by a wait: only the place at another server is a redispatch."""
    with ExitStack() as stack:
        setup = LoneSessions(stack, servers=2, each={"max_connections": 1})
        first, second = setup.backend.pool.members
        reasons = setup.traffic.reasons
        _, session = setup.session()
        holder, other = (first, second) if session.member is first else (second, first)
        setup.until(lambda: session.ready_at)
        setup.origins[setup.backend.pool.members.index(other)].close()
        _, waiter = setup.session()
        setup.until(lambda: waiter.phase == QUEUED)
        assert (
            reasons[EndReason.CONNECT_REFUSED],
            reasons[EndReason.REDISPATCHED],
            reasons[EndReason.RETRIED],
        ) == (
            1,
            0,
            0,
        )
        session.end(EndReason.KILLED)
        setup.until(lambda: waiter.ready_at)
        assert waiter.member is holder
        assert (reasons[EndReason.REDISPATCHED], reasons[EndReason.RETRIED]) == (1, 0)
        setup.traffic.end_all(EndReason.KILLED)


def test_nothing_is_counted_where_no_server_is_left(setup: LoneSessions):
    """A connect fails, and the pool has nobody any more: neither a retry nor a redispatch was made."""
    _, session = setup.session()
    setup.backend.pool.observe(
        {("pool", "s0"): up(setup.backend.pool.config, setup.member.config, verdict=HealthVerdict.DOWN)}
    )
    session.leave_server(EndReason.SERVER_DOWN)
    reasons = setup.traffic.reasons
    assert (reasons[EndReason.NO_SERVER], reasons[EndReason.RETRIED], reasons[EndReason.REDISPATCHED]) == (
        1,
        0,
        0,
    )


def test_early_bytes_do_not_grow_with_each_wait(setup: LoneSessions):
    """However often a client is sent back to the queue, no more than two chunks are kept for it."""
    setup.backend.pool.observe({})
    client, session = setup.session()
    assert session.phase == QUEUED
    client.setblocking(False)  # noqa: FBT003  # the standard library's signature
    for _ in range(20):
        with suppress(BlockingIOError):
            client.send(bytes(10 * CHUNK))
        setup.until(lambda: len(session.early or b"") >= CHUNK)
        session.phase = DELAYED
        session.enqueue()
        gevent.sleep(0.001)
    assert len(session.early or b"") <= 2 * CHUNK


class Broken(PoolState):
    """A pool with a bug: it counts nobody off."""

    def release(self, member: PoolMember) -> None:
        """Raise it."""
        raise KeyError(member)


def test_bug_in_a_session_whose_server_goes_down_costs_that_one(setup: LoneSessions):
    """Whoever closes the sessions of a server goes on with the others."""
    client, session = setup.session()
    session.backend.pool = Broken(session.backend.pool.config, workers=1, index=0, random=Random(1))  # noqa: S311  # unused
    session.leave_server(EndReason.SERVER_DOWN)
    assert [type(fault) for fault in setup.faults] == [KeyError]
    assert not setup.traffic.live
    assert is_reset(client)


def test_sticky_waiter_is_let_in_at_another_server_than_the_one_that_refused():
    """With balance source a client whose server refuses is served by the other one as soon as it has room."""
    with ExitStack() as stack:
        setup = LoneSessions(stack, servers=2, each={"max_connections": 1}, balance=Balance.SOURCE)
        pool = setup.backend.pool
        _, session = setup.session()
        owner = session.member
        assert owner is not None
        session.end(EndReason.KILLED)
        other = pool.place(session.key, avoid=[owner])
        assert isinstance(other, PoolMember)
        setup.origins[pool.members.index(owner)].close()
        _, waiter = setup.session()
        setup.until(lambda: waiter.phase == QUEUED)
        setup.traffic.wake_queued(pool.release(other))
        setup.until(lambda: waiter.ready_at)
        assert waiter.member is other
        setup.traffic.end_all(EndReason.KILLED)


def test_small_writes_to_a_server_wait_for_nothing(setup: LoneSessions):
    """Nagle's algorithm is off at the server as soon as a client has sent more than its first bytes."""
    client, session = setup.session(b"first")
    setup.until(lambda: session.ready_at)
    origin = setup.server()
    assert origin.recv(10) == b"first"
    client.sendall(b"second")
    setup.until(lambda: session.client.count == 11)
    with socket.socket(fileno=os.dup(session.server.fd)) as side:
        setup.until(lambda: side.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1)
    assert origin.recv(10) == b"second"
    client.sendall(b"third")
    setup.until(lambda: session.client.count == 16)
    assert origin.recv(10) == b"third"


def test_server_that_goes_down_under_a_session_without_one_is_reported(seen: set[object]):
    """A session in the queue has no server that could go down: that is a bug elsewhere, and it waits on."""
    with ExitStack() as stack:
        setup = LoneSessions(stack, each={"max_connections": 1})
        setup.session()
        _, waiter = setup.session()
        waiter.leave_server(EndReason.SERVER_DOWN)
        assert [str(fault) for fault in setup.faults] == [
            f"session {waiter.number}: server-lost while queued"
        ]
        assert waiter.phase == QUEUED
        seen.clear()
        setup.traffic.end_all(EndReason.KILLED)


def test_free_place_for_a_session_that_does_not_wait_is_reported(setup: LoneSessions, seen: set[object]):
    """It takes no second place: the one that it has is all that counts."""
    _, session = setup.session()
    setup.until(lambda: session.ready_at)
    session.place_free()
    assert [str(fault) for fault in setup.faults] == [f"session {session.number}: place-free while open"]
    assert (session.phase, setup.member.current) == (OPEN, 1)
    seen.clear()


@pytest.mark.parametrize("phase", [CONNECTING, OPEN, CLOSED])
def test_delay_that_is_over_too_late_changes_nothing(setup: LoneSessions, phase: int):
    """The callback of a delay cannot be taken back: a session that has gone on meanwhile ignores it."""
    _, session = setup.session()
    if phase != CONNECTING:
        setup.until(lambda: session.ready_at)
    if phase == CLOSED:
        session.end(EndReason.KILLED)
    session.on_delay_over()
    assert session.phase == phase
    assert not setup.faults
