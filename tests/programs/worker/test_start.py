"""The start of a worker whose master goes away meanwhile."""

import os
import signal
import tempfile
from pathlib import Path

import pytest
from support.network.ports import free_port
from support.processes.waiting import wait_until
from support.values.snapshots import bind, frontend, group, snapshot
from support.worker.lone_worker import lone_worker

from appliance.model.paths import Paths
from appliance.model.snapshot import snapshot as model
from appliance.net.data.transfer import COMPILED
from appliance.net.workers import child_processes
from appliance.programs.proxy_master.master import WORKER
from appliance.wire.lines.worker_arguments import WorkerArguments, encode

pytestmark = pytest.mark.programs


@pytest.mark.promise("data path", "a worker says whether it is compiled")
def test_a_worker_says_whether_it_is_compiled():
    """Its board says what moves its connections, which is what this process would run too."""
    wanted = snapshot(groups=[group(frontends=[frontend(binds=[bind(free_port())])])])
    with lone_worker(wanted) as worker:
        assert worker.board().compiled is COMPILED


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
