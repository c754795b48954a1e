"""Endpoints that a worker answers itself (`respond`)."""

import socket

import pytest
from support.network.ports import free_port
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import lone_worker, up
from support.worker.trace import Relay, Setting, is_reset, read_all

from appliance.model.end_reasons import EndReason
from appliance.model.server_states import HealthVerdict
from appliance.model.snapshot import snapshot as model
from appliance.model.snapshot.pools import OnDown
from appliance.wire.boards.health_board import ServerHealthRecord

pytestmark = pytest.mark.programs


READY = "/haproxy_ready"


def _endpoint(*, panic: float = 0.0, **changes: object) -> model.Snapshot:
    front = frontend("ready", binds=[bind(free_port())], respond=READY, **changes)
    return snapshot(
        groups=[group("api", frontends=[front])],
        pools=[pool("pool", servers=[server("s0", port=1)], on_down=OnDown.KEEP, panic=panic)],
    )


def _fetch(given: model.Snapshot, request: bytes, *pieces: bytes) -> bytes:
    port = given.groups[0].frontends[0].binds[0].port
    with socket.create_connection(("127.0.0.1", port), timeout=15) as client:
        for piece in (request, *pieces):
            client.sendall(piece)
        return read_all(client)


@pytest.mark.parametrize(
    ("request_", "status"),
    [
        (b"GET /haproxy_ready HTTP/1.1\r\nHost: x\r\n\r\n", b"200"),
        (b"HEAD /haproxy_ready HTTP/1.0\r\n\r\n", b"200"),
        (b"GET /haproxy_ready?x HTTP/1.1\r\n\r\n", b"200"),
        (b"GET / HTTP/1.1\r\n\r\n", b"404"),
        (b"POST /haproxy_ready HTTP/1.1\r\n\r\n", b"405"),
        (b"\x16\x03\x01 garbage\r\n\r\n", b"400"),
        (b"x" * 9000, b"400"),
    ],
)
def test_endpoint_answers(request_: bytes, status: bytes):
    """GET and HEAD of the path are 200, everything else says what is wrong with it."""
    given = _endpoint()
    with lone_worker(given):
        answer = _fetch(given, request_)
        assert answer.startswith(b"HTTP/1.1 " + status)
        assert answer.endswith(b"</html>\n") is (
            status in {b"200", b"404"} and not request_.startswith(b"HEAD")
        )


@pytest.mark.parametrize("panic", [0.0, 1.0])
def test_endpoint_needs_its_pool(panic: float):
    """A monitor is 503 as long as its pool has no server up, also where a panic uses those that are down."""
    given = _endpoint(panic=panic, needs="pool")
    with lone_worker(given) as worker:
        running = Relay(worker, Setting())
        question = b"GET /haproxy_ready HTTP/1.1\r\n\r\n"
        assert _fetch(given, question).startswith(b"HTTP/1.1 200")
        worker.publish(_records(given, HealthVerdict.DOWN))
        running.until(lambda: _fetch(given, question).startswith(b"HTTP/1.1 503"), "503")
        running.until(lambda: running.reasons().get(EndReason.RESPONDED, 0) >= 2, "counted")


def _records(given: model.Snapshot, verdict: HealthVerdict) -> list[ServerHealthRecord]:
    return [up(given.pools[0], each, verdict=verdict) for each in given.pools[0].servers]


def test_endpoint_takes_pieces_and_ends_slow_clients():
    """A request may come in pieces; one that never ends is closed at the client's timeout."""
    given = _endpoint(timeout_client=0.3)
    with lone_worker(given) as worker:
        running = Relay(worker, Setting())
        assert _fetch(given, b"GET /hap", b"roxy_ready HTTP/1.1\r\n", b"\r\n").startswith(b"HTTP/1.1 200")
        port = given.groups[0].frontends[0].binds[0].port
        slow = socket.create_connection(("127.0.0.1", port), timeout=15)
        slow.sendall(b"GET")
        running.until(lambda: any(each["phase"] == "responding" for each in running.sessions()), "listed")
        assert is_reset(slow)
        socket.create_connection(("127.0.0.1", port)).close()
        running.until(lambda: running.reasons().get(EndReason.CLIENT_ABORT) == 1, "an abort")
        assert running.reasons()[EndReason.CLIENT_TIMEOUT] == 1
