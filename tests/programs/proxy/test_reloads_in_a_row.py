"""Reloads that come faster than sessions move: generations do not pile up."""

import json
import os
import signal
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.waiting import wait_until
from support.proxy.lone_proxy import LoneProxy
from support.values.snapshots import bind, frontend, group, pool, server, snapshot

from appliance.model.snapshot.snapshot import Reload, Snapshot

pytestmark = [pytest.mark.programs, pytest.mark.slow("generations of real workers under load")]

_SESSIONS = 5
_MOVE = Reload(sockets=(), max_draining=10, sessions="move")


def _snapshot(number: int, port: int, backend: Backend) -> Snapshot:
    """Return a snapshot; another number of workers needs a new generation."""
    return snapshot(
        number=number,
        groups=[group(workers=1 + number % 2, frontends=[frontend(binds=[bind(port)])])],
        pools=[pool(servers=[server(port=backend.port)])],
        reload=_MOVE,
        drain=600.0,
    )


@contextmanager
def _clients(port: int) -> Iterator[list[socket.socket]]:
    """Open sessions, of which each has had an answer."""
    with ExitStack() as stack:
        clients = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60))
            for _ in range(_SESSIONS)
        ]
        assert _all_answer(clients)
        yield clients


def _all_answer(clients: list[socket.socket]) -> bool:
    for each in clients:
        each.sendall(b"line 1\n")
    return all(each.recv(100) == b"master-0 1\n" for each in clients)


@contextmanager
def _stopped(proxy: LoneProxy, generation: int) -> Iterator[None]:
    """Have the workers of a generation stand still: they get their orders, and obey when this ends."""
    pids = [int(str(each["pid"])) for each in proxy.workers() if each["generation"] == generation]
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            os.kill(pid, signal.SIGCONT)


def test_a_third_generation_waits_for_the_end_of_the_first():
    """Its workers are started when the first one has given up its sessions, and no session ends."""
    port = free_port()
    with (
        Backend("master-0") as backend,
        LoneProxy(_snapshot(1, port, backend)) as proxy,
        ThreadPoolExecutor() as threads,
    ):
        proxy.run(impatient=True)
        with _clients(port) as clients:
            with _stopped(proxy, 1):
                proxy.reload(_snapshot(2, port, backend))
                third = threads.submit(proxy.reload, _snapshot(3, port, backend))
                for _ in range(20):  # each is a turn of the master's loop
                    assert 3 not in proxy.generations()
            assert third.result(timeout=60.0)["generation"] == 3
            wait_until(lambda: list(proxy.generations()) == [3], what="one generation is left", timeout=60.0)
            assert _all_answer(clients)
        moments = [line for line in proxy.log().splitlines() if "generation-" in line]
        assert _first(moments, "generation-gone", 1) < _first(moments, "generation-started", 3)


def _first(lines: list[str], event: str, generation: int) -> int:
    return next(
        place
        for place, each in enumerate(map(json.loads, lines))
        if (each["event"], each["generation"]) == (event, generation)
    )


def test_one_that_does_not_end_is_not_waited_for_for_ever():
    """The master waits for two seconds, and then goes on beside it; the one between may be gone by then."""
    port = free_port()
    with Backend("master-0") as backend, LoneProxy(_snapshot(1, port, backend)) as proxy:
        proxy.run()
        with _clients(port) as clients:
            with _stopped(proxy, 1):
                proxy.reload(_snapshot(2, port, backend))
                proxy.reload(_snapshot(3, port, backend))
                assert {1, 3} <= set(proxy.generations())
            wait_until(lambda: list(proxy.generations()) == [3], what="one generation is left", timeout=60.0)
            assert _all_answer(clients)
