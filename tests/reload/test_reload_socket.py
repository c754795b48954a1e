"""Reload sockets and clients of every kind, on real sockets."""

import json
import os
import socket as blocking_socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
import structlog
from gevent import socket
from gevent.event import Event
from structlog.testing import CapturingLogger
from support.processes.greenlets import until

from appliance.reload.reload_socket import Outbox, ReloadSockets
from appliance.wire.lines.control import Answer, bad, good
from appliance.wire.lines.reload_line import LINE_LIMIT, SocketLine, UnknownLine

pytestmark = pytest.mark.sockets


class Server:
    """Sockets whose `reload` is answered with its number, and what was logged."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.path = root / "reload.sock"
        self.lines: list[SocketLine] = []
        self.hold = Event()
        self.hold.set()
        self.filler = ""
        self.log = CapturingLogger()
        self.sockets = ReloadSockets(self.respond, structlog.wrap_logger(self.log, processors=[]))

    def respond(self, line: SocketLine) -> Answer:
        """Answer when it is allowed to."""
        self.lines.append(line)
        number = len(self.lines)
        self.hold.wait()
        if isinstance(line, UnknownLine):
            return bad(line.reason)
        return good(generation=number, filler=self.filler)

    def connect(self, path: Path | None = None) -> socket.socket:
        """Return a client."""
        client = socket.socket(socket.AF_UNIX)
        client.settimeout(15)
        client.connect(str(path or self.path))
        return client

    def events(self) -> list[str]:
        """Return the names of what was logged."""
        return [call.args[0] if call.args else call.kwargs["event"] for call in self.log.calls]


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a server that listens."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        made = Server(Path(directory))
        made.sockets.follow([made.path])
        yield made
        made.hold.set()
        made.sockets.close()


def answers(client: socket.socket, count: int) -> list[dict[str, object]]:
    """Return that many answers."""
    received = b""
    while received.count(b"\n") < count:
        chunk = client.recv(1 << 16)
        assert chunk, received
        received += chunk
    return [json.loads(line) for line in received.splitlines()]


def test_a_line_is_answered(server: Server):
    """One line, one answer, on one connection that stays open for the next."""
    with server.connect() as client:
        for number in (1, 2):
            client.sendall(b"reload\n")
            assert answers(client, 1) == [{"ok": True, "generation": number, "filler": ""}]


def test_only_the_owner_may_open_it(server: Server):
    """The socket's mode is 0600."""
    assert stat.S_IMODE(server.path.stat().st_mode) == 0o600


def test_answers_come_in_order(server: Server):
    """Many lines at once, an unknown one among them, are answered one by one in their order."""
    with server.connect() as client:
        client.sendall(b"reload\nrestart\nreload\n")
        first, second, third = answers(client, 3)
    assert first["generation"] == 1
    assert second["ok"] is False
    assert "restart" in str(second["errors"])
    assert third["generation"] == 3


def test_a_line_in_pieces(server: Server):
    """Bytes that come one by one are one line."""
    with server.connect() as client:
        for each in b"reload\n":
            client.sendall(bytes([each]))
            gevent.sleep(0)
        assert answers(client, 1)[0]["ok"] is True
    assert len(server.lines) == 1


def test_megabytes_without_an_end(server: Server):
    """An endless line is refused once, and the connection goes on to serve the next one."""
    with server.connect() as client:
        for _ in range(64):
            client.sendall(b"x" * 65536)
        client.sendall(b"\nreload\n")
        refused, obeyed = answers(client, 2)
    assert str(LINE_LIMIT) in str(refused["errors"])
    assert obeyed["ok"] is True


def test_a_client_that_never_reads(server: Server):
    """Every line of a client that reads nothing is obeyed, others are served, and no answer is torn."""
    server.filler = "f" * 5000
    with server.connect() as client:
        for _ in range(500):
            client.sendall(b"reload\n")
        until(lambda: len(server.lines) == 500)
        with server.connect() as other:
            other.sendall(b"reload\n")
            assert answers(other, 1)[0]["ok"] is True
        client.shutdown(socket.SHUT_WR)
        received = b"".join(iter(lambda: client.recv(1 << 16), b""))
    got = [json.loads(line)["generation"] for line in received.splitlines()]
    assert received.endswith(b"\n")
    assert 0 < len(got) < 500
    assert got == sorted(got)


def test_a_client_that_dies_in_mid_line(server: Server):
    """Half a line is no line; the next client is served."""
    with server.connect() as client:
        client.sendall(b"relo")
    until(lambda: "reload-line-unfinished" in server.events())
    assert server.lines == []
    test_a_line_is_answered(server)


def test_a_client_that_does_not_wait(server: Server):
    """Lines are obeyed although their sender was gone before the first was answered."""
    server.hold.clear()
    with server.connect() as client:
        client.sendall(b"reload\nreload\nreload\n")
    until(lambda: server.lines)
    server.hold.set()
    until(lambda: len(server.lines) == 3)


def test_clients_wait_for_each_other_only_in_the_queue(server: Server):
    """A client whose answer is held back does not keep another from being heard."""
    server.hold.clear()
    with server.connect() as one, server.connect() as other:
        one.sendall(b"reload\n")
        other.sendall(b"reload\n")
        until(lambda: len(server.lines) == 2)
        server.hold.set()
        assert {answers(each, 1)[0]["generation"] for each in (one, other)} == {1, 2}


def test_a_long_answer_is_whole_or_not_at_all():
    """An answer of which the first part fitted is finished before another is begun; others are lost."""
    ours, theirs = socket.socketpair()
    outbox = Outbox(ours)
    line = b"a" * (8 << 20) + b"\n"
    outbox.put(line)
    outbox.put(b"lost\n")
    with gevent.Timeout(15):
        received = b""
        while len(received) < len(line):
            received += theirs.recv(1 << 20)
    until(lambda: not outbox._finishing())
    outbox.put(b"next\n")
    assert received == line
    assert theirs.recv(100) == b"next\n"
    assert outbox.lost == 1


def test_the_socket_of_a_dead_program_is_taken_over(server: Server):
    """A path where nobody listens any more is ours."""
    path = server.root / "left"
    with blocking_socket.socket(blocking_socket.AF_UNIX) as dead:
        dead.bind(str(path))
    server.sockets.follow([server.path, path])
    with server.connect(path) as client:
        client.sendall(b"reload\n")
        assert answers(client, 1)[0]["ok"] is True


def test_a_living_program_keeps_its_socket_until_it_ends(server: Server):
    """A path where another program listens is left alone and said once; it is ours when that one is gone."""
    path = server.root / "theirs"
    with blocking_socket.socket(blocking_socket.AF_UNIX) as living:
        living.bind(str(path))
        living.listen()
        server.sockets.follow([path])
        assert f"process {os.getpid()}" in server.sockets.failures[str(path)]
    until(lambda: not server.sockets.failures)
    with server.connect(path) as client:
        client.sendall(b"reload\n")
        assert answers(client, 1)[0]["ok"] is True
    assert server.events().count("reload-socket-failed") == 1


def test_a_directory_that_comes_later(server: Server):
    """A path whose directory is not there yet is listened on when it is."""
    path = server.root / "haproxy" / "haproxy-master.sock"
    server.sockets.follow([server.path, path])
    assert list(server.sockets.failures) == [str(path)]
    path.parent.mkdir()
    until(path.exists)


def test_a_file_is_not_replaced(server: Server):
    """What is not a socket stays, and the reason is told."""
    path = server.root / "file"
    path.write_text("precious")
    server.sockets.follow([path])
    assert "not a socket" in server.sockets.failures[str(path)]
    assert path.read_text() == "precious"


def test_a_removed_socket_comes_back(server: Server):
    """Somebody's `rm` costs a moment."""
    server.path.unlink()
    until(server.path.exists)


def test_paths_follow_the_configuration(server: Server):
    """A path that leaves is removed, its connections go on; one that comes is listened on."""
    later = server.root / "later.sock"
    with server.connect() as client:
        client.sendall(b"reload\n")
        assert answers(client, 1)[0]["ok"] is True
        server.sockets.follow([later])
        assert not server.path.exists()
        assert later.exists()
        client.sendall(b"reload\n")
        assert answers(client, 1)[0]["ok"] is True


def test_nothing_is_left_at_the_end(server: Server):
    """Closing removes what is ours, and not what another program has put in its place."""
    other = server.root / "other.sock"
    server.sockets.follow([server.path, other])
    other.unlink()
    with blocking_socket.socket(blocking_socket.AF_UNIX) as foreign:
        foreign.bind(str(other))
        server.sockets.close()
        assert not server.path.exists()
        assert other.exists()
