"""A worker tells health of servers that fail its clients, and of nothing that clients do."""

import contextlib
import select
import socket
import time
from collections.abc import Iterator

import pytest
from support.processes.waiting import wait_until
from support.values.snapshots import check
from support.worker.trace import Origin, Relay, Setting, is_reset, read_all, relay, reset

from appliance.model.end_reasons import EndReason
from appliance.wire.lines.connect_failure import ConnectFailure, decode

pytestmark = pytest.mark.programs

CHECKED = {"check": check("tcp")}
TICKS = 20  # a second


@contextlib.contextmanager
def health_socket(running: Relay) -> Iterator[socket.socket]:
    """Listen in the place of health."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
        heard.bind(str(running.worker.paths.health_connect_failures))
        heard.settimeout(15)
        yield heard


def heard_so_far(heard: socket.socket) -> list[ConnectFailure]:
    """Return what health has heard so far."""
    found = []
    while select.select([heard], [], [], 0)[0]:
        found.append(decode(heard.recv(2000)))
    return found


def closed() -> Origin:
    """Return a server whose port refuses."""
    origin = Origin()
    origin.close()
    return origin


def test_a_server_that_refuses_is_told():
    """The client is served by another one, and health hears which server it was that failed."""
    setting = Setting(origins=[closed(), Origin()], each=CHECKED)
    with relay(setting) as running, health_socket(running) as heard:
        clients = [running.connect() for _ in range(2)]
        for client in clients:
            client.sendall(b"x")
        servers = [setting.origins[1].accept() for _ in clients]
        assert decode(heard.recv(2000)) == ConnectFailure("pool", "s0")
        assert [server.recv(1) for server in servers] == [b"x", b"x"]
        assert heard_so_far(heard) == []


def test_a_server_that_does_not_answer_is_told():
    """A connect that takes too long is as good as a refusal."""
    silent, good = Origin(backlog=0), Origin()
    fillers = [socket.socket() for _ in range(4)]
    for filler in fillers:
        filler.setblocking(False)  # noqa: FBT003  # the standard library's signature
        filler.connect_ex(("127.0.0.1", silent.port))
    setting = Setting(origins=[silent, good], each=CHECKED, back={"timeout_connect": 0.3})
    with relay(setting) as running, health_socket(running) as heard:
        clients = [running.connect() for _ in range(2)]
        for client in clients:
            client.sendall(b"x")
        servers = [good.accept() for _ in clients]
        assert decode(heard.recv(2000)) == ConnectFailure("pool", "s0")
        assert [server.recv(1) for server in servers] == [b"x", b"x"]


def test_a_server_that_resets_before_a_word_is_told():
    """It accepts and resets: for its clients that is a refusal."""
    setting = Setting(origins=[Origin()], each=CHECKED)
    with relay(setting) as running, health_socket(running) as heard:
        client, server = running.pair()
        client.sendall(b"hello")
        assert server.recv(10) == b"hello"
        reset(server)
        assert is_reset(client)
        assert decode(heard.recv(2000)) == ConnectFailure("pool", "s0")


def test_so_many_failures_are_told_as_the_limit_says():
    """With a limit of 3 the third one in a row is told; one that was served between them begins anew."""
    setting = Setting(origins=[Origin()], each={"check": check("tcp", error_limit=3)})

    def fails() -> None:
        client, server = running.pair()
        client.sendall(b"x")
        server.recv(1)
        reset(server)
        assert is_reset(client)

    with relay(setting) as running, health_socket(running) as heard:
        fails()
        fails()
        client, server = running.pair()
        server.sendall(b"fine")
        server.close()
        assert read_all(client) == b"fine"
        client.close()
        running.ended(EndReason.COMPLETED)
        fails()
        fails()
        running.ended(EndReason.SERVER_ABORT, 4)
        assert heard_so_far(heard) == []
        fails()
        assert decode(heard.recv(2000)) == ConnectFailure("pool", "s0")


def test_bad_clients_are_none_of_healths_business():
    """Resets, silence and garbage from clients tell nothing of the server, however many there are."""
    setting = Setting(origins=[Origin()], each=CHECKED)
    with relay(setting) as running, health_socket(running) as heard:
        for number in range(60):
            client, server = running.pair()
            if number % 2:
                server.sendall(b"hello")
                assert client.recv(10) == b"hello"
                # The server has answered: that it resets now is what this client has brought about.
                reset(server)
                assert is_reset(client)
            else:
                client.sendall(b"garbage")
                reset(client)
                assert is_reset(server)
        running.ended(EndReason.CLIENT_ABORT, 30)
        running.ended(EndReason.SERVER_ABORT, 30)
        assert heard_so_far(heard) == []


def test_many_failures_at_a_time_are_told_once():
    """At the most one datagram for each server and tick, whatever happens to how many clients."""
    setting = Setting(origins=[closed()], each=CHECKED, back={"retries": 0})
    with relay(setting) as running, health_socket(running) as heard:
        started = time.monotonic()
        for _ in range(200):
            assert running.refuses()
        took = time.monotonic() - started
        decode(heard.recv(2000))
        assert len(heard_so_far(heard)) <= took * TICKS + 2


@pytest.mark.parametrize("there", [False, True])
def test_traffic_goes_on_where_nobody_listens(there: bool):  # noqa: FBT001  # a parameter of the test
    """Health may be gone, or slow to read: the worker never waits for it."""
    setting = Setting(origins=[closed(), Origin()], each=CHECKED)
    with relay(setting) as running, contextlib.ExitStack() as stack:
        if there:
            heard = stack.enter_context(health_socket(running))
            _fill(heard)
        for _ in range(20):
            client = running.connect()
            client.sendall(b"x")
            server = setting.origins[1].accept()
            assert server.recv(1) == b"x"
            server.sendall(b"y")
            assert client.recv(1) == b"y"
        if there:
            wait_until(lambda: _hears(heard), what="health hears of it when it reads again")


def _fill(heard: socket.socket) -> None:
    """Send until no datagram fits any more."""
    kind = socket.SOCK_DGRAM | socket.SOCK_NONBLOCK
    with socket.socket(socket.AF_UNIX, kind) as full, contextlib.suppress(BlockingIOError):
        while True:
            full.sendto(b"x", heard.getsockname())


def _hears(heard: socket.socket) -> bool:
    while select.select([heard], [], [], 0)[0]:
        if heard.recv(2000) != b"x":
            return True
    return False
