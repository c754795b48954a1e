"""`check: {reuse: true}`: connections that are kept between checks; real HAProxy, nginx, bad servers."""

import contextlib
import ctypes
import os
import signal
import socket
import struct
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import gevent
import pytest
from support.network.ports import accepts, free_port
from support.peers.haproxy import HAProxy
from support.peers.nginx import nginx
from support.processes import greenlets
from support.processes.processes import descriptors
from support.processes.waiting import wait_until
from support.values import certificates, snapshots
from support.values.certificates import Certificates

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import REUSE_CHECKS, REUSE_SECONDS, SendProxy
from appliance.net.probing.kept_connection import Connection
from appliance.net.probing.peer import Plain
from appliance.net.probing.probe import Probe
from appliance.net.probing.tls_contexts import TlsContexts

pytestmark = pytest.mark.programs

ENOUGH: Final = 10.0
OK: Final = b"HTTP/1.1 200 OK\r\n"
GOOD: Final = OK + b"Content-Length: 2\r\n\r\nok"
BAD: Final = b"HTTP/1.1 500 no\r\nContent-Length: 2\r\n\r\nno"
SO_ATTACH_FILTER: Final = 26

Step = bytes | Callable[[socket.socket], None]


@pytest.fixture(scope="module")
def files() -> Iterator[Certificates]:
    """Certificate for localhost and 127.0.0.1, and its authority."""
    with tempfile.TemporaryDirectory() as directory:
        yield certificates.issue(Path(directory), "localhost", "127.0.0.1")


@contextlib.contextmanager
def probing(kind: str, port: int, *, at: str = "127.0.0.1", **changes: object) -> Iterator[Probe]:
    """Yield the check of a server that keeps its connection."""
    settings: dict[str, object] = {"path": "/readyz", "timeout": ENOUGH, "reuse": True, **changes}
    probe = Probe(snapshots.check(kind, **settings), at, port, TlsContexts())
    try:
        yield probe
    finally:
        probe.close()


class Scripted:
    """A server that does one thing for each question, and closes a connection after its script.

    The last script is for all further connections, too. `questions` are counted by connection.
    """

    def __init__(self, *scripts: Sequence[Step]) -> None:
        self._scripts = scripts
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(0.05)
        self._stopped = threading.Event()
        self._threads = [threading.Thread(target=self._serve)]
        self.questions: list[int] = []
        self.port: int = self._listener.getsockname()[1]

    def __enter__(self) -> "Scripted":
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        self._listener.close()

    def close_listener(self) -> None:
        """Accept nothing any more; what is connected goes on."""
        self._listener.close()

    def _serve(self) -> None:
        while not self._stopped.is_set() and self._listener.fileno() >= 0:
            with contextlib.suppress(TimeoutError, OSError):
                connection, _ = self._listener.accept()
                script = self._scripts[min(len(self.questions), len(self._scripts) - 1)]
                self.questions.append(0)
                number = len(self.questions) - 1
                self._threads.append(
                    threading.Thread(target=self._converse, args=(connection, script, number))
                )
                self._threads[-1].start()

    def _converse(self, connection: socket.socket, script: Sequence[Step], number: int) -> None:
        connection.settimeout(0.05)
        with connection, contextlib.suppress(OSError):
            for step in script:
                if not self._asked(connection):
                    return
                self.questions[number] += 1
                if callable(step):
                    step(connection)
                else:
                    connection.sendall(step)

    def _asked(self, connection: socket.socket) -> bool:
        asked = b""
        while b"\r\n\r\n" not in asked:
            if self._stopped.is_set():
                return False
            with contextlib.suppress(TimeoutError):
                data = connection.recv(4096)
                if not data:
                    return False
                asked += data
        return True


def silent(connection: socket.socket) -> None:
    """Say nothing until the client has gone."""
    connection.settimeout(ENOUGH)
    connection.recv(1)


def forgotten(connection: socket.socket) -> None:
    """Answer, and have the kernel drop all that comes from now on without a word, as a packet filter may do.

    The filter of the socket sees packets before TCP does (socket(7), SO_ATTACH_FILTER): `ret #0`.
    """
    drop = ctypes.create_string_buffer(struct.pack("=HBBI", 6, 0, 0, 0))
    program = struct.pack("@HP", 1, ctypes.addressof(drop))
    connection.setsockopt(socket.SOL_SOCKET, SO_ATTACH_FILTER, program)
    connection.sendall(GOOD)


def told(outcome: CheckOutcome) -> tuple[CheckResult, bool]:
    """Return the result, and whether an earlier connection was used."""
    return outcome.result, outcome.reused


NEW: Final = (CheckResult.L7OK, False)
KEPT: Final = (CheckResult.L7OK, True)


def haproxy_cfg(port: int, *, bind: str = "", idle: str = "1m", answer: str = "") -> str:
    """Return the file of an HAProxy that answers itself."""
    return f"""
global
  stats socket {{control}}
defaults
  mode http
  timeout client 1m
  timeout http-keep-alive {idle}
frontend asked
  bind 127.0.0.1:{port} {bind}
  bind [::1]:{port} {bind}
  http-request return status 200 content-type text/plain string "ok" {answer}
"""


def counted(haproxy: HAProxy) -> tuple[int, int, int]:
    """Return the connections and requests of the frontend until now, and the connections that are open."""
    (row,) = (row for row in haproxy.rows() if row["svname"] == "FRONTEND")
    return int(row["conn_tot"]), int(row["req_tot"]), int(row["scur"])


@pytest.mark.needs("haproxy")
@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
@pytest.mark.parametrize("kind", ["http", "https"])
def test_ten_checks_are_one_connection(kind: str, host: str, files: Certificates, tmp_path: Path):
    """HAProxy counts 21 requests on three connections, with and without TLS, on both families."""
    port = free_port()
    pem = tmp_path / "server.pem"
    pem.write_bytes(files.chain.read_bytes() + files.key.read_bytes())
    bind = f"ssl crt {pem}" if kind == "https" else ""
    with HAProxy(haproxy_cfg(port, bind=bind)) as haproxy, probing(kind, port, at=host) as probe:
        found = [told(probe.run()) for _ in range(2 * REUSE_CHECKS + 1)]
        connections, requests, _ = counted(haproxy)

    assert found == [NEW, *[KEPT] * (REUSE_CHECKS - 1)] * 2 + [NEW]
    assert (connections, requests) == (3, 2 * REUSE_CHECKS + 1)


@pytest.mark.needs("haproxy")
def test_a_connection_that_the_server_has_closed_is_no_failure():
    """HAProxy ends idle connections after a moment: the next check makes a new one, and asks once."""
    port = free_port()
    with HAProxy(haproxy_cfg(port, idle="50ms")) as haproxy, probing("http", port) as probe:
        found = []
        for _ in range(3):
            found.append(told(probe.run()))
            wait_until(lambda: counted(haproxy)[2] == 0, what="HAProxy has closed its side")
        connections, requests, _ = counted(haproxy)

    assert (found, connections, requests) == ([NEW] * 3, 3, 3)


@pytest.mark.needs("haproxy")
@pytest.mark.parametrize("version", [SendProxy.V1, SendProxy.V2])
def test_the_proxy_header_comes_once(version: SendProxy):
    """It belongs to the connection: HAProxy would take a second one for a bad request."""
    port = free_port()
    with (
        HAProxy(haproxy_cfg(port, bind="accept-proxy")) as haproxy,
        probing("http", port, send_proxy=version, expect_body="ok") as probe,
    ):
        found = [told(probe.run()) for _ in range(3)]
        assert counted(haproxy)[:2] == (1, 3)

    assert found == [NEW, KEPT, KEPT]


@pytest.mark.needs("haproxy")
def test_a_server_that_closes_each_time_is_asked_anew():
    """`Connection: close` is obeyed; the check passes on a new connection every time."""
    port = free_port()
    config = haproxy_cfg(port).replace("timeout client", "option httpclose\n  timeout client")
    with HAProxy(config) as haproxy, probing("http", port) as probe:
        assert [told(probe.run()) for _ in range(3)] == [NEW] * 3
        assert counted(haproxy)[:2] == (3, 3)


@pytest.mark.needs("haproxy")
def test_a_server_that_stops_softly_is_found_at_once():
    """HAProxy closes its listener and its idle connections: the check after that is refused."""
    port = free_port()
    with HAProxy(haproxy_cfg(port)) as haproxy, probing("http", port) as probe:
        assert probe.run().passed
        os.kill(haproxy.pid, signal.SIGUSR1)
        wait_until(lambda: not accepts(port), what="HAProxy accepts no more")
        outcomes = [probe.run() for _ in range(2)]  # the first may be answered, with `Connection: close`

    assert outcomes[1].result is CheckResult.L4CON


@pytest.mark.needs("nginx")
@pytest.mark.parametrize(
    "changes", [{}, {"method": "HEAD"}, {"expect_body": "ok"}, {"host": "a.example.com"}]
)
def test_nginx_is_asked_again(changes: dict[str, object], files: Certificates):
    """Over TLS, whatever is asked; the certificate is looked at when the connection is made."""
    with (
        nginx(certificates=files) as web,
        probing("https", web.port, verify=str(files.authority), sni="localhost", **changes) as probe,
    ):
        assert [told(probe.run()) for _ in range(3)] == [NEW, KEPT, KEPT]


@pytest.mark.needs("nginx")
def test_a_long_body_ends_the_connection():
    """What is more than a check looks at is not read for the next check's sake; less is, once it has come."""
    with nginx() as web:
        (web.www / "short").write_bytes(b"x" * 16384)
        (web.www / "long").write_bytes(b"x" * 1_000_000)
        with probing("http", web.port, path="/short") as probe:
            wait_until(lambda: told(probe.run()) == KEPT, what="a short answer has come as a whole")
        with probing("http", web.port, path="/long") as probe:
            assert [told(probe.run()) for _ in range(REUSE_CHECKS)] == [NEW] * REUSE_CHECKS


@pytest.mark.parametrize(
    ("answer", "later"),
    [
        (GOOD, KEPT),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\nExpires: 0\r\n\r\n", KEPT),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + GOOD, KEPT),
        (b"HTTP/1.1 204 -\r\n\r\n", KEPT),
        (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 0\r\n\r\n", KEPT),
        (OK + b"\r\nok", NEW),
        (OK + b"Content-Length: 3\r\n\r\nok", NEW),
        (OK + b"Content-Length: 2\r\n\r\nok and more", NEW),
        (OK + b"no header\r\nContent-Length: 2\r\n\r\nok", NEW),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", NEW),
        (OK + b"Content-Length: 9\r\n\r\n" + GOOD, NEW),
    ],
)
def test_only_a_whole_answer_leaves_its_connection(answer: bytes, later: tuple[CheckResult, bool]):
    """Every answer is judged by its status as without `reuse`; one of doubtful end is the last one."""
    with Scripted([answer] * 5) as server, probing("http", server.port) as probe:
        found = [told(probe.run()) for _ in range(3)]

    assert found == [NEW, later, later]


def test_no_answer_is_left_for_the_next_question():
    """An answer that nobody asked for, as 408 before a close, is not taken for that of the next check."""
    with Scripted([GOOD + BAD], [GOOD] * 2) as server, probing("http", server.port) as probe:
        assert [told(probe.run()) for _ in range(3)] == [NEW, NEW, KEPT]


def test_a_bad_answer_on_a_kept_connection_is_asked_again():
    """The process that has the connection may be one that ends: what a new client is told counts."""
    with Scripted([GOOD, BAD], [GOOD] * 2) as server, probing("http", server.port) as probe:
        assert [told(probe.run()) for _ in range(3)] == [NEW, NEW, KEPT]
        assert server.questions == [2, 2]
    with Scripted([GOOD, BAD], [BAD]) as server, probing("http", server.port) as probe:
        assert [told(probe.run()) for _ in range(3)] == [
            NEW,
            (CheckResult.L7STS, False),
            (CheckResult.L7STS, False),
        ]


def test_a_server_without_a_listener_is_found_when_the_connection_is_old():
    """This is what a kept connection cannot see; it may be kept for so many checks only."""
    with Scripted([GOOD] * 100) as server, probing("http", server.port) as probe:
        assert probe.run().passed
        server.close_listener()
        wait_until(lambda: not accepts(server.port), what="nobody is let in")
        found = [told(probe.run()) for _ in range(REUSE_CHECKS + 1)]

    refused = (CheckResult.L4CON, False)
    assert found == [KEPT] * (REUSE_CHECKS - 1) + [refused] * 2


def test_a_connection_is_kept_for_half_a_minute():
    """`fit` is asked with the time: at the age of REUSE_SECONDS another one is due."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.settimeout(0.0)
        theirs.sendall(GOOD)
        subject = Connection(ours, Plain(ours), snapshots.check("http", reuse=True), made_at=100.0)
        assert subject.ask(b"GET / HTTP/1.1\r\n\r\n")[0] is CheckResult.L7OK
        assert subject.fit(100.0 + REUSE_SECONDS - 0.01)
        assert not subject.fit(100.0 + REUSE_SECONDS)


def test_a_connection_that_a_packet_filter_has_forgotten_takes_no_server_down():
    """Nobody acknowledges the question: it is asked again on a new connection, in the same check."""
    with (
        Scripted([forgotten, GOOD], [GOOD] * 2) as server,
        probing("http", server.port, timeout_connect=2.0) as probe,
    ):
        assert [told(probe.run()) for _ in range(3)] == [NEW, NEW, KEPT]


def test_a_server_that_acknowledges_and_says_nothing_runs_out_of_time():
    """Its kernel lives, and it has the check's whole time, as on a new connection."""
    with Scripted([GOOD, silent], [GOOD]) as server, probing("http", server.port, timeout=0.5) as probe:
        found = [probe.run() for _ in range(3)]

    assert [told(each) for each in found] == [NEW, (CheckResult.L7TOUT, False), NEW]
    assert found[1].detail == "no answer within 0.5 s"


def test_time_for_connecting_begins_with_the_connect():
    """A kept connection that proves dead late leaves the new one its own time to connect."""

    def late_end(connection: socket.socket) -> None:
        gevent.sleep(0.4)
        connection.close()

    with (
        Scripted([GOOD, late_end], [GOOD]) as server,
        probing("http", server.port, timeout_connect=0.3) as probe,
    ):
        assert [told(probe.run()) for _ in range(2)] == [NEW, NEW]


def test_a_full_queue_of_connections_is_told_as_such():
    """After a kept connection has failed, a listener that swallows SYNs is L4TOUT, within the same check."""
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        address = listener.getsockname()
        probe = stack.enter_context(probing("http", address[1], timeout=5.0, timeout_connect=0.3))
        first = gevent.spawn(probe.run)
        gevent.sleep(0)
        accepted, _ = listener.accept()
        accepted.sendall(GOOD)
        assert told(first.get()) == NEW
        for _ in range(3):
            filler = stack.enter_context(socket.socket())
            filler.settimeout(0.0)
            filler.connect_ex(address)
        accepted.close()
        outcome = probe.run()

    assert (outcome.result, outcome.detail) == (CheckResult.L4TOUT, "no answer within 0.3 s")


def test_no_descriptor_is_left():
    """Whatever becomes of a kept connection, and of the check that is broken off on it."""
    with Scripted([GOOD, BAD], [GOOD, silent], [GOOD] * 3) as server:
        before = descriptors(os.getpid())
        with probing("http", server.port) as probe:
            assert [told(probe.run()) for _ in range(2)] == [NEW, NEW]
            broken_off = gevent.spawn(probe.run)
            greenlets.until(lambda: server.questions[1:] == [2], what="the third question has come")
            broken_off.kill()
            assert [told(probe.run()) for _ in range(2)] == [NEW, KEPT]
        wait_until(lambda: descriptors(os.getpid()) <= before, what="all descriptors are given back")
