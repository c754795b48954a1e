"""The control socket of a program of one loop, asked by real clients from other threads."""

import contextlib
import json
import shutil
import socket
import stat
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.processes.waiting import wait_until

from appliance.net.control import permissions
from appliance.net.control.deferred_answer import DeferredAnswer
from appliance.net.control.loop_control_server import LoopControlServer
from appliance.net.loop.loop import Loop
from appliance.wire.lines.control import Answer, Question, bad, good

pytestmark = pytest.mark.sockets


class Waker:
    """Ends the loop from another thread."""

    def __init__(self, loop: Loop) -> None:
        self._ours, self._theirs = socket.socketpair()
        loop.read(self._ours.fileno(), loop.stop)

    def __call__(self) -> None:
        """End it."""
        self._theirs.send(b"x")

    def close(self) -> None:
        """Close both ends."""
        self._ours.close()
        self._theirs.close()


class Program:
    """A small program behind a control socket; `later` holds the answers that it owes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.errors: list[tuple[str, str]] = []
        self.later: list[DeferredAnswer] = []
        self.loop = Loop()
        handlers: dict[str, Callable[[Question], Answer | DeferredAnswer]] = {
            "echo": lambda question: good(said=question.text("say")),
            "large": lambda question: good(text="x" * question.integer("size")),
            "break": self._break,
            "later": self._later,
            "at-once": self._at_once,
            "owed": self._owed,
        }
        self.server = LoopControlServer(
            self.loop,
            path,
            handlers,
            on_error=lambda where, error: self.errors.append((where, type(error).__name__)),
        )

    def _break(self, question: Question) -> Answer:
        raise ZeroDivisionError(question.command)

    def _later(self, _: Question) -> DeferredAnswer:
        self.later.append(DeferredAnswer())
        return self.later[-1]

    def _at_once(self, _: Question) -> DeferredAnswer:
        answer = DeferredAnswer()
        answer.resolve(good(first=True))
        answer.resolve(bad("second"))
        return answer

    def _owed(self, _: Question) -> Answer:
        count = len(self.later)
        for each in self.later:
            each.resolve(good(late=True))
        self.later.clear()
        return good(count=count)


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Return a running program."""
    running = Program(tmp_path / "vrrp.control")
    waker = Waker(running.loop)
    thread = threading.Thread(target=running.loop.run)
    thread.start()
    yield running
    waker()
    thread.join()
    running.server.close()
    running.loop.close()
    waker.close()


@contextlib.contextmanager
def connected(program: Program) -> Iterator[socket.socket]:
    """Give a connection to the program."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        connection.connect(str(program.path))
        yield connection


def asked(program: Program, *lines: bytes) -> list[dict[str, object]]:
    """Return the answers to lines that are sent at once."""
    with connected(program) as connection:
        connection.sendall(b"".join(line + b"\n" for line in lines))
        connection.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    return [json.loads(line) for line in received.splitlines()]


def test_a_question_is_answered(program: Program) -> None:
    """A known command is answered with what its handler says."""
    assert asked(program, b'{"command": "echo", "say": "hello"}') == [{"ok": True, "said": "hello"}]


def test_the_socket_is_its_owner_s_alone(program: Program) -> None:
    """Only the owner may open the socket."""
    assert stat.S_IMODE(program.path.stat().st_mode) == 0o600


def test_questions_sent_together_are_answered_in_order(program: Program) -> None:
    """Many lines in one chunk have as many answers, in their order."""
    lines = [b'{"command": "echo", "say": "%d"}' % number for number in range(200)]
    assert [each["said"] for each in asked(program, *lines)] == [str(number) for number in range(200)]


def test_a_large_answer_arrives_whole(program: Program) -> None:
    """An answer larger than the socket's buffer is sent as the reader takes it."""
    (answer,) = asked(program, b'{"command": "large", "size": 3000000}')
    assert answer["text"] == "x" * 3_000_000


def test_an_unknown_command_names_the_known_ones(program: Program) -> None:
    """A wrong command's answer tells what there is."""
    (answer,) = asked(program, b'{"command": "dance"}')
    assert answer["ok"] is False
    assert "echo" in str(answer["errors"])


def test_a_missing_parameter_is_an_answer(program: Program) -> None:
    """A question without its parameter is answered, and is nobody's bug."""
    (answer,) = asked(program, b'{"command": "echo"}')
    assert "say" in str(answer["errors"])
    assert program.errors == []


def test_a_handler_that_raises_is_answered_and_reported(program: Program) -> None:
    """A bug in one command costs that answer only."""
    first, second = asked(program, b'{"command": "break"}', b'{"command": "echo", "say": "alive"}')
    assert "ZeroDivisionError" in str(first["errors"])
    assert second["said"] == "alive"
    assert program.errors == [("break", "ZeroDivisionError")]


def test_a_line_that_is_none_ends_the_connection(program: Program) -> None:
    """Who does not speak control lines is hung up on, and reported."""
    assert asked(program, b"GET / HTTP/1.1") == []
    wait_until(lambda: program.errors == [("line", "ControlError")], what="the line is reported")


def test_a_nested_line_ends_the_connection_and_not_the_loop(program: Program) -> None:
    """Ten thousand brackets are no question: the connection ends, and the next one is served."""
    assert asked(program, b'{"command":' + b"[" * 10_000) == []
    assert program.errors == [("line", "ControlError")]
    assert asked(program, b'{"command": "echo", "say": "on"}') == [{"ok": True, "said": "on"}]


def test_an_endless_line_ends_the_connection(program: Program) -> None:
    """A line that grows without end is not kept."""
    with connected(program) as connection, contextlib.suppress(ConnectionError):
        for _ in range(40):
            connection.sendall(b"x" * 65536)
        assert connection.recv(1) == b""
    wait_until(lambda: ("line", "ControlError") in program.errors, what="the line is reported")


def test_an_answer_may_come_later(program: Program) -> None:
    """A deferred answer arrives when it is given; others are answered meanwhile, the same asker waits."""
    with connected(program) as connection:
        connection.sendall(b'{"command": "later"}\n{"command": "echo", "say": "after"}\n')
        wait_until(lambda: program.later, what="the question was asked")
        assert asked(program, b'{"command": "owed"}') == [{"ok": True, "count": 1}]
        lines = connection.makefile("rb")
        assert json.loads(lines.readline()) == {"ok": True, "late": True}
        assert json.loads(lines.readline()) == {"ok": True, "said": "after"}


def test_an_asker_who_left_is_owed_nothing(program: Program) -> None:
    """An answer whose asker has gone goes nowhere, and the program goes on."""
    with connected(program) as connection:
        connection.sendall(b'{"command": "later"}\n')
        wait_until(lambda: program.later, what="the question was asked")
    assert asked(program, b'{"command": "owed"}') == [{"ok": True, "count": 1}]
    assert asked(program, b'{"command": "echo", "say": "alive"}') == [{"ok": True, "said": "alive"}]


def test_an_answer_is_given_once(program: Program) -> None:
    """The first answer counts, also when it is there before anybody waits for it."""
    assert asked(program, b'{"command": "at-once"}') == [{"ok": True, "first": True}]


def test_idle_connections_keep_nobody_out(program: Program) -> None:
    """When all places are taken the one that has been idle longest goes, not one that waits for an answer."""
    with contextlib.ExitStack() as stack:
        waiting, oldest, *others = [stack.enter_context(connected(program)) for _ in range(64)]
        waiting.sendall(b'{"command": "later"}\n')
        for each in (oldest, *others):
            each.sendall(b'{"command": "echo", "say": "x"}\n')
            assert b'"ok"' in each.recv(1000)
        assert asked(program, b'{"command": "echo", "say": "new"}') == [{"ok": True, "said": "new"}]
        assert oldest.recv(1) == b""
        others[0].sendall(b'{"command": "owed"}\n')
        assert b'"ok"' in others[0].recv(1000)
        assert b"late" in waiting.recv(1000)


@pytest.mark.parametrize("end", ["leave", "answer"])
def test_who_comes_when_all_wait_for_an_answer_waits_as_well(program: Program, end: str) -> None:
    """There is a place again when one has its answer, or goes without it."""
    with contextlib.ExitStack() as stack:
        slow, *others = [stack.enter_context(connected(program)) for _ in range(64)]
        slow.sendall(b'{"command": "large", "size": 3000000}\n')
        slow.recv(1)
        for each in others:
            each.sendall(b'{"command": "later"}\n')
        wait_until(lambda: len(program.later) == 63, what="all have asked")
        late = stack.enter_context(connected(program))
        late.sendall(b'{"command": "echo", "say": "late"}\n')
        if end == "leave":
            others[0].close()
        else:
            slow.makefile("rb").readline()
        assert b"late" in late.recv(1000)


class Rival:
    """Something that is due, and notes how many questions had been answered when it was woken."""

    def __init__(self, answered: list[str]) -> None:
        self.deadline: float | None = None
        self.before: int | None = None
        self._answered = answered

    def tick(self, _: float) -> None:
        """Note it."""
        self.deadline, self.before = None, len(self._answered)


def test_questions_give_way_to_what_is_due(tmp_path: Path) -> None:
    """Many askers at once take a slice of a turn each: what was due before their questions is done first."""
    answered: list[str] = []

    def slow(question: Question) -> Answer:
        until = time.monotonic() + 0.003
        while time.monotonic() < until:
            pass
        answered.append(question.command)
        return good()

    loop, path, failed = Loop(), tmp_path / "vrrp.control", list[str]()
    server = LoopControlServer(loop, path, {"slow": slow}, on_error=lambda where, _: failed.append(where))
    rival = Rival(answered)
    loop.add(rival)
    with contextlib.ExitStack() as stack:
        for _ in range(8):
            asker = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
            asker.connect(str(path))
            asker.sendall(b'{"command": "slow"}\n{"command": "slow"}\n')
        rival.deadline = time.monotonic()
        while len(answered) < 16:
            loop.turn()
    assert failed == []
    assert rival.before == 0
    server.close()
    loop.close()


def test_a_question_is_no_older_than_it_is(tmp_path: Path) -> None:
    """The server is due since the question came, not since ever: its turn is as early as that."""
    loop = Loop()
    server = LoopControlServer(loop, tmp_path / "c", {"hello": lambda _: good()}, on_error=lambda *_: None)
    begun = time.monotonic()
    assert (server.deadline or 0.0) > begun
    seen: list[float | None] = []

    class Witness:
        """Looks at the server's deadline while its question waits."""

        deadline: float | None = None

        def tick(self, _: float) -> None:
            """Look."""
            self.deadline = None
            seen.append(server.deadline)

    witness = Witness()
    loop.add(witness, prompt=lambda: True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
        asker.connect(str(tmp_path / "c"))
        asker.sendall(b'{"command": "hello"}\n')
        asker.settimeout(0.0)

        def heard() -> bytes:
            witness.deadline = begun
            loop.turn()
            with contextlib.suppress(BlockingIOError):
                return asker.recv(100)
            return b""

        assert b"true" in wait_until(heard, what="the answer comes")
    assert seen
    assert all((each or 0.0) > begun for each in seen)
    server.close()
    loop.close()


def test_a_removed_socket_is_made_again(tmp_path: Path) -> None:
    """Also when its directory was removed for a while; one that is there is left to its owner."""
    directory, loop = tmp_path / "run", Loop()
    directory.mkdir()
    path = directory / "c"
    server = LoopControlServer(loop, path, {"hello": lambda _: good()}, on_error=lambda *_: None)
    for remove in (path.unlink, lambda: shutil.rmtree(directory)):
        remove()
        directory.mkdir(exist_ok=True)
        deadline = time.monotonic() + 15.0
        while not path.exists():
            assert time.monotonic() < deadline
            loop.turn()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asker:
            asker.connect(str(path))
            asker.sendall(b'{"command": "hello"}\n')
            asker.settimeout(0)
            answer = b""
            while not answer:
                assert time.monotonic() < deadline
                loop.turn()
                with contextlib.suppress(BlockingIOError):
                    answer = asker.recv(100)
        assert b"true" in answer
    server.close()
    assert not path.exists()
    loop.close()


def test_closing_removes_the_socket_and_not_a_successor_s(tmp_path: Path) -> None:
    """A program that ends late leaves the socket of the one that has taken its place."""
    first = Program(tmp_path / "vrrp.control")
    second = Program(tmp_path / "vrrp.control")
    first.server.close()
    assert first.path.exists()
    second.server.close()
    assert not first.path.exists()
    first.loop.close()
    second.loop.close()


@pytest.fixture
def readers(program: Program, monkeypatch: pytest.MonkeyPatch) -> Program:
    """Return the program, whose clients may only look."""
    monkeypatch.setattr(permissions, "is_owner", lambda _: False)
    return program


def test_readers_that_sit_on_all_places_give_way(readers: Program):
    """The next one is served: who has rested longest leaves."""
    idle = [socket.socket(socket.AF_UNIX) for _ in range(permissions.MOST_READERS + 4)]
    for each in idle:
        each.connect(str(readers.path))
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(15)
        client.connect(str(readers.path))
        client.sendall(b'{"command": "echo"}\n')
        assert b"not permitted" in client.recv(4096)
    for each in idle:
        each.close()


def test_a_reader_asks_in_few_bytes(readers: Program):
    """More than a command needs is no question."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(15)
        client.connect(str(readers.path))
        with contextlib.suppress(OSError):
            client.sendall(b'{"command": "' + b"x" * 20_000)
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(4096) == b""
    wait_until(lambda: readers.errors == [("line", "ControlError")], what="it is reported")
