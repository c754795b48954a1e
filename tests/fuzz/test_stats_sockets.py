"""What the program stats listens on, HTTP and HAProxy's commands, with clients that send what they like."""

from collections.abc import Iterator
from dataclasses import replace
from http.client import HTTPConnection
from pathlib import Path

import gevent
import pytest
import structlog
from gevent import socket
from structlog.testing import CapturingLogger
from support.fuzzing.connections import PATIENCE, conversation, nothing_left, unix
from support.fuzzing.fuzzing import Target, fuzz
from support.network.ports import free_port
from support.values.snapshots import pool, server, snapshot

from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Bind
from appliance.model.snapshot.snapshot import Stats
from appliance.net.files import snapshots
from appliance.stats.service import StatsService

pytestmark = pytest.mark.sockets

GET = b"GET %s HTTP/1.1\r\nHost: lb\r\nConnection: close\r\n\r\n"
"""One request; the connection ends behind it."""

FORM = b"token=x&pool=masters&server=m0&state=drain"
REQUESTS = (
    GET % b"/metrics",
    GET % b"/haproxy_stats;csv;norefresh",
    GET % b"/api/v1/status",
    b"GET / HTTP/1.0\r\nAuthorization: Basic YWRtaW46eA==\r\nAccept: application/openmetrics-text\r\n\r\n",
    b"POST /servers HTTP/1.1\r\nHost: lb\r\nContent-Type: application/x-www-form-urlencoded\r\n"
    b"Content-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(FORM), FORM),
    b"POST /servers HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2a\r\n" + FORM + b"\r\n0\r\n\r\n",
)
LINES = (
    b"show info;show stat\n",
    b"show stat masters 4 -1\r\n",
    b"prompt\nget weight masters/m0\nset weight masters/m0 50%\nset server masters/m0 state drain\nquit\n",
    b"show servers state masters;show sess;help;shutdown sessions server masters/m0\n",
)
WORDS = (
    b"\r\n\r\n",
    b"HTTP/1.1",
    b"%00",
    b"Content-Length: -1\r\n",
    b"Content-Length: 99999999\r\n",
    b"x" * 20_000,
)


class Listening:
    """The program's service, with what it has logged as a bug."""

    def __init__(self, directory: Path) -> None:
        self.port, self.path = free_port(), directory / "haproxy.sock"
        self._log = CapturingLogger()
        paths = Paths(runtime=directory, state=directory)
        stats = Stats(bind=Bind(host="127.0.0.1", port=self.port), socket=str(self.path))
        masters = pool("masters", servers=[server("m0", port=free_port())])
        accepted = replace(snapshot(pools=[masters]), stats=stats)
        snapshots.accept(paths, accepted)
        self.service = StatsService(paths, structlog.wrap_logger(self._log, processors=[]))
        self.service.commit(self.service.prepare(accepted))

    def bugs(self) -> list[object]:
        """Return what was logged as an error."""
        return [call for call in self._log.calls if call.method_name in {"error", "exception", "critical"}]

    def connect(self) -> socket.socket:
        """Connect to the web server."""
        return socket.create_connection(("127.0.0.1", self.port))


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[Listening]:
    """Give a service that has answered once."""
    made = Listening(tmp_path)
    _status(made)
    yield made
    made.service.close()


def _status(listening: Listening) -> int:
    """Ask the next good question."""

    def ask() -> int:
        client = HTTPConnection("127.0.0.1", listening.port, timeout=PATIENCE)
        with listening.connect() as client.sock:
            client.request("GET", "/metrics", headers={"Connection": "close"})
            answer = client.getresponse()
            assert b"appliance_ok" in answer.read()
            return answer.status

    with gevent.Timeout(PATIENCE):
        return gevent.spawn(ask).get()


def test_web_server(listening: Listening, fuzz_seconds: float, fuzz_seed: int):
    """Whatever a browser or a scanner sends."""

    def run(data: bytes) -> None:
        conversation(listening.connect, data)
        assert _status(listening) == 200
        assert listening.bugs() == []

    with nothing_left():
        fuzz(
            Target(name="stats-http", run=run, seeds=REQUESTS, words=WORDS, longest=1 << 16),
            seconds=fuzz_seconds,
            seed=fuzz_seed,
        )


def test_command_socket(listening: Listening, fuzz_seconds: float, fuzz_seed: int):
    """Whatever who may write to the socket writes there; the next command is answered."""

    def run(data: bytes) -> None:
        conversation(unix(listening.path), data)
        with gevent.Timeout(PATIENCE), unix(listening.path)() as client:
            client.sendall(b"show version\n")
            assert client.recv(4096).startswith(b"2.6.0-appliance-")
        assert listening.bugs() == []

    with nothing_left():
        fuzz(
            Target(name="stats-commands", run=run, seeds=LINES, words=(b";", b"\n", b"x" * 17_000, b"\xff")),
            seconds=fuzz_seconds,
            seed=fuzz_seed,
        )
