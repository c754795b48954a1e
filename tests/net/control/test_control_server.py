"""Control sockets, between greenlets of one process over real unix sockets."""

import contextlib
import os
import shutil
import socket as plain
from collections.abc import Callable, Iterator
from pathlib import Path

import gevent
import pytest
from gevent import socket
from support.processes.greenlets import until
from support.processes.processes import descriptors

from appliance.net.control.control_client import ControlClient, ControlUnavailable, ask
from appliance.net.control.control_server import Call, ControlServer, WithDescriptors
from appliance.net.control.descriptor_passing import MOST
from appliance.wire.lines.control import Answer, Question, bad, good

_OUTPUT = 1  # it is open in any process

pytestmark = pytest.mark.sockets


class Program:
    """A small program behind a control socket, which notes what went wrong and who left."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.errors: list[tuple[str, str]] = []
        self.left = 0
        self.received: list[bytes] = []
        self.kept: tuple[int, ...] = ()
        self.server = ControlServer(
            path,
            {
                "echo": lambda call: good(said=call.question.text("say")),
                "slow": self._slow,
                "break": self._break,
                "pipe": self._pipe,
                "many": self._many,
                "take": self._take,
                "keep": self._keep,
                "stay": self._stay,
                "large": lambda call: good(text="x" * call.question.integer("size")),
            },
            on_error=lambda where, error: self.errors.append((where, type(error).__name__)),
        )

    def _slow(self, call: Call) -> Answer:
        gevent.sleep(call.question.number("seconds"))
        return good()

    def _break(self, call: Call) -> Answer:
        raise ZeroDivisionError(call.question.command)

    def _pipe(self, call: Call) -> WithDescriptors:
        del call
        read, write = os.pipe()
        os.write(write, b"through a pipe")
        os.close(write)
        return WithDescriptors(answer=good(count=1), descriptors=[read])

    def _many(self, call: Call) -> WithDescriptors:
        return WithDescriptors(answer=good(), descriptors=[_OUTPUT] * call.question.integer("count"))

    def _take(self, call: Call) -> Answer:
        for descriptor in call.descriptors:
            self.received.append(os.read(descriptor, 100))
        return good()

    def _keep(self, call: Call) -> Answer:
        self.kept = call.keep()
        return good()

    def _stay(self, call: Call) -> Answer:
        call.caller.on_close.append(self._leave)
        return good()

    def _leave(self) -> None:
        self.left += 1


@pytest.fixture
def program(tmp_path: Path) -> Iterator[Program]:
    """Return a running program."""
    running = Program(tmp_path / "health.control")
    yield running
    running.server.close()


def test_a_question_gets_its_answer(program: Program):
    """One question over a connection of its own."""
    assert ask(program.path, Question(command="echo", values={"say": "hi"})) == good(said="hi")


def test_one_connection_carries_many_questions(program: Program):
    """Greenlets that share a connection each get the answer to their own question."""
    with ControlClient(program.path) as client:
        jobs = [
            gevent.spawn(client.ask, Question(command="echo", values={"say": str(number)}))
            for number in range(50)
        ]
        gevent.joinall(jobs, timeout=10, raise_error=True)
    assert [job.value for job in jobs] == [good(said=str(number)) for number in range(50)]


def test_an_unknown_command_is_answered_with_the_known_ones(program: Program):
    """A misspelt command is refused with what there is."""
    answer = ask(program.path, Question(command="ehco"))
    assert not answer.ok
    assert "echo" in answer.errors[0].message


def test_a_mistyped_parameter_is_answered(program: Program):
    """A parameter of the wrong type is a refusal that names it."""
    answer = ask(program.path, Question(command="echo", values={"say": 3}))
    assert not answer.ok
    assert answer.errors[0].message.startswith("echo: say: ")


def test_a_bug_in_one_command_is_answered_and_reported(program: Program):
    """A handler that raises is answered, reported, and the connection goes on."""
    with ControlClient(program.path) as client:
        assert client.ask(Question(command="break")) == bad("break: ZeroDivisionError: break")
        assert client.ask(Question(command="echo", values={"say": "on"})).ok
    assert program.errors == [("break", "ZeroDivisionError")]


def test_a_large_answer_is_whole(program: Program):
    """An answer of several socket buffers arrives whole."""
    answer = ask(program.path, Question(command="large", values={"size": 3_000_000}))
    assert answer.values["text"] == "x" * 3_000_000


def test_descriptors_travel_with_an_answer(program: Program):
    """A descriptor in an answer is the receiver's own, and works."""
    with ControlClient(program.path) as client:
        answer, (descriptor,) = client.ask_for_descriptors(Question(command="pipe"))
        assert answer == good(count=1)
        assert os.read(descriptor, 100) == b"through a pipe"
        os.close(descriptor)


@pytest.mark.parametrize("count", [250, 251, 1000])
def test_more_descriptors_travel_than_one_message_takes(program: Program, count: int):
    """The workers of a group with many binds give all of their sockets to the next master."""
    question = Question(command="many", values={"count": count})
    before = descriptors(os.getpid())
    with ControlClient(program.path) as client:
        for _ in range(2):
            answer, found = client.ask_for_descriptors(question)
            assert (answer.ok, len(set(found))) == (True, count)
            for each in found:
                os.close(each)
        assert client.ask(Question(command="echo", values={"say": "hi"})) == good(said="hi")
    until(lambda: descriptors(os.getpid()) <= before)


def test_more_descriptors_than_a_group_has_binds_are_refused(program: Program):
    """Nobody asks for them, and a program may not lose all that it has."""
    with ControlClient(program.path) as client, pytest.raises(ControlUnavailable):
        client.ask_for_descriptors(Question(command="many", values={"count": MOST + 1}))


def test_another_side_that_is_gone_is_known_at_once(tmp_path: Path):
    """Also before the loop has read it, by which `closed` is set."""
    path = tmp_path / "control"
    with plain.socket(plain.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        with ControlClient(path) as client:
            assert not client.is_gone
            listener.accept()[0].close()
            assert client.is_gone
            assert not client.closed.is_set()
            assert client.closed.wait(10)
            assert client.is_gone


def test_descriptors_travel_with_a_question(program: Program):
    """A descriptor in a question reaches the handler."""
    read, write = os.pipe()
    os.write(write, b"take this")
    with ControlClient(program.path) as client:
        assert client.ask(Question(command="take"), descriptors=[read]).ok
    os.close(read)
    os.close(write)
    assert program.received == [b"take this"]


def test_a_handler_keeps_descriptors(program: Program):
    """What it has made its own stays open after the answer, and after the end of the connection."""
    read, write = os.pipe()
    with ControlClient(program.path) as client:
        assert client.ask(Question(command="keep"), descriptors=[read]).ok
    os.close(read)
    os.write(write, b"kept")
    os.close(write)
    gevent.sleep(0)
    (kept,) = program.kept
    assert os.read(kept, 100) == b"kept"
    os.close(kept)


def test_no_descriptor_is_lost(program: Program):
    """After many answers with descriptors that nobody asked for, as many are open as before."""
    with ControlClient(program.path) as client:
        client.ask(Question(command="pipe"))
        read, write = os.pipe()
        os.close(read), os.close(write)
        for _ in range(100):
            client.ask(Question(command="take"))
        assert os.pipe() == (read, write)
        os.close(read), os.close(write)


@pytest.mark.parametrize(
    "line", [b'{"command": "ehco"}\n', b'{"command": "echo", "say": "hi"}\n', b"no JSON\n", b"no end"]
)
def test_a_server_closes_descriptors_that_nobody_wants(program: Program, line: bytes):
    """Beside an unknown command, one that takes none, and what is no command at all, all are given back."""
    before = descriptors(os.getpid())
    for _ in range(20):
        with plain.socket(plain.AF_UNIX) as client:
            client.connect(str(program.path))
            plain.send_fds(client, [line], [0, 0, 0])
            gevent.sleep(0.01)
    until(lambda: descriptors(os.getpid()) <= before)


def test_descriptors_without_a_line_are_bounded(program: Program):
    """Who sends descriptors and never ends a line is cut off before the program has none left."""
    with plain.socket(plain.AF_UNIX) as client:
        client.connect(str(program.path))
        before = descriptors(os.getpid())
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(100):
                plain.send_fds(client, [b"x"], [0] * 200)
                gevent.sleep(0.002)
                assert descriptors(os.getpid()) <= before + 500
        until(lambda: descriptors(os.getpid()) <= before)
    assert program.errors == [("line", "ControlError")]


def test_a_nested_line_ends_its_connection_only(program: Program):
    """Ten thousand brackets are no command: reported, and the next connection is served."""
    with plain.socket(plain.AF_UNIX) as client:
        client.connect(str(program.path))
        client.sendall(b'{"command":' + b"[" * 10_000 + b"\n")
        until(lambda: program.errors == [("line", "ControlError")])
    assert ask(program.path, Question(command="echo", values={"say": "on"})).ok


def test_the_end_of_a_connection_is_noticed_on_both_sides(program: Program):
    """A server learns that a caller left, and a client that its server died."""
    client = ControlClient(program.path)
    client.ask(Question(command="stay"))
    client.close()
    until(lambda: program.left == 1)

    server, peer = plain.socketpair(plain.AF_UNIX, plain.SOCK_STREAM)
    server.close()
    peer.close()
    listener = socket.socket(socket.AF_UNIX)
    path = program.path.with_name("dying.control")
    listener.bind(str(path))
    listener.listen()
    client = ControlClient(path)
    accepted, _ = listener.accept()
    accepted.close()
    until(client.closed.is_set)
    with pytest.raises(ControlUnavailable):
        client.ask(Question(command="echo"))
    listener.close()


def test_a_program_that_dies_in_mid_question_is_unavailable(program: Program):
    """A connection that ends before the answer raises ControlUnavailable, at once."""
    path = program.path.with_name("dying.control")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen()

    def die() -> None:
        accepted, _ = listener.accept()
        accepted.recv(1)
        accepted.close()

    gevent.spawn(die)
    with pytest.raises(ControlUnavailable, match="went away during echo"):
        ask(path, Question(command="echo"))
    listener.close()


def test_an_answer_that_does_not_come_is_given_up(program: Program):
    """A question not answered in its time raises, and the connection is not used again."""
    with ControlClient(program.path) as client:
        with pytest.raises(ControlUnavailable, match="no answer to slow within"):
            client.ask(Question(command="slow", values={"seconds": 60}), timeout=0.05)
        with pytest.raises(ControlUnavailable):
            client.ask(Question(command="echo", values={"say": "x"}))


def test_nobody_listening_is_unavailable(tmp_path: Path):
    """A program that is not running raises ControlUnavailable with the socket's path."""
    with pytest.raises(ControlUnavailable, match=r"gone\.control"):
        ask(tmp_path / "gone.control", Question(command="status"))


def test_garbage_ends_one_connection_only(program: Program):
    """A client that sends something else loses its connection; others go on."""
    garbage = socket.socket(socket.AF_UNIX)
    garbage.connect(str(program.path))
    garbage.sendall(b"\xff\xfe nonsense\n")
    assert garbage.recv(100) == b""
    garbage.close()
    assert ask(program.path, Question(command="echo", values={"say": "still here"})).ok
    assert program.errors == [("line", "ControlError")]


def test_only_the_owner_can_connect(program: Program):
    """The socket's file has mode 0600."""
    assert program.path.stat().st_mode & 0o777 == 0o600


def test_a_socket_left_by_a_dead_program_is_replaced(tmp_path: Path):
    """A program that was killed leaves its socket file; the next one takes the name over."""
    path = tmp_path / "health.control"
    leftover = plain.socket(plain.AF_UNIX)
    leftover.bind(str(path))
    leftover.close()
    program = Program(path)
    assert ask(path, Question(command="echo", values={"say": "new"})).ok
    program.server.close()
    assert not path.exists()


def test_a_program_that_ends_late_leaves_the_socket_of_its_successor(tmp_path: Path):
    """Closing removes the socket's name only while it is ours."""
    path = tmp_path / "reload.control"
    old = Program(path)
    successor = Program(path)
    old.server.close()
    assert ask(path, Question(command="echo", values={"say": "new"})).ok
    successor.server.close()
    assert not path.exists()


@pytest.mark.parametrize("remove", [Path.unlink, lambda path: shutil.rmtree(path.parent)])
def test_a_removed_socket_is_made_again(tmp_path: Path, remove: Callable[[Path], None]):
    """Also when its directory was removed and made again; a connection that was open goes on."""
    path = tmp_path / "run" / "health.control"
    path.parent.mkdir()
    program = Program(path)
    with ControlClient(path) as held:
        remove(path)
        path.parent.mkdir(exist_ok=True)
        assert held.ask(Question(command="echo", values={"say": "held"})).ok
        with gevent.Timeout(15):
            while not path.exists():
                gevent.sleep(0.05)
        assert ask(path, Question(command="echo", values={"say": "again"})).ok
        assert held.ask(Question(command="echo", values={"say": "still"})).ok
    program.server.close()
    assert not path.exists()
