"""Sessions that end on their way: whoever ends them counts them, and says so with an event."""

import socket
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

import gevent
import pytest
import structlog
from msgspec import structs
from support.migrate.migrate_field import certificate
from support.network.ports import free_port
from support.processes.greenlets import until
from support.values import boards
from support.values.migration import OFFER, SESSION, STATE
from support.worker.lone_sessions import LoneSessions

from appliance.core.migration.ruleset import Ends
from appliance.migrate import departures, link
from appliance.migrate.arrivals import Arrivals
from appliance.migrate.departures import BATCH_FULL, Departures, Target
from appliance.migrate.link import LinkError
from appliance.model.end_reasons import EndReason
from appliance.model.operator_events import OperatorEvent
from appliance.model.paths import Paths
from appliance.model.program_names import MIGRATE
from appliance.model.snapshot.linger import MovedSessions
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.control import descriptor_passing
from appliance.net.control.control_client import ControlClient, ask
from appliance.net.control.control_server import Call, ControlServer
from appliance.net.control.gevent_listener import listen_for_readers
from appliance.wire.boards import worker_board
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import Answer, Question, bad, encode_answer, good
from appliance.wire.lines.moving_sessions import MovingSession, Offered, Taken
from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.wire.session_migration import Commit, Offer, Prepared, Settled
from appliance.wire.tcp_state import Place
from appliance.worker.relay.session.session_phases import CLOSED, OPEN, QUEUED
from appliance.worker.session_batches import SessionBatches
from appliance.worker.session_ids import SessionIds
from appliance.worker.sessions_to_other_nodes import EmigratingSessions

pytestmark = [pytest.mark.kernel, pytest.mark.needs("ip", "openssl", root=True)]

_ADDRESS: Final = "127.0.0.1"
_PROGRAM: Final = "proxy-api"
_TCP_REPAIR: Final = 19  # linux/tcp.h
_SECONDS: Final = 10.0


def _fail(where: str, error: Exception) -> None:
    raise AssertionError(where) from error


class _Held:
    """No packets are held back."""

    def hold(self, connections: Sequence[Ends]) -> None:
        """Do nothing."""

    hold_afterwards = let_go = hold


class _Owners:
    """All connections may come, and leave."""

    def came(self, ends: Sequence[Ends]) -> bool:
        """Agree."""
        return bool(ends)

    def left(self, ends: Sequence[Ends], *, servers: Sequence[Ends]) -> None:
        """Do nothing."""


class _Worker:
    """A worker of this node that refuses sessions by their ids, and fails at `take` with a reason."""

    def __init__(self, paths: Paths, *, refuses: Sequence[str] = (), fails: str = "") -> None:
        self._refuses, self._fails = refuses, fails
        self.kept: list[int] = []
        self._board = BoardWriter(paths.worker_board(_PROGRAM, 1, 0))
        self._board.publish(worker_board.encode(boards.worker(program=_PROGRAM)))
        self._server = ControlServer(
            paths.worker_control(_PROGRAM, 1, 0),
            {"offer": self._offer, "take": self._take},
            on_error=_fail,
        )

    def _offer(self, call: Call) -> Answer:
        self.kept += call.keep()
        offered = moving_sessions.offer(call.question.values).sessions
        reasons = tuple("no pool masters" if each.id in self._refuses else "" for each in offered)
        return good(**moving_sessions.values(Offered(refused=reasons)))

    def _take(self, _: Call) -> Answer:
        return bad(self._fails) if self._fails else good()

    def close(self) -> None:
        """End it with its sockets."""
        for each in self.kept:
            socket.socket(fileno=each).close()
        self._server.close()
        self._board.close()


class _Giver:
    """The part of `migrate` that gives sessions, and the greenlet of another node's that takes none."""

    def __init__(self, directory: Path, paths: Paths) -> None:
        pem = str(certificate(directory))
        settings = MovedSessions(port=free_port(), certificate=pem, authorities=None)
        self.lost: list[tuple[str, int, str]] = []
        self._listener = link.listener(settings.port)
        self._other = gevent.spawn(self._refuse, link.context(settings, server=True))
        target = Target(
            node=_ADDRESS, interface="", port=settings.port, tls=link.context(settings, server=False)
        )
        gives = Departures(
            paths,
            _Held(),  # type: ignore[arg-type]  # behaves like it
            _Owners(),  # type: ignore[arg-type]  # behaves like it
            targets=lambda _: (target,),
            on_lost=lambda *told: self.lost.append(told),
            log=structlog.get_logger(),
        )
        self._server = ControlServer(paths.control(MIGRATE), gives.handlers(), on_error=_fail)
        self._client = ControlClient(paths.control(MIGRATE))

    def _refuse(self, tls: link.ssl.SSLContext) -> None:
        """Prepare what is offered, and take nothing."""
        plain, _ = self._listener.accept()
        taker = link.accepted(plain, tls)
        with suppress(LinkError):
            while True:
                message = taker.receive(begins_within=None)
                if isinstance(message, Offer):
                    taker.send(Prepared(refused=("",) * len(message.sessions)))
                elif isinstance(message, Commit):
                    taker.send(Settled(taken=False))

    def offer(self, sessions: Sequence[MovingSession], sockets: Sequence[socket.socket]) -> tuple[str, ...]:
        """Offer them as a worker does; return why they are refused."""
        values = moving_sessions.values(moving_sessions.offer_of(tuple(sessions)))
        question = Question(command="offer", values={**values, "program": _PROGRAM, "address": _ADDRESS})
        answer = self._client.ask(question, timeout=_SECONDS, descriptors=[each.fileno() for each in sockets])
        return moving_sessions.refusals(answer, len(sessions))

    def take(self, *places: int) -> None:
        """Give them up."""
        question = Question(command="take", values=moving_sessions.values(Taken(places=places)))
        assert self._client.ask(question, timeout=_SECONDS).ok

    def close(self) -> None:
        """End both."""
        self._client.close()
        self._server.close()
        self._other.kill()
        self._listener.close()


@pytest.fixture
def paths(tmp_path_factory: pytest.TempPathFactory) -> Paths:
    """Give a runtime directory."""
    root = tmp_path_factory.mktemp("l")  # short: a socket's path has 107 bytes at most
    return Paths(runtime=root, state=root)


@pytest.fixture
def giver(tmp_path: Path, paths: Paths) -> Iterator[_Giver]:
    """Give the part of `migrate` that gives sessions."""
    made = _Giver(tmp_path, paths)
    yield made
    made.close()


_Sockets = list[socket.socket]


def _waiting(stack: ExitStack, number: int) -> tuple[list[MovingSession], _Sockets, _Sockets]:
    """Return sessions that wait for a server, their sockets here, and their clients."""
    listener = stack.enter_context(socket.create_server((_ADDRESS, 0)))
    clients, ours = _Sockets(), _Sockets()
    for _ in range(number):
        clients.append(stack.enter_context(socket.create_connection(listener.getsockname(), _SECONDS)))
        ours.append(stack.enter_context(listener.accept()[0]))
    return [structs.replace(SESSION, id=f"session-{each}") for each in range(number)], ours, clients


@pytest.mark.parametrize(
    ("refuses", "fails", "lost"),
    [
        (("session-1",), "", (1, "no pool masters")),
        (("session-0", "session-1"), "", (2, "no pool masters")),
        ((), "it has failed", (2, "it has failed")),
    ],
    ids=["one", "all", "the worker fails"],
)
def test_those_that_no_worker_takes_back_are_counted(
    paths: Paths, giver: _Giver, refuses: tuple[str, ...], fails: str, lost: tuple[int, str]
):
    """The other node has not taken them, and a worker of this one refuses some: these are reset."""
    worker = _Worker(paths, refuses=refuses, fails=fails)
    with ExitStack() as stack:
        sessions, ours, clients = _waiting(stack, 2)
        assert giver.offer(sessions, ours) == ("", "")
        for each in ours:
            each.close()
        giver.take(0, 1)
        assert giver.lost == [(_ADDRESS, *lost)]
        worker.close()
        with pytest.raises(ConnectionResetError):
            clients[1].recv(1)


def test_a_full_batch_is_named(giver: _Giver, monkeypatch: pytest.MonkeyPatch):
    """It is not the other node that has no room."""
    monkeypatch.setattr(departures, "BATCH_BYTES", 4)
    with ExitStack() as stack:
        sessions, ours, clients = _waiting(stack, 2)
        clients[0].sendall(b"hello")
        assert ours[0].recv(5, socket.MSG_PEEK | socket.MSG_WAITALL) == b"hello"
        assert giver.offer(sessions, ours) == ("", BATCH_FULL)


def test_those_whose_new_worker_fails_are_counted_where_they_came_to(tmp_path: Path, paths: Paths):
    """The node that gave them counts them as given."""
    settings = MovedSessions(port=free_port(), certificate=str(certificate(tmp_path)), authorities=None)
    taken, lost = list[int](), list[tuple[str, int, str]]()
    arrivals = Arrivals(
        paths,
        _Held(),  # type: ignore[arg-type]  # behaves like it
        _Owners(),  # type: ignore[arg-type]  # behaves like it
        port=settings.port,
        tls=link.context(settings, server=True),
        refusal=lambda _: "",
        on_taken=taken.append,
        on_lost=lambda *told: lost.append(told),
        log=structlog.get_logger(),
    )
    worker = _Worker(paths, fails="it has failed")
    state = structs.replace(STATE, local=Place("127.0.0.1", free_port()), peer=Place("127.0.0.9", 40000))
    offer = structs.replace(OFFER, sessions=(structs.replace(OFFER.sessions[0], client=state),))
    other = link.connect(_ADDRESS, settings.port, interface="", tls=link.context(settings, server=False))
    assert other.ask(offer) == Prepared(refused=("",))
    assert other.ask(Commit(batch=offer.batch, places=(0,))) == Settled(taken=True)
    assert (taken, lost) == ([], [("127.0.0.1", 1, "it has failed")])
    other.close()
    arrivals.close()
    worker.close()


def test_those_that_migrate_was_reading_when_it_died_are_counted(paths: Paths):
    """Their worker ends them, publishes the event, and has the next run of `migrate` count them."""
    events, counted = list[OperatorEvent](), list[int]()
    names = WorkerArguments(
        program=_PROGRAM, group="api", generation=1, index=0, workers=1, snapshot=1, listeners=(), ready_fd=-1
    )
    with ExitStack() as stack:
        made = LoneSessions(stack, each={"max_connections": 1})
        sessions = [made.session()[1] for _ in range(3)]
        made.until(lambda: [each.phase for each in sessions] == [OPEN, QUEUED, QUEUED])
        emigrating = EmigratingSessions(
            paths,
            names,
            made.traffic,
            SessionIds(names),
            SessionBatches(made.traffic),
            publish=events.append,
            log=structlog.get_logger(),
        )
        asked = ControlServer(
            paths.runtime / "worker",
            {"emigrate": emigrating.emigrate},
            on_error=_fail,
        )
        dying = gevent.spawn(_die_while_reading, paths, 3)
        values = {"address": _ADDRESS}
        answer = ask(paths.runtime / "worker", Question(command="emigrate", values=values))
        dying.get(timeout=_SECONDS)
        assert answer.values["moved"] == 0
        assert [each.phase == CLOSED for each in sessions] == [True, True, False]
        assert [(each.subject, each.detail) for each in events] == [
            (_ADDRESS, "2: `migrate` died while it read them")
        ]
        again = ControlServer(
            paths.control(MIGRATE),
            {"count-lost": lambda call: counted.append(call.question.integer("sessions")) or good()},
            on_error=_fail,
        )
        until(lambda: counted == [2], what="they are counted")
        again.close()
        asked.close()
        made.traffic.end_all(EndReason.KILLED)
        made.traffic.close()


def _die_while_reading(paths: Paths, number: int) -> None:
    """Be a `migrate` that dies when it reads so many connections of the first batch."""
    listener = listen_for_readers(paths.control(MIGRATE))
    connection, _ = listener.accept()
    empty = moving_sessions.values(Offered(refused=()))
    descriptors = list[int]()
    for answer in (good(**empty), good()):  # the worker connects before its sessions wait
        descriptor_passing.receive(connection, descriptors)
        connection.sendall(encode_answer(answer))
    descriptor_passing.receive(connection, descriptors)
    for each in descriptors[:number]:
        with socket.socket(fileno=each) as read:
            read.setsockopt(socket.IPPROTO_TCP, _TCP_REPAIR, 1)
    descriptor_passing.close_all(descriptors[number:])
    connection.close()
    listener.close()
    paths.control(MIGRATE).unlink()
