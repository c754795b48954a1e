"""One worker without its master, and a health board written by the test: the data path on its own."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from support.processes.processes import end
from support.supervisor.appliance import Values, ask

from appliance.core.balancing import accept_queues
from appliance.model.check_results import CheckResult
from appliance.model.paths import Paths
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot import frontends, pools
from appliance.model.snapshot import snapshot as model
from appliance.net.boards.board_reader import BoardReader
from appliance.net.boards.board_writer import BoardWriter
from appliance.wire.boards import health_board, worker_board
from appliance.wire.boards.health_board import HealthBoard, ServerHealthRecord

_BACKLOG = 4096


class LoneWorker:
    """A running worker of a snapshot's first group, which the test speaks to as its master would."""

    def __init__(
        self,
        paths: Paths,
        process: "subprocess.Popen[bytes]",
        health: BoardWriter,
        *,
        index: int = 0,
        generation: int = 1,
    ) -> None:
        self.paths = paths
        self._index, self._generation = index, generation
        self.pid = process.pid
        self.process = process
        self._health = health

    def ask(self, command: str, **values: object) -> Values:
        """Send one command to the worker's control socket."""
        return ask(self.control, command, **values)

    @property
    def control(self) -> Path:
        """Its control socket."""
        return self.paths.worker_control("proxy-api", self._generation, self._index)

    def publish(self, servers: Iterable[ServerHealthRecord]) -> None:
        """Publish verdicts as `health` does when some have changed."""
        board = HealthBoard(snapshot=1, pid=os.getpid(), written_at=time.time(), servers=tuple(servers))
        self._health.publish(health_board.encode(board), changed=True)

    def board(self) -> worker_board.WorkerBoard:
        """Return what the worker's board says now."""
        with BoardReader(self.paths.worker_board("proxy-api", self._generation, self._index)) as reader:
            return worker_board.decode(reader.read())


def up(
    pool: pools.Pool, server: pools.Server, *, verdict: HealthVerdict = HealthVerdict.UP
) -> ServerHealthRecord:
    """Return the record of a server that is up (or what `verdict` says) with its configured weight."""
    return ServerHealthRecord(
        pool=pool.name,
        server=server.name,
        verdict=verdict,
        admin=AdminState.READY,
        weight=float(server.weight),
        since=time.time(),
        checked_at=time.time(),
        duration=0.0,
        result=CheckResult.L4OK,
        status=0,
        streak=1,
        failed=0,
        host=server.host,
        port=server.port,
        detail="",
        unreachable=False,
    )


@contextlib.contextmanager
def lone_worker(snapshot: model.Snapshot, *, package: Path | None = None) -> Iterator[LoneWorker]:
    """Run one worker of the snapshot's first group, accepting, with every server up.

    `package` is a directory with another copy of the package `appliance` to run.
    """
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as ours:
        worker = stack.enter_context(accepting(snapshot, open_listeners(snapshot, ours), package, index=0))
        ours.close()  # what the worker closes nobody else holds
        yield worker


@contextlib.contextmanager
def workers(snapshot: model.Snapshot, *, package: Path | None = None) -> Iterator[list[LoneWorker]]:
    """Run as many workers of the snapshot's first group as it asks for, on the same listeners."""
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as ours:
        listeners = open_listeners(snapshot, ours, queues=snapshot.groups[0].workers)
        made = [
            stack.enter_context(accepting(snapshot, listeners, package, index=index))
            for index in range(snapshot.groups[0].workers)
        ]
        ours.close()
        yield made


@contextlib.contextmanager
def generations(
    snapshot: model.Snapshot, *, package: Path | None = None
) -> Iterator[tuple[LoneWorker, LoneWorker]]:
    """Run a worker of generation 1 and one of generation 2 on the same listeners, both accepting."""
    with contextlib.ExitStack() as stack, contextlib.ExitStack() as ours:
        listeners = open_listeners(snapshot, ours)
        paths, health = stack.enter_context(_directory(snapshot))
        old, new = (
            stack.enter_context(_running(snapshot, paths, health, listeners, package, generation=number))
            for number in (1, 2)
        )
        ours.close()
        yield old, new


Listeners = list[tuple[frontends.Frontend, frontends.Bind, list[socket.socket]]]
"""Each address with its accept queues."""


@contextlib.contextmanager
def accepting(
    snapshot: model.Snapshot, listeners: Listeners, package: Path | None, *, index: int
) -> Iterator[LoneWorker]:
    """Run one worker of the first group on these listeners."""
    with (
        _directory(snapshot) as (paths, health),
        _running(snapshot, paths, health, listeners, package, index=index) as worker,
    ):
        yield worker


@contextlib.contextmanager
def _directory(snapshot: model.Snapshot) -> Iterator[tuple[Paths, BoardWriter]]:
    with tempfile.TemporaryDirectory(prefix="lb-worker-") as directory:
        paths = Paths(runtime=Path(directory), state=Path(directory))
        paths.snapshot(snapshot.number).parent.mkdir()
        for path in (paths.snapshot(snapshot.number), paths.accepted):
            path.write_bytes(model.encode(snapshot))
        health = BoardWriter(paths.health_board)
        try:
            yield paths, health
        finally:
            health.close()


@contextlib.contextmanager
def _running(
    snapshot: model.Snapshot,
    paths: Paths,
    health: BoardWriter,
    listeners: Listeners,
    package: Path | None,
    *,
    index: int = 0,
    generation: int = 1,
) -> Iterator[LoneWorker]:
    process, ready = _start(snapshot, paths, listeners, package, index, generation)
    try:
        worker = LoneWorker(paths, process, health, index=index, generation=generation)
        worker.publish(up(pool, server) for pool in snapshot.pools for server in pool.servers)
        assert os.read(ready, 1) == b"R", f"the worker did not start:\n{(paths.runtime / 'log').read_text()}"
        worker.ask("accept")
        yield worker
    finally:
        os.close(ready)
        end(process)


def _start(
    snapshot: model.Snapshot,
    paths: Paths,
    listeners: Listeners,
    package: Path | None,
    index: int,
    generation: int,
) -> tuple["subprocess.Popen[bytes]", int]:
    ready, theirs = os.pipe()
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, theirs)
        group = snapshot.groups[0]
        argument = {
            "program": "proxy-api",
            "group": group.name,
            "generation": generation,
            "index": index,
            "workers": group.workers,
            "snapshot": snapshot.number,
            "listeners": list(_claimed(listeners, index=index, workers=group.workers)),
            "ready_fd": theirs,
        }
        log = stack.enter_context((paths.runtime / "log").open("ab"))
        process = subprocess.Popen(
            [sys.executable, "-m", "appliance.programs.worker", json.dumps(argument)],
            pass_fds=[theirs, *(each.fileno() for _, _, sockets in listeners for each in sockets)],
            env={**os.environ, **({"PYTHONPATH": str(package)} if package else {}), **paths.environment()},
            cwd=package,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    return process, ready


def _claimed(listeners: Listeners, *, index: int, workers: int) -> Iterator[Values]:
    """Yield what a worker is told of the listeners that it has a claim to."""
    for frontend, bind, sockets in listeners:
        for queue, listener in enumerate(sockets):
            claim = accept_queues.claim(queue=queue, queues=len(sockets), worker=index, workers=workers)
            if claim is not None:
                yield {
                    "frontend": frontend.name,
                    "host": bind.host,
                    "port": bind.port,
                    "fd": listener.fileno(),
                    "claim": claim,
                }


def open_listeners(
    snapshot: model.Snapshot, stack: contextlib.ExitStack, *, queues: int = 1, reuse_port: bool = False
) -> Listeners:
    """Bind the listeners of the first group, with so many accept queues at each address.

    With `reuse_port` others may have some at the same addresses.
    """
    return [
        (
            frontend,
            bind,
            [
                stack.enter_context(_listener(bind, reuse_port=reuse_port or queues > 1))
                for _ in range(queues)
            ],
        )
        for frontend in snapshot.groups[0].frontends
        for bind in frontend.binds
    ]


def _listener(bind: frontends.Bind, *, reuse_port: bool) -> socket.socket:
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    listener = socket.create_server(
        (bind.host, bind.port),
        family=family,
        backlog=_BACKLOG,
        reuse_port=reuse_port,
        dualstack_ipv6=family == socket.AF_INET6,
    )
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)  # noqa: FBT003  # the standard library's signature
    return listener
