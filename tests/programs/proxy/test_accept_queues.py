"""Accept queues of real workers: whoever waits in one is served, whatever happens.

Workers that are halted (SIGSTOP) accept nothing, so clients that connect wait in the queues.
"""

import os
import signal
import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.processes import alive, kill
from support.processes.waiting import wait_until
from support.proxy.lone_proxy import LoneProxy
from support.values.snapshots import bind, frontend, group, pool, server, snapshot
from support.worker.lone_worker import workers

from appliance.model.snapshot.snapshot import Snapshot

pytestmark = pytest.mark.programs

_WAITING = 60
"""Clients: so many that none of four queues stays empty, which has one chance in ten million."""


@pytest.fixture(scope="module")
def backend() -> Iterator[Backend]:
    """Return a server."""
    with Backend("server") as backend:
        yield backend


def snapshot_of(port: int, backend: Backend, *, number: int = 1, count: int = 4) -> Snapshot:
    """Return a snapshot with so many workers; each `number` is a new generation."""
    return snapshot(
        number=number,
        groups=[group(workers=count, frontends=[frontend(name=f"frontend-{number}", binds=[bind(port)])])],
        pools=[pool(servers=[server(port=backend.port)])],
        drain=5.0,
    )


def connected(stack: ExitStack, port: int) -> list[socket.socket]:
    """Return clients that are connected, have asked, and wait for their answer."""
    clients = [
        stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=60.0))
        for _ in range(_WAITING)
    ]
    for client in clients:
        client.sendall(b"who\n")
    return clients


def answered(clients: list[socket.socket]) -> int:
    """Return how many clients get their answer."""
    found = 0
    for client in clients:
        with suppress(OSError):
            found += client.recv(100) == b"server\n"
    return found


def halt(pid: int) -> None:
    """Stop a process, and return when it stands still."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: " T " in _stat(pid), what="it is halted")


def _stat(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text()


def pids(proxy: LoneProxy) -> set[int]:
    """Return the process ids of the workers that accept."""
    return {int(str(each["pid"])) for each in proxy.workers() if each["phase"] == "accepting"}


@pytest.mark.promise("kernel", "accept queues (SO_REUSEPORT)")
@pytest.mark.parametrize("how", ["killed", "hanging"])
def test_a_worker_that_serves_nobody(backend: Backend, how: str) -> None:
    """Whoever waits in its queue is served by the others."""
    port = free_port()
    with workers(snapshot_of(port, backend)) as made, ExitStack() as stack:
        for worker in made:
            halt(worker.pid)
        clients = connected(stack, port)
        if how == "killed":
            kill(made[1].pid)
        for worker in (made[0], made[2], made[3]):
            os.kill(worker.pid, signal.SIGCONT)
        assert answered(clients) == _WAITING


@pytest.mark.slow("generations of real workers under load")
def test_a_worker_hangs(backend: Backend) -> None:
    """New clients do not notice: those of its queue are served by the others."""
    port = free_port()
    with workers(snapshot_of(port, backend)) as made, ExitStack() as stack:
        halt(made[2].pid)
        assert answered(connected(stack, port)) == _WAITING


@pytest.mark.slow("generations of real workers under load")
@pytest.mark.parametrize(("before", "after"), [(4, 4), (4, 2), (2, 4), (4, 1), (1, 4)])
def test_a_reload_with_clients_that_wait(backend: Backend, before: int, after: int) -> None:
    """The next generation serves all of them, however many workers it has."""
    port = free_port()
    with LoneProxy(snapshot_of(port, backend, count=before)) as proxy, ExitStack() as stack:
        proxy.run()
        wait_until(lambda: len(pids(proxy)) == before, what="all workers accept")
        former = pids(proxy)
        for pid in former:
            halt(pid)
        clients = connected(stack, port)
        proxy.reload(snapshot_of(port, backend, number=2, count=after))
        for pid in former:
            kill(pid)
        assert answered(clients) == _WAITING
        wait_until(lambda: not any(map(alive, former)), what="the former workers are gone")
        assert answered(connected(stack, port)) == _WAITING


@pytest.mark.slow("generations of real workers under load")
def test_a_reload_that_is_given_up(backend: Backend) -> None:
    """What was bound for more workers takes nobody, while it is prepared and after it was given up."""
    port = free_port()
    with LoneProxy(snapshot_of(port, backend, count=2)) as proxy, ExitStack() as stack:
        proxy.run()
        proxy.propose(snapshot_of(port, backend, number=2))
        assert proxy.ask("prepare", snapshot=2)["ok"]
        assert answered(connected(stack, port)) == _WAITING
        assert proxy.ask("abort", snapshot=2)["ok"]
        assert answered(connected(stack, port)) == _WAITING


@pytest.mark.slow("generations of real workers under load")
def test_another_master_has_all_queues(backend: Backend) -> None:
    """It gets them of the workers of the one that was killed: its next generation serves whoever waits."""
    port = free_port()
    with LoneProxy(snapshot_of(port, backend)) as proxy, ExitStack() as stack:
        proxy.run()
        wait_until(lambda: len(pids(proxy)) == 4, what="all workers accept")
        former = pids(proxy)
        proxy.kill()
        proxy.run()
        assert pids(proxy) == former
        for pid in former:
            halt(pid)
        clients = connected(stack, port)
        proxy.reload(snapshot_of(port, backend, number=2))
        for pid in former:
            kill(pid)
        assert answered(clients) == _WAITING
