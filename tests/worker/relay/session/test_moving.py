"""A session that moves between two workers' traffic: every byte arrives once and in order."""

import os
import random
import re
import socket
import struct
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worker.lone_sessions import LoneSessions
from support.worker.moved_sessions import move, told
from support.worker.trace import is_reset

from appliance.model.end_reasons import EndReason
from appliance.wire.lines.moving_sessions import MOST_HELD
from appliance.worker.relay.session import moving
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import CLOSED, OPEN

pytestmark = pytest.mark.sockets

_DATA: Final = random.Random(5).randbytes(1 << 20)  # noqa: S311  # no secret

_STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("send"), st.sampled_from([0, 1]), st.integers(1, 200_000)),
        st.tuples(st.just("read"), st.sampled_from([0, 1]), st.integers(1, 300_000)),
        st.tuples(st.just("end"), st.sampled_from([0, 1]), st.just(0)),
        st.tuples(st.just("turn"), st.just(0), st.integers(1, 5)),
        st.tuples(st.just("move"), st.just(0), st.just(0)),
    ),
    max_size=30,
)
"""What happens one after another; 0 is the client, 1 the server."""


@pytest.fixture
def two() -> Iterator[tuple[LoneSessions, LoneSessions]]:
    """Give two setups with the same names, as of two generations."""
    with ExitStack() as stack:
        made = LoneSessions(stack), LoneSessions(stack)
        yield made
        for each in made:
            each.traffic.end_all(EndReason.KILLED)
            each.traffic.close()
            assert each.faults == []


def turn(two: tuple[LoneSessions, LoneSessions], times: int) -> None:
    """Let both loops work; they are one, as both are in this process."""
    left = times

    def counted() -> bool:
        nonlocal left
        left -= 1
        return left < 0

    for each in two:
        left = times
        each.until(counted)


class _Ends:
    """The client's and the server's end of a session, and what each has sent and read."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.sockets = client, server
        self.sent = [0, 0]
        self.read = [0, 0]
        self.ended = [False, False]
        self.over = [False, False]
        for each in self.sockets:
            each.setblocking(False)  # noqa: FBT003  # the standard library's signature

    def do(self, step: str, end: int, size: int) -> None:
        """Send, read or end at one end."""
        if step == "send":
            self.send(end, size)
        elif step == "read":
            self.over[end] = self.over[end] or self.receive(end, size)
        else:
            self.end(end)

    def read_all(self) -> bool:
        """Read at both ends; say whether both streams have ended."""
        for end in (0, 1):
            self.do("read", end, 1 << 16)
        return all(self.over)

    def send(self, end: int, size: int) -> None:
        if not self.ended[end]:
            at = self.sent[end] % len(_DATA)
            with suppress(BlockingIOError):
                self.sent[end] += self.sockets[end].send(_DATA[at : at + size])

    def receive(self, end: int, size: int) -> bool:
        """Read and compare; say whether the stream has ended."""
        with suppress(BlockingIOError):
            data = self.sockets[end].recv(size)
            at = self.read[end] % len(_DATA)
            assert data == (_DATA * 2)[at : at + len(data)]
            self.read[end] += len(data)
            return not data
        return False

    def end(self, end: int) -> None:
        if not self.ended[end]:
            self.ended[end] = True
            self.sockets[end].shutdown(socket.SHUT_WR)


@settings(max_examples=int(os.environ.get("MOVES", "60")), deadline=None)
@given(_STEPS)
def test_every_byte_arrives_once_and_in_order(steps: list[tuple[str, int, int]]):
    """Random data, reads, ends and moves, and then everything is read to its end."""
    with ExitStack() as stack:
        two = LoneSessions(stack), LoneSessions(stack)
        client, session = two[0].session()
        two[0].until(lambda: session.phase == OPEN)
        ends = _Ends(client, two[0].server())
        at = 0
        for step, end, size in steps:
            if step == "turn":
                turn(two, size)
            elif step != "move":
                ends.do(step, end, size)
            elif moving.can_move(session):
                at = 1 - at
                session = move(session, two[at])
        for end in (0, 1):
            ends.end(end)
        while not ends.read_all():
            turn(two, 1)
        assert ends.read == ends.sent[::-1]
        two[at].until(lambda: session.phase == CLOSED)
        counts = [each.traffic.reasons[EndReason.COMPLETED] for each in two]
        assert sum(counts) == 1
        assert [each.frontend.current for each in two] == [0, 0]
        assert [sum(member.current for member in each.backend.pool.counted) for each in two] == [0, 0]
        moved = [(each.frontend.bytes_in, each.frontend.bytes_out) for each in two]
        assert [sum(column) for column in zip(*moved, strict=True)] == ends.sent
        assert [each.faults for each in two] == [[], []]
        assert [each.traffic.pipes.lent for each in two] == [0, 0]
        for each in two:
            each.traffic.close()


@settings(max_examples=int(os.environ.get("MOVES", "40")), deadline=None)
@given(_STEPS, st.sampled_from(["client", "server", "time-out", "kill"]), st.integers(0, 3))
def test_what_breaks_in_between_ends_once(steps: list[tuple[str, int, int]], how: str, moves: int):
    """After random data and moves an end resets, or its time is over: it ends where it is, counted once."""
    with ExitStack() as stack:
        two = LoneSessions(stack), LoneSessions(stack)
        client, session = two[0].session()
        two[0].until(lambda: session.phase == OPEN)
        ends = _Ends(client, two[0].server())
        at = 0
        for step, end, size in [*steps, ("break", 0, 0), *(("move", 0, 0) for _ in range(moves))]:
            if step == "turn":
                turn(two, size)
            elif step == "break":
                _break(how, ends, two, session)
            elif step != "move":
                ends.do(step, end, size)
            elif moving.can_move(session):
                at = 1 - at
                session = move(session, two[at])

        def over() -> bool:
            two[at].traffic.every_tick.add(session)  # looked at now, and not in a second
            for end in (0, 1):
                with suppress(OSError):  # the one that has reset is closed
                    ends.receive(end, 1 << 16)
            return session.phase == CLOSED

        two[at].until(over)
        assert sum(sum(each.traffic.reasons.values()) for each in two) == 1
        assert [each.frontend.current for each in two] == [0, 0]
        assert [sum(member.current for member in each.backend.pool.counted) for each in two] == [0, 0]
        assert [each.faults for each in two] == [[], []]
        assert [each.traffic.pipes.lent for each in two] == [0, 0]
        for each in two:
            each.traffic.every_tick.clear()
            each.traffic.close()


def _break(how: str, ends: _Ends, two: tuple[LoneSessions, LoneSessions], session: Session) -> None:
    for each in two:  # one that is half-closed already may not hear of it before
        each.frontend.timeout_client_fin = each.backend.timeout_server_fin = 0.02
    if how == "kill":
        session.end(EndReason.KILLED)
    elif how == "time-out":
        for each in two:
            each.frontend.timeout_client = each.backend.timeout_server = 1e-6
    else:
        broken = ends.sockets[("client", "server").index(how)]
        broken.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        broken.close()


def test_what_is_held_in_a_pipe_moves_with_it(two: tuple[LoneSessions, LoneSessions]):
    """Bulk that the other side does not read stands in a pipe; the pipe itself changes hands."""
    client, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    ends = _Ends(client, two[0].server())

    def stuck() -> bool:
        ends.send(0, 200_000)
        return session.client.pipe is not None and session.client.pipe.held > 0

    two[0].until(stuck)
    assert len(moving.descriptors(session)) == 4
    session = move(session, two[1])
    assert [each.traffic.pipes.lent for each in two] == [0, 1]
    two[1].until(lambda: ends.receive(1, 1 << 16) or ends.read[1] == ends.sent[0])


def test_the_end_follows_what_another_node_has_read(two: tuple[LoneSessions, LoneSessions]):
    """A session may arrive with the end of a direction read, and bytes before it that are not written yet."""
    client, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    ends = _Ends(client, two[0].server())

    def stuck() -> bool:
        ends.send(0, 100_000)
        return session.client.held() > 0

    two[0].until(stuck)
    ends.end(0)
    moving.without_pipes(session)
    moving.hold_still(session)
    assert session.client.pipe is None
    description = told(session)
    copies = [os.dup(each) for each in moving.descriptors(session)]
    with open(copies[0], "rb", buffering=0, closefd=False) as queue:
        rest = queue.readall()
    backlog = description.client.backlog + rest
    assert len(backlog) <= MOST_HELD
    held = msgspec.structs.replace(description.client, backlog=backlog, eof=True)
    moving.leave(session)
    moving.arrive(
        two[1].traffic,
        two[1].frontend,
        two[1].backend,
        msgspec.structs.replace(description, client=held),
        copies,
    )

    def over() -> bool:
        return ends.receive(1, 1 << 16)

    two[1].until(over)
    assert ends.read[1] == ends.sent[0]


def test_what_ends_while_it_is_held_still_has_ended(two: tuple[LoneSessions, LoneSessions]):
    """An operator's `kill` between the offer and the word reaches it; going on changes nothing then."""
    client, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    moving.hold_still(session)
    session.end(EndReason.KILLED)
    moving.go_on(session)
    assert session.phase == CLOSED
    assert is_reset(client)


def test_a_header_that_is_half_written_is_whole_at_the_server(two: tuple[LoneSessions, LoneSessions]):
    """What a server has not taken of its PROXY header is written on, before what the client sends next."""
    client, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    server = two[0].server()
    server.sendall(b"?")
    two[0].until(lambda: session.server is not None and session.server.count == 1)
    session.client.hold(memoryview(b"127.0.0.1 40000 6443\r\n"))
    session = move(session, two[1])
    client.sendall(b"hello")
    two[1].until(lambda: session.client.count == 5)
    assert server.recv(100) == b"127.0.0.1 40000 6443\r\nhello"


def test_one_that_is_kept_goes_on(two: tuple[LoneSessions, LoneSessions]):
    """What has arrived while it was held still is read when it goes on."""
    client, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    server = two[0].server()
    moving.hold_still(session)
    client.sendall(b"early")
    turn(two, 3)
    assert session.client.count == 0
    moving.go_on(session)
    two[0].until(lambda: session.client.count == 5)
    assert server.recv(10) == b"early"


def test_only_an_open_session_can_move(two: tuple[LoneSessions, LoneSessions]):
    """One that connects settles first, and one that rests until the next tick waits for that."""
    _, session = two[0].session()
    assert not moving.can_move(session)
    two[0].until(lambda: session.phase == OPEN)
    assert moving.can_move(session)
    two[0].traffic.resting.append(session.client)
    assert not moving.can_move(session)
    two[0].traffic.resting.clear()


@pytest.mark.parametrize(("max_age", "expected"), [(0.0, "none"), (1000.0, "some")])
def test_max_age_is_that_of_the_new_configuration(
    two: tuple[LoneSessions, LoneSessions], max_age: float, expected: str
):
    """It is drawn where it came with the configuration, kept where it stays, and goes with it."""
    two[1].frontend.max_age = max_age
    _, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    session = move(session, two[1])
    assert ("some" if session.max_age_at else "none") == expected
    at = session.max_age_at
    two[0].frontend.max_age = max_age
    again = move(session, two[0])
    assert again.max_age_at == pytest.approx(at, abs=1.0)


def test_one_that_cannot_be_watched_ends_and_no_other(two: tuple[LoneSessions, LoneSessions]):
    """A kernel that watches no more descriptors: the session is counted off, and its sockets are closed."""
    client, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    moving.hold_still(session)
    description, copy = told(session), os.dup(session.client.fd)
    moving.leave(session)
    no_socket = os.open(__file__, os.O_RDONLY)  # epoll takes no regular files
    target = two[1]
    arrived = moving.arrive(target.traffic, target.frontend, target.backend, description, [copy, no_socket])
    assert arrived.phase == CLOSED
    assert [type(each) for each in target.faults] == [PermissionError]
    target.faults.clear()
    assert (target.frontend.current, target.backend.pool.counted[0].current) == (0, 0)
    assert is_reset(client)


def test_what_has_ended_is_left_once(two: tuple[LoneSessions, LoneSessions]):
    """Nothing is counted twice where it has ended before it was to leave."""
    _, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    session.end(EndReason.KILLED)
    moving.leave(session)
    assert two[0].frontend.current == 0


def test_a_socket_of_which_there_are_copies_leaves_the_set(two: tuple[LoneSessions, LoneSessions]):
    """Its number may be another connection's soon, which must not hear of what happens to the old one."""
    _, session = two[0].session()
    two[0].until(lambda: session.phase == OPEN)
    moving.hold_still(session)
    moving.note_copies(session)
    number, copy = session.client.fd, os.dup(session.client.fd)
    moving.go_on(session)
    assert number in _watched()
    session.end(EndReason.COMPLETED)
    try:
        assert number not in _watched()
    finally:
        os.close(copy)


def _watched() -> set[int]:
    """Return the descriptors that are in epoll sets of this process (proc(5), fdinfo)."""
    text = ""
    for each in Path("/proc/self/fdinfo").iterdir():
        with suppress(FileNotFoundError):
            text += each.read_text()
    return {int(number) for number in re.findall(r"^tfd:\s+(\d+)", text, re.MULTILINE)}
