"""Everything that listens or asks, with peers that send whatever they like: see support/fuzzing/fuzzing.py.

Each input is a whole connection. What has to hold besides: no bug is reported, no descriptor stays open, and
the next good question gets its answer.
"""

import contextlib
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
import structlog
import trustme
from gevent import socket
from support.fuzzing.connections import PATIENCE, conversation, nothing_left, unix
from support.fuzzing.fuzzing import Target, fuzz
from support.values.snapshots import check, frontend

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.end_reasons import EndReason
from appliance.net.control.control_client import ask
from appliance.net.control.control_server import ControlServer
from appliance.net.control.loop_control_server import LoopControlServer
from appliance.net.loop.loop import Loop
from appliance.net.probing.probe import Probe
from appliance.net.probing.tls_contexts import TlsContexts
from appliance.reload.reload_socket import ReloadSockets
from appliance.wire.lines.control import Question, good
from appliance.wire.lines.reload_line import ReloadLine, SocketLine
from appliance.worker.relay import raw_sockets
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.responder import Responder

pytestmark = pytest.mark.sockets

LINES = (b'{"command": "echo", "say": "hi"}\n', b'{"command": "none"}\n{"command": "echo"}\n')
WORDS = (b"\n", b'{"command": "echo", "say": ', b"[" * 300, b"\xff", b"null", b"x" * 70_000)


class Bugs(list[object]):
    """What gevent's hub was told of greenlets that ended by an error nobody expects."""

    def note(self, context: object, kind: object, value: object, _: object) -> None:
        """Take a note, in place of a traceback on the screen."""
        del context, kind
        self.append(value)


@pytest.fixture(autouse=True)
def bugs(monkeypatch: pytest.MonkeyPatch) -> Iterator[Bugs]:
    """Demand that no greenlet ends by an error."""
    found = Bugs()
    monkeypatch.setattr(gevent.get_hub(), "handle_error", found.note)
    yield found
    assert found == []


def test_control_server(tmp_path: Path, fuzz_seconds: float, fuzz_seed: int):
    """A program's control socket."""
    errors: list[str] = []
    path = tmp_path / "a.control"
    server = ControlServer(
        path,
        {"echo": lambda call: good(said=call.question.text("say"))},
        on_error=lambda where, _: errors.append(where),
    )

    def run(data: bytes) -> None:
        conversation(unix(path), data)
        assert ask(path, Question(command="echo", values={"say": "hi"})) == good(said="hi")
        assert set(errors) <= {"line"}

    with nothing_left():
        fuzz(
            Target(name="control-server", run=run, seeds=LINES, words=WORDS, longest=1 << 17),
            seconds=fuzz_seconds,
            seed=fuzz_seed,
        )
    server.close()


def test_loop_control_server(tmp_path: Path, fuzz_seconds: float, fuzz_seed: int):
    """The control socket of a program with a loop of its own."""
    errors: list[str] = []
    loop, path = Loop(), tmp_path / "vrrp.control"
    ours, theirs = socket.socketpair()
    loop.read(ours.fileno(), loop.stop)
    server = LoopControlServer(
        loop,
        path,
        {"echo": lambda question: good(said=question.text("say"))},
        on_error=lambda where, _: errors.append(where),
    )
    thread = threading.Thread(target=loop.run)
    thread.start()

    def run(data: bytes) -> None:
        conversation(unix(path), data)
        assert ask(path, Question(command="echo", values={"say": "hi"})) == good(said="hi")
        assert set(errors) <= {"line"}

    try:
        with nothing_left():
            fuzz(
                Target(name="loop-control-server", run=run, seeds=LINES, words=WORDS, longest=1 << 17),
                seconds=fuzz_seconds,
                seed=fuzz_seed,
            )
    finally:
        theirs.send(b"x")
        thread.join(PATIENCE)
        server.close()
        ours.close()
        theirs.close()


def test_reload_sockets(tmp_path: Path, fuzz_seconds: float, fuzz_seed: int):
    """The reload socket: every whole line that says `reload` is obeyed, and nothing else."""
    obeyed: list[SocketLine] = []

    def respond(line: SocketLine) -> object:
        obeyed.append(line)
        return good(generation=len(obeyed))

    sockets = ReloadSockets(
        respond, structlog.wrap_logger(structlog.testing.CapturingLogger(), processors=[])
    )
    sockets.follow([tmp_path / "reload.sock"])

    def run(data: bytes) -> None:
        obeyed.clear()
        conversation(unix(tmp_path / "reload.sock"), data)
        lines = data.split(b"\n")[:-1]
        wanted = sum(line.strip() == b"reload" for line in lines if len(line) <= 4096)
        assert sum(isinstance(each, ReloadLine) for each in obeyed) == wanted

    with nothing_left():
        fuzz(
            Target(
                name="reload-socket",
                run=run,
                seeds=(b"reload\nreload\r\n  reload \nshow info\n", b"reload"),
                words=(b"reload\n", b"x" * 4096),
            ),
            seconds=fuzz_seconds,
            seed=fuzz_seed,
        )
    sockets.close()


def test_monitor(fuzz_seconds: float, fuzz_seed: int):
    """The endpoints that a worker answers itself."""
    faults: list[Exception] = []
    traffic = Traffic(descriptors=1000, fault=faults.append, accept_failed=print, make_room=print)
    state = FrontendState(frontend("ready", pool=None, respond="/haproxy_ready"), workers=1, index=0)
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def connect() -> socket.socket:
            client = socket.create_connection(listener.getsockname())
            descriptor = raw_sockets.accept(listener.fileno())
            state.current += 1
            Responder(traffic, state, None, descriptor, raw_sockets.peer())
            return client

        def run(data: bytes) -> None:
            conversation(connect, data)
            assert faults == []
            with gevent.Timeout(PATIENCE), connect() as client:
                client.sendall(b"GET /haproxy_ready HTTP/1.0\r\n\r\n")
                assert client.recv(65536).startswith(b"HTTP/1.1 200 OK")

        with nothing_left():
            fuzz(
                Target(
                    name="monitor",
                    run=run,
                    seeds=(
                        b"GET /haproxy_ready HTTP/1.0\r\n\r\n",
                        b"HEAD /haproxy_ready?x HTTP/1.1\r\nHost: lb\r\n\r\nmore",
                    ),
                    words=(b"HTTP/1.1", b"\r\n\r\n", b"x" * 9000),
                ),
                seconds=fuzz_seconds,
                seed=fuzz_seed,
            )
            traffic.end_all(EndReason.KILLED)
    assert state.current == 0


@contextlib.contextmanager
def server_that_says(answers: list[bytes]) -> Iterator[int]:
    """Run a server that takes a question, gives the last of the answers, and ends; give its port."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(100)

        def serve() -> None:
            while True:
                client, _ = listener.accept()
                gevent.spawn(answer, client)

        def answer(client: socket.socket) -> None:
            with client, contextlib.suppress(OSError):
                client.recv(65536)
                client.sendall(answers[-1])

        loop = gevent.spawn(serve)
        yield listener.getsockname()[1]
        loop.kill()


def checked(kind: str, port: int) -> CheckOutcome:
    """Return how a check ends; not even a bad server makes it last longer than it may."""
    with gevent.Timeout(PATIENCE):
        return Probe(check(kind, path="/readyz", timeout=5.0), "127.0.0.1", port, TlsContexts()).run()


def flight() -> bytes:
    """Return what a TLS server says first, to a client that offers what our checks offer."""
    authority, contexts = trustme.CA(), [ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)]
    authority.issue_cert("localhost").configure_cert(contexts[0])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    client_in = ssl.MemoryBIO()
    client = TlsContexts().context(verify=None, named=False).wrap_bio(client_in, to_server)
    server = contexts[0].wrap_bio(to_server, to_client, server_side=True)
    for side in (client, server):
        with contextlib.suppress(ssl.SSLWantReadError):
            side.do_handshake()
    return to_client.read()


HTTP = (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", b"HTTP/1.0 500 Internal Server Error\r\n\r\n")


@pytest.mark.parametrize("kind", ["http", "https", "tls"])
def test_checks(kind: str, fuzz_seconds: float, fuzz_seed: int):
    """Whatever a server answers, its check has an outcome, in words that can be shown."""
    answers = [b""]
    seeds = HTTP if kind == "http" else (flight(), b"\x15\x03\x03\x00\x02\x02\x28", HTTP[0])
    words = (
        b"\x16\x03\x03",
        b"\x16\x03\x03\x00\x04\x00\x00\x00\x00",
        b"\x17\x03\x03\x40\x00",
        b"HTTP/1.1 200",
    )
    with nothing_left(), server_that_says(answers) as port:

        def run(data: bytes) -> None:
            answers.append(data)
            outcome = checked(kind, port)
            answers.clear()
            answers.append(b"")
            assert outcome.detail.isprintable()

        fuzz(
            Target(name=f"check-{kind}", run=run, seeds=seeds, words=words),
            seconds=fuzz_seconds,
            seed=fuzz_seed,
        )
