"""Workers that a master holds: what is left of those that die while they are adopted."""

import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import gevent
import pytest
import structlog
from support.values import boards

from appliance.core.rollout.events import Event, Exited
from appliance.core.rollout.states import WorkerId
from appliance.model.paths import Paths
from appliance.net.boards import ended_workers
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.control.control_client import ControlClient
from appliance.net.control.control_server import ControlServer
from appliance.proxy.orphaned_workers import LivingWorker
from appliance.proxy.worker_processes import WorkerProcesses
from appliance.wire.boards import worker_board
from appliance.wire.lines.worker_status import WorkerStatus

pytestmark = pytest.mark.programs

PROGRAM = "proxy-api"


@pytest.fixture
def paths() -> Iterator[Paths]:
    """Return a runtime directory; names of sockets must be short."""
    with TemporaryDirectory(prefix="lb-") as directory:
        yield Paths(runtime=Path(directory))


def test_what_a_worker_counted_that_dies_while_it_is_adopted_is_kept(paths: Paths):
    """It has answered its new master, and is dead before that holds it: its successor has another board."""
    child = subprocess.Popen(["true"])
    child.wait()
    counted = (boards.frontend_counters("kube-api", total=45),)
    board = BoardWriter(paths.worker_board(PROGRAM, 10, 1))
    written = boards.worker(program=PROGRAM, generation=10, index=1, pid=child.pid, frontends=counted)
    board.publish(worker_board.encode(written), changed=True)
    board.close()
    reported: list[Event] = []
    workers = WorkerProcesses(
        paths,
        PROGRAM,
        module=("unused",),
        report=reported.append,
        fault=lambda greenlet: pytest.fail(str(greenlet.exception)),
        log=structlog.get_logger(),
    )
    place = WorkerId(10, 1)
    status = WorkerStatus(
        pid=child.pid, phase="accepting", workers=2, snapshot=7, drain_deadline=0.0, listeners=()
    )
    server = ControlServer(paths.worker_control(PROGRAM, 10, 1), {}, on_error=lambda *_: None)
    with closing(server):
        client = ControlClient(paths.worker_control(PROGRAM, 10, 1))
        workers.adopt(LivingWorker(worker=place, client=client, status=status))
        with gevent.Timeout(20):
            while not reported:
                gevent.sleep(0.01)
    assert reported == [Exited(place, "gone")]
    sums = ended_workers.load(paths, PROGRAM)
    assert [(each.name, each.total) for each in sums.frontends] == [("kube-api", 45)]
    assert not paths.worker_board(PROGRAM, 10, 1).exists()
