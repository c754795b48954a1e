"""A session that moves before it relays: what it waits for, and what its client has sent, go with it."""

import os
import random
import socket
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worker.lone_sessions import LoneSessions
from support.worker.moved_sessions import move
from support.worker.trace import is_reset

from appliance.model.end_reasons import EndReason
from appliance.model.snapshot.pools import Balance, SendProxy
from appliance.worker.relay.session import moving
from appliance.worker.relay.session.session_phases import CLOSED, CONNECTING, DELAYED, OPEN, QUEUED

pytestmark = pytest.mark.sockets

Two = tuple[LoneSessions, LoneSessions]


@contextmanager
def _two(each: dict[str, object] | None = None, *, servers: int = 1, **changes: object) -> Iterator[Two]:
    """Give two setups of one configuration, as of two generations; both lead to the first one's servers."""
    with ExitStack() as stack:
        made = (
            LoneSessions(stack, servers=servers, each=each, **changes),
            LoneSessions(stack, servers=servers, each=each, **changes),
        )
        for mine, theirs in zip(made[1].backend.pool.members, made[0].backend.pool.members, strict=True):
            mine.address = theirs.address
        yield made
        for one in made:
            one.traffic.end_all(EndReason.KILLED)
            assert one.faults == []
            assert one.frontend.current == 0
            assert [member.current for member in one.backend.pool.counted] == [0] * servers
            assert one.backend.pool.queued == 0
            one.traffic.close()


def test_one_in_a_queue_keeps_its_turn_and_what_its_client_has_sent():
    """It waits where it comes to, and its first bytes reach the server when it has a place."""
    with _two({"max_connections": 1}) as two:
        _, first = two[0].session()
        two[0].until(lambda: first.phase == OPEN)
        two[0].server()
        clients = [two[0].session(b"early %d" % number) for number in range(2)]
        two[0].until(lambda: all(each.client.count for _, each in clients))
        left = clients[0][1].deadline
        moved = [move(session, two[1]) for session in (first, *(each for _, each in clients))]
        assert [each.phase for each in moved] == [OPEN, QUEUED, QUEUED]
        assert moved[1].deadline == pytest.approx(left, abs=1.0)
        for number in range(2):
            moved[number].end(EndReason.KILLED)
            two[1].until(lambda place=number + 1: moved[place].phase == OPEN)
            assert two[0].server().recv(20) == b"early %d" % number


def test_one_in_a_queue_takes_a_place_that_is_free_where_it_comes_to():
    """Another configuration may have more room."""
    with _two({"max_connections": 1}) as two:
        _, first = two[0].session()
        _, queued = two[0].session(b"hello")
        two[0].until(lambda: queued.client.count == 5)
        two[0].until(lambda: first.phase == OPEN)
        two[0].server()
        moved = move(queued, two[1])
        two[1].until(lambda: moved.phase == OPEN)
        assert two[0].server().recv(9) == b"hello"
        assert first.phase == OPEN


def test_a_queue_that_is_full_takes_those_that_waited():
    """max_queue bounds new ones."""
    with _two({"max_connections": 1}, max_queue=1) as two:
        for each in two:
            each.session()
            each.session()
        queued = next(each for each in two[0].traffic.live if each.phase == QUEUED)
        moved = move(queued, two[1])
        assert moved.phase == QUEUED
        assert two[1].backend.pool.queued == 2


def test_one_in_a_queue_hears_its_client_leave():
    """It is watched where it came to, and frees its place in the queue."""
    with _two({"max_connections": 1}) as two:
        for each in two:
            each.session()
        client, queued = two[0].session()
        moved = move(queued, two[1])
        client.close()
        two[1].until(lambda: moved.phase == CLOSED)
        assert two[1].traffic.reasons[EndReason.CLIENT_ABORT] == 1


def test_one_in_a_queue_ends_where_no_server_is_left():
    """The new configuration may say so; its client learns it at once."""
    with _two({"max_connections": 1}) as two:
        two[0].session()
        client, queued = two[0].session()
        two[1].backend.pool.observe({})
        two[1].backend.pool._checking = False  # the first checks are over
        move(queued, two[1])
        assert two[1].traffic.reasons[EndReason.NO_SERVER] == 1
        assert is_reset(client)


def test_a_connect_that_is_under_way_goes_on():
    """The same connect: the server sees one connection, and the PROXY header once and whole."""
    with _two(send_proxy=SendProxy.V1) as two:
        two[0].backend.far = 1  # as if the server were on another machine
        client, session = two[0].session(b"hello")
        assert session.phase == CONNECTING
        moved = move(session, two[1])
        assert moved.phase == CONNECTING
        two[1].until(lambda: moved.phase == OPEN)
        told = two[0].server().recv(200)
        host, port = client.getsockname()
        assert told.startswith(b"PROXY TCP4 %s 127.0.0.1 %d " % (host.encode(), port))
        assert told.endswith(b"\r\nhello")
        two[0].origins[0].setblocking(False)  # noqa: FBT003  # the standard library's signature
        with pytest.raises(BlockingIOError):
            two[0].origins[0].accept()


def test_a_connect_that_fails_after_the_move_tries_another_server():
    """The connect that failed was begun in the other worker; it counts as a change of the server here."""
    with _two(servers=2, retries=3) as two:
        two[0].origins[0].close()
        _, session = two[0].session()
        moved = move(session, two[1])
        two[1].until(lambda: moved.phase == OPEN)
        assert two[0].server(1).fileno() >= 0
        assert two[1].traffic.reasons[EndReason.REDISPATCHED] == 1


def test_one_that_waits_to_try_again_does_so_where_it_comes_to():
    """The one server refuses, and is there again after the move; what was tried is known by its name."""
    with _two(retries=3, timeout_connect=0.2) as two:
        place = two[0].origins[0].getsockname()
        two[0].origins[0].close()
        _, session = two[0].session(b"hello")
        two[0].until(lambda: session.phase == DELAYED)
        moved = move(session, two[1])
        assert moved.phase == DELAYED
        assert [each.name for each in moved.tried] == ["s0"]
        assert moved.attempts == session.attempts
        with socket.create_server(place) as again:
            two[1].until(lambda: moved.phase == OPEN)
            connection, _ = again.accept()
            with connection:
                assert connection.recv(9) == b"hello"


def test_the_time_to_connect_goes_on():
    """A server that does not answer is given up when its time began in the old worker."""
    with _two(timeout_connect=0.3, retries=0) as two:
        with ExitStack() as stack:
            full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
            for one in two:
                one.member.address = full.getsockname()
            for _ in range(2):  # with these its queue is full, and a SYN more is not answered
                filler = stack.enter_context(socket.socket())
                filler.setblocking(False)  # noqa: FBT003  # the standard library's signature
                filler.connect_ex(full.getsockname())
            _, session = two[0].session()
            session.deadline -= 0.2
            moved = move(session, two[1])
            assert moved.deadline - two[1].traffic.now == pytest.approx(0.1)
            two[1].until(lambda: moved.phase == CLOSED)
        assert two[1].traffic.reasons[EndReason.CONNECT_TIMEOUT] == 1


def test_a_hashed_one_waits_for_its_own_server():
    """What the algorithm looks at is found again from its client."""
    with _two({"max_connections": 1}, balance=Balance.SOURCE) as two:
        for each in two:
            each.session()
        _, queued = two[0].session()
        moved = move(queued, two[1])
        assert moved.key == queued.key != b""


def test_one_that_is_kept_is_as_it_was():
    """Held still and gone on with: each phase watches what it watched."""
    with _two({"max_connections": 1}) as two:
        _, first = two[0].session()
        moving.hold_still(first)
        moving.go_on(first)
        two[0].until(lambda: first.phase == OPEN)
        client, queued = two[0].session()
        moving.hold_still(queued)
        client.sendall(b"early")
        moving.go_on(queued)
        two[0].until(lambda: queued.early == b"early")
        queued.delay(0.1)
        moving.hold_still(queued)
        moving.go_on(queued)
        assert queued.phase == DELAYED
        queued.phase = QUEUED


def test_what_went_on_while_it_was_held_is_seen():
    """A place that becomes free, or a deadline, changes the stage: such a one is not left."""
    with _two({"max_connections": 1}) as two:
        _, first = two[0].session()
        _, queued = two[0].session()
        before = moving.stage(queued)
        first.end(EndReason.KILLED)
        assert moving.stage(queued) != before


def test_one_whose_place_nobody_will_announce_looks_for_it():
    """Those that have left made room, which wakes nobody."""
    with _two({"max_connections": 1}) as two:
        _, first = two[0].session()
        two[0].until(lambda: first.phase == OPEN)
        _, queued = two[0].session()
        move(first, two[1])
        assert queued.phase == QUEUED
        moving.try_again(queued)
        two[0].until(lambda: queued.phase == OPEN)
        moving.try_again(queued)
        assert queued.phase == OPEN


_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("client"), st.sampled_from([b"a", b"bcd", b"e" * 3000])),
        st.tuples(st.just("turn"), st.just(b"")),
        st.tuples(st.just("free"), st.just(b"")),
        st.tuples(st.just("move"), st.just(b"")),
    ),
    max_size=20,
)


@settings(max_examples=int(os.environ.get("MOVES", "40")), deadline=None)
@given(_STEPS, st.randoms(use_true_random=False))
def test_what_a_client_sends_before_it_has_a_server_arrives_once(
    steps: list[tuple[str, bytes]], order: random.Random
):
    """Sent, moved, given a place in any order: the server reads every byte once, in order."""
    with _two({"max_connections": 1}) as two:
        holders = [each.session()[1] for each in two]
        two[0].until(lambda: holders[0].phase == OPEN)
        two[1].until(lambda: holders[1].phase == OPEN)
        two[0].server(), two[0].server()
        client, session = two[0].session()
        sent, at = b"", 0
        for step, data in steps:
            if step == "client":
                client.sendall(data)
                sent += data
            elif step == "free":
                order.choice(holders).end(EndReason.KILLED)
            elif step == "move" and (moving.can_move(session) or moving.waits(session)):
                at = 1 - at
                session = move(session, two[at])
            else:
                turns = iter((False, False, True))
                two[at].until(lambda left=turns: next(left))
        for each in holders:
            each.end(EndReason.KILLED)
        two[at].until(lambda: session.phase == OPEN)
        server = two[0].server()
        server.setblocking(False)  # noqa: FBT003  # the standard library's signature
        client.sendall(b"!")
        received = bytearray()

        def whole() -> bool:
            with suppress(BlockingIOError):
                received.extend(server.recv(1 << 16))
            return received.endswith(b"!")

        two[at].until(whole)
        assert received == sent + b"!"
