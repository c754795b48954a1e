"""Many short connections, a good part of them cut short: a worker is afterwards what it was before.

`E2E_FULL=1` makes 100,000 connections.
"""

import os
import random
import socket
import struct
from collections.abc import Callable
from contextlib import suppress

import pytest
from support.network.ports import free_port
from support.peers.nginx import nginx
from support.processes.processes import descriptors, resident
from support.processes.waiting import wait_until
from support.values import body
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import LoneWorker, lone_worker

pytestmark = [
    pytest.mark.programs,
    pytest.mark.needs("nginx"),
    pytest.mark.slow("many connections, or real time-outs"),
]

_CONNECTIONS = 100_000 if os.environ.get("E2E_FULL") == "1" else 15_000
_WARM_UP = 3_000
_LARGE = 4 << 20
_GROWTH = 4 << 20
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)

Behaviour = Callable[[socket.socket], None]


def test_connections_cut_short_leave_nothing_behind():
    """Descriptors are back where they were, memory within 4 MiB, sessions at none, and it still serves."""
    port = free_port()
    with nginx() as backend:
        body.write(backend.www / "large", _LARGE)
        wanted = snapshot(
            groups=[group(frontends=[frontend(binds=[bind(port)])])],
            pools=[pool(servers=[server(port=backend.port)])],
        )
        with lone_worker(wanted) as worker:
            _connect_many(port, _WARM_UP, seed=1)
            _wait_for_none(worker)
            opened, memory = descriptors(worker.pid), resident(worker.pid)
            _connect_many(port, _CONNECTIONS, seed=2)
            _wait_for_none(worker)
            # Pipes for splice may be kept for the next bulk transfer, but only some.
            assert descriptors(worker.pid) <= opened + 16
            assert resident(worker.pid) <= memory + _GROWTH
            _orderly_once(port)


def _connect_many(port: int, number: int, *, seed: int) -> None:
    order = random.Random(seed)  # noqa: S311  # the same in every run
    behaviours: list[Behaviour] = [
        _orderly,
        _orderly,
        _orderly,
        _silent,
        _unread,
        _half,
        _cut_large,
        _no_request,
    ]
    for behave in order.choices(behaviours, k=number):
        with (
            suppress(ConnectionResetError),
            socket.create_connection(("127.0.0.1", port), timeout=30) as client,
        ):
            behave(client)


def _orderly(client: socket.socket) -> None:
    _ask(client, "/name")
    while client.recv(4096):
        pass


def _silent(client: socket.socket) -> None:
    _reset_on_close(client)


def _unread(client: socket.socket) -> None:
    _ask(client, "/name")
    _reset_on_close(client)


def _half(client: socket.socket) -> None:
    client.sendall(b"GET /na")
    _reset_on_close(client)


def _cut_large(client: socket.socket) -> None:
    _ask(client, "/large")
    client.recv(1 << 16)
    _reset_on_close(client)


def _no_request(client: socket.socket) -> None:
    client.shutdown(socket.SHUT_WR)
    client.recv(1)


def _ask(client: socket.socket, path: str) -> None:
    client.sendall(b"GET %s HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n" % path.encode())


def _reset_on_close(client: socket.socket) -> None:
    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)


def _orderly_once(port: int) -> None:
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        _ask(client, "/name")
        assert client.recv(4096).startswith(b"HTTP/1.1 200")


def _wait_for_none(worker: LoneWorker) -> None:
    wait_until(lambda: worker.ask("status")["sessions"] == 0, what="no session is left", timeout=30.0)
