"""Peers of a unix socket that never stop: the program's own work has its turns, and others their answers.

The peers are threads with plain sockets, which send as fast as they can.
"""

import json
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Final

import gevent
import pytest
import structlog
from support.processes.greenlets import until

from appliance.model.paths import Paths
from appliance.net.control import control_server, permissions
from appliance.net.control.control_client import ControlClient, ask
from appliance.net.control.control_server import Call, ControlServer
from appliance.net.control.kept_listener import KeptListener
from appliance.net.loop.turns import SLICE, Turns
from appliance.reload.reload_socket import ReloadSockets
from appliance.stats import command_line
from appliance.stats.command_line import CommandLine
from appliance.stats.figures import HistoryFile, LatestFigures
from appliance.wire.lines.control import Answer, Question, good
from appliance.worker.relay.all_sessions import Traffic

pytestmark = pytest.mark.sockets

WORK: Final = 0.0005
"""Seconds of the processor that a question takes here."""

LARGE: Final = 8_000_000
"""Bytes of a large answer, and a few more."""

ECHO: Final = b'{"command": "echo"}\n'


@contextmanager
def hostile(path: Path, speak: Callable[[socket.socket], None], *, count: int = 1) -> Iterator[None]:
    """Run peers that connect and speak, again and again, and read whatever is answered."""
    ending = threading.Event()

    def read(peer: socket.socket) -> None:
        with suppress(OSError):
            while peer.recv(65536):
                pass

    def run() -> None:
        while not ending.is_set():
            with suppress(OSError), socket.socket(socket.AF_UNIX) as peer:
                peer.settimeout(1.0)
                peer.connect(str(path))
                reader = threading.Thread(target=read, args=(peer,), daemon=True)
                reader.start()
                while not ending.is_set():
                    # Not while it would block: who gives up and comes again takes places from its own user.
                    if select.select([], [peer], [], 0.1)[1]:
                        speak(peer)

    threads = [threading.Thread(target=run, daemon=True) for _ in range(count)]
    for each in threads:
        each.start()
    try:
        yield
    finally:
        ending.set()
        for each in threads:
            gevent.get_hub().threadpool.apply(each.join, (10.0,))


def pipeline(peer: socket.socket) -> None:
    """Ask a hundred times at once."""
    peer.sendall(ECHO * 100)


def one_by_one(peer: socket.socket) -> None:
    """Ask, and ask again at once."""
    peer.sendall(ECHO)


def nothing(peer: socket.socket) -> None:
    """Send lines with nothing in them."""
    peer.sendall(b"\n" * 60_000)


def connect_again(peer: socket.socket) -> None:
    """Leave, to come again."""
    peer.shutdown(socket.SHUT_RDWR)
    raise OSError


SPEAKERS: Final = [pipeline, one_by_one, nothing, connect_again]


def work() -> None:
    """Use the processor for as long as a question takes here."""
    until_then = time.thread_time() + WORK
    while time.thread_time() < until_then:
        pass


class Program:
    """A server whose questions take time, and how many were answered."""

    def __init__(self, path: Path, turns: Turns | None = None) -> None:
        self.path = path
        self.answered = 0
        self.server = ControlServer(
            path,
            {"echo": self._echo, "large": lambda _: good(text="x" * LARGE)},
            on_error=lambda *_: None,
            for_readers={"echo", "large"},
            turns=turns,
        )

    def _echo(self, call: Call) -> Answer:
        del call
        work()
        self.answered += 1
        return good()


@pytest.fixture(params=["owner", "reader"])
def program(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Program]:
    """Run a program whose peers are its owner, or may only look."""
    if request.param == "reader":
        monkeypatch.setattr(permissions, "is_owner", lambda _: False)
    running = Program(tmp_path / "a.control")
    yield running
    running.server.close()


@pytest.mark.parametrize("speak", SPEAKERS)
def test_other_greenlets_run_while_a_peer_never_stops(
    program: Program, speak: Callable[[socket.socket], None]
):
    """A timer of the program fires, and a socket of it is read, as often as they are meant to."""
    ours, theirs = gevent.socket.socketpair()
    heard = gevent.spawn(lambda: [ours.recv(1) for _ in range(20)])
    with gevent.Timeout(30), hostile(program.path, speak, count=4):
        for _ in range(20):
            gevent.sleep(0.005)
            theirs.send(b"x")
        heard.join()
    ours.close()
    theirs.close()


@pytest.mark.parametrize("speak", SPEAKERS)
def test_another_client_is_answered_while_a_peer_never_stops(
    program: Program, speak: Callable[[socket.socket], None]
):
    """One after the other, on a connection that it keeps, and on new ones."""
    with hostile(program.path, speak, count=2):
        for _ in range(5):
            assert ask(program.path, Question(command="echo"), timeout=20.0).ok


@contextmanager
def reload_socket(directory: Path) -> Iterator[Path]:
    """Serve a reload socket."""
    log = structlog.wrap_logger(structlog.testing.CapturingLogger(), processors=[])
    sockets = ReloadSockets(lambda _: good(), log)
    sockets.follow([directory / "socket"])
    yield directory / "socket"
    sockets.close()


@contextmanager
def stats_socket(directory: Path) -> Iterator[Path]:
    """Serve HAProxy's commands."""
    log = structlog.wrap_logger(structlog.testing.CapturingLogger(), processors=[])
    paths = Paths(runtime=directory, state=directory)
    figures = LatestFigures(paths, HistoryFile(paths.history, log), on_fault=print)
    serve = CommandLine(paths, figures, log).serve
    listener = KeptListener(directory / "socket", serve, log, name="stats-socket")
    yield directory / "socket"
    listener.close()
    figures.close()


def reload_again(peer: socket.socket) -> None:
    """Ask for reloads."""
    peer.sendall(b"reload\n" * 100)


def help_again(peer: socket.socket) -> None:
    """Stay connected, and ask for long answers, many in a line."""
    peer.sendall(b"prompt\n" + b"help;" * 1000 + b"help\n")


@pytest.mark.parametrize(
    ("serving", "speak"),
    [
        (reload_socket, reload_again),
        (reload_socket, nothing),
        (reload_socket, connect_again),
        (stats_socket, help_again),
        (stats_socket, connect_again),
    ],
)
def test_the_other_sockets_give_turns_too(
    tmp_path: Path,
    serving: Callable[[Path], AbstractContextManager[Path]],
    speak: Callable[[socket.socket], None],
):
    """Those for reloads and for HAProxy's commands: the program's timers fire as often as they should."""
    with serving(tmp_path) as path, gevent.Timeout(30), hostile(path, speak, count=4):
        for _ in range(20):
            gevent.sleep(0.005)


def test_a_line_of_haproxys_commands_has_a_deadline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A client that sends it byte by byte loses its connection."""
    monkeypatch.setattr(command_line, "SILENCE", 0.3)

    def drip(peer: gevent.socket.socket) -> None:
        while True:
            peer.send(b"x")
            gevent.sleep(0.05)

    with stats_socket(tmp_path) as path, gevent.Timeout(20), gevent.socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(path))
        with pytest.raises(OSError, match="Broken pipe"):
            drip(peer)


class Moving:
    """A worker's traffic that always has something to do, and counts its turns."""

    def __init__(self) -> None:
        self.traffic = Traffic(descriptors=1000, fault=print, accept_failed=print)
        self.turns = 0
        self.longest = 0
        self._answered: Callable[[], int] = lambda: 0
        self._before = 0

    def run(self, answered: Callable[[], int], enough: Callable[[], bool]) -> None:
        """Move until there was enough; `longest` is the most answers between two turns of the traffic."""
        self._answered = answered
        self._before = answered()
        self.traffic.poller.soon(self._turn)
        late = time.monotonic() + 30.0
        self.traffic.run_until(lambda: enough() or time.monotonic() > late, on_tick=self.traffic.tick)

    def _turn(self) -> None:
        self.turns += 1
        self.longest = max(self.longest, self._answered() - self._before)
        self._before = self._answered()
        self.traffic.poller.soon(self._turn)


@pytest.mark.parametrize("speak", [pipeline, one_by_one])
def test_a_worker_moves_bytes_between_a_few_answers(tmp_path: Path, speak: Callable[[socket.socket], None]):
    """Between two turns of the traffic there are few answers: as many as fit into the 5 ms of the promise."""
    moving = Moving()
    program = Program(tmp_path / "worker.control", Turns(moving.traffic.rest))
    with hostile(program.path, speak, count=8):
        moving.run(lambda: program.answered, lambda: program.answered >= 300)
    program.server.close()
    moving.traffic.close()
    assert program.answered >= 300
    assert moving.longest <= 2 * SLICE / WORK + 1


class SlowPieces(Turns):
    """Turns before which some work was done; `pieces` is how often."""

    pieces = 0

    def give(self) -> None:
        """Work, and give the turn."""
        work()
        self.pieces += 1
        super().give()


def test_a_large_answer_lets_the_traffic_move(tmp_path: Path):
    """An answer of megabytes is sent in pieces, with turns of the traffic between few of them."""
    moving = Moving()
    turns = SlowPieces(moving.traffic.rest)
    program = Program(tmp_path / "worker.control", turns)
    received: list[int] = []

    def read() -> None:
        with socket.socket(socket.AF_UNIX) as peer:
            peer.connect(str(program.path))
            peer.sendall(b'{"command": "large"}\n')
            while sum(received) < LARGE:
                received.append(len(peer.recv(1 << 20)))

    reader = threading.Thread(target=read)
    reader.start()
    moving.run(lambda: turns.pieces, lambda: not reader.is_alive())
    reader.join()
    program.server.close()
    moving.traffic.close()
    assert turns.pieces > 4 * SLICE / WORK, "it was sent in many pieces"
    assert 0 < moving.longest <= 2 * SLICE / WORK + 1


def test_readers_share_a_part_of_the_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Many who may only look take no more than a part of the program, together."""
    monkeypatch.setattr(permissions, "is_owner", lambda _: False)
    program = Program(tmp_path / "a.control")
    with hostile(program.path, pipeline, count=8):
        until(lambda: program.answered > 5, what="they are answered")
        begun, before = time.monotonic(), program.answered
        gevent.sleep(1.0)
        share = (program.answered - before) * WORK / (time.monotonic() - begun)
    program.server.close()
    assert share < 0.3


def test_a_reader_that_takes_all_places_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Connections that only sit there give way to those that ask."""
    monkeypatch.setattr(permissions, "is_owner", lambda _: False)
    program = Program(tmp_path / "a.control")
    idle = [socket.socket(socket.AF_UNIX) for _ in range(permissions.MOST_READERS + 4)]
    for each in idle:
        each.connect(str(program.path))
    for _ in range(3):
        assert ask(program.path, Question(command="echo")).ok
    for each in idle:
        each.close()
    program.server.close()


@pytest.mark.parametrize("says", [b'{"command"', b'{"command": "large"}\n'])
def test_a_reader_has_a_deadline_for_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, says: bytes):
    """A question byte by byte, and an answer that nobody reads, end their connection."""
    monkeypatch.setattr(permissions, "is_owner", lambda _: False)
    monkeypatch.setattr(control_server, "READER_SECONDS", 0.3)
    program = Program(tmp_path / "a.control")
    with gevent.socket.socket(socket.AF_UNIX) as peer, gevent.Timeout(20):
        peer.connect(str(program.path))
        with suppress(OSError):
            for byte in says:
                peer.send(bytes([byte]))
            while b"\n" not in says:
                peer.send(b" ")
                gevent.sleep(0.05)
        gevent.sleep(1.0)
        with suppress(OSError):
            while peer.recv(1 << 20):
                pass
    program.server.close()


def test_a_reader_says_what_it_has_to_in_few_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A question of more than a command needs is no question; the owner's may be long."""
    path = tmp_path / "a.control"
    program = Program(path)
    long = Question(command="echo", values={"more": "x" * 100_000})
    assert ask(path, long).ok
    monkeypatch.setattr(permissions, "is_owner", lambda _: False)
    with gevent.socket.socket(socket.AF_UNIX) as peer, gevent.Timeout(20):
        peer.connect(str(path))
        with suppress(OSError):
            peer.sendall(json.dumps({"command": "echo", "more": "x" * 100_000}).encode() + b"\n")
        with suppress(OSError):
            assert peer.recv(100) == b""
    with ControlClient(path) as client:
        assert client.ask(Question(command="echo")).ok
    program.server.close()


def test_nothing_comes_between_a_handler_and_its_answer(tmp_path: Path):
    """Whoever asks a program to stop has the answer, even where the slice is over: the program ends then."""
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        gevent.sleep(seconds)

    def stop(_: Call) -> Answer:
        late = time.monotonic() + 2 * SLICE
        while time.monotonic() < late:
            pass
        return good()

    server = ControlServer(
        tmp_path / "a.control", {"stop": stop}, on_error=lambda *_: None, turns=Turns(rest)
    )
    with gevent.socket.socket(socket.AF_UNIX) as peer:
        peer.connect(str(tmp_path / "a.control"))
        peer.sendall(b'{"command": "stop"}\n')
        assert b"true" in peer.recv(100)
    assert rests == []
    server.close()
