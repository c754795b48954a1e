"""The start of a worker whose master goes away meanwhile."""

import contextlib
import os
import signal
import socket
import tempfile
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.values.snapshots import bind, frontend, group, snapshot
from support.worker.lone_worker import lone_worker

from appliance.model.accept_claims import AcceptClaim
from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.proxy import child_processes
from appliance.proxy.master import WORKER
from appliance.wire.lines.worker_arguments import InheritedListener, WorkerArguments, encode
from appliance.worker.relay.all_sessions import descriptor_limit
from appliance.worker.relay.raw_io import COMPILED

pytestmark = pytest.mark.programs


@pytest.mark.promise("data path", "a worker says whether it is compiled")
def test_a_worker_says_whether_it_is_compiled():
    """Its board says what moves its connections, which is what this process would run too."""
    wanted = snapshot(groups=[group(frontends=[frontend(binds=[bind(free_port())])])])
    with lone_worker(wanted) as worker:
        assert worker.board().compiled is COMPILED


def test_a_worker_of_thousands_of_addresses_starts():
    """Their list does not fit one word of a command line; the worker is ready all the same."""
    count, port = 3000, free_port()
    descriptor_limit()
    hosts = [f"127.1.{number // 250}.{1 + number % 250}" for number in range(count)]
    wanted = snapshot(
        number=1,
        groups=[group(workers=1, frontends=[frontend(binds=[bind(port, host=each) for each in hosts])])],
    )
    with tempfile.TemporaryDirectory(prefix="lb-") as directory, contextlib.ExitStack() as stack:
        paths = Paths(runtime=Path(directory), state=Path(directory))
        paths.snapshot(1).parent.mkdir()
        paths.snapshot(1).write_bytes(model.encode(wanted))
        sockets = [stack.enter_context(socket.create_server((each, port))) for each in hosts]
        name = wanted.groups[0].frontends[0].name
        listeners = tuple(
            InheritedListener(frontend=name, host=host, port=port, fd=each.fileno(), claim=AcceptClaim.SOLE)
            for host, each in zip(hosts, sockets, strict=True)
        )

        def orders(ready: int) -> tuple[str, ...]:
            return encode(
                WorkerArguments(
                    program="proxy-api",
                    group=wanted.groups[0].name,
                    generation=1,
                    index=0,
                    workers=1,
                    snapshot=1,
                    listeners=listeners,
                    ready_fd=ready,
                )
            )

        process, ready = child_processes.spawn(
            WORKER,
            orders,
            listeners=[each.fileno() for each in sockets],
            environment={**os.environ, **paths.environment()},
        )
        try:
            assert child_processes.wait_ready(ready), process.pass_errors_on()
        finally:
            process.kill(signal.SIGKILL)
            process.wait()


def test_a_worker_whose_master_died_ends(capfd: pytest.CaptureFixture[str]):
    """Nobody reads its ready byte: it ends by itself, and leaves neither socket nor board."""
    wanted = snapshot(number=1, groups=[group(workers=1, frontends=[frontend(binds=[bind(free_port())])])])
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        paths = Paths(runtime=Path(directory), state=Path(directory))
        paths.snapshot(1).parent.mkdir()
        paths.snapshot(1).write_bytes(model.encode(wanted))

        def orders(ready: int) -> tuple[str, ...]:
            return encode(
                WorkerArguments(
                    program="proxy-api",
                    group=wanted.groups[0].name,
                    generation=1,
                    index=0,
                    workers=1,
                    snapshot=1,
                    listeners=(),
                    ready_fd=ready,
                )
            )

        environment = {**os.environ, **paths.environment()}
        process, ready = child_processes.spawn(WORKER, orders, listeners=(), environment=environment)
        os.close(ready)
        try:
            assert process.wait() == "exited 0"
        finally:
            process.kill(signal.SIGKILL)
        wait_until(lambda: "master-gone" in capfd.readouterr().out, what="it says why")
        assert sorted(path.name for path in paths.runtime.iterdir()) == ["snapshots"]
