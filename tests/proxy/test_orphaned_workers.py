"""Workers without a master: who is adopted, who is left alone, and what the dead left behind."""

import os
import socket
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import gevent
import pytest
from gevent.socket import wait_read

from appliance.core.rollout.events import Orphan
from appliance.core.rollout.states import WorkerId, WorkerState
from appliance.model.paths import Paths
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.control.control_server import Call, ControlServer, WithDescriptors
from appliance.proxy.orphaned_workers import adopt_all, listeners_of, orphan, remove_files
from appliance.wire.lines.control import Answer, bad, good
from appliance.wire.lines.worker_status import WorkerStatus

pytestmark = pytest.mark.sockets

PROGRAM = "proxy-api"


@pytest.fixture
def paths() -> Iterator[Paths]:
    """Return a runtime directory; names of sockets must be short."""
    with TemporaryDirectory(prefix="lb-") as directory:
        yield Paths(runtime=Path(directory))


class FakeWorker:
    """Answers as a worker does; it takes the descriptor that it is given for its output."""

    def __init__(self, paths: Paths, generation: int, index: int, answer: Answer | None = None) -> None:
        self.outputs: list[int] = []
        self.answer = answer or good(
            pid=os.getpid(),
            phase="accepting",
            workers=2,
            snapshot=7,
            drain_deadline=0.0,
            listeners=[{"frontend": "kube-api", "host": "::", "port": 9445}],
        )
        self.listener = socket.create_server(("127.0.0.1", 0))
        handlers = {
            "adopt": self._adopt,
            "listeners": lambda _: WithDescriptors(
                answer=good(listeners=[]), descriptors=[self.listener.fileno()]
            ),
        }
        path = paths.worker_control(PROGRAM, generation, index)
        self._server = ControlServer(path, handlers, on_error=lambda *_: None)

    def close(self) -> None:
        """Go away."""
        self._server.close()
        self.listener.close()
        for output in self.outputs:
            os.close(output)

    def _adopt(self, call: Call) -> Answer:
        self.outputs += map(os.dup, call.descriptors)
        return self.answer


def test_living_are_adopted(paths: Paths) -> None:
    """Workers that answer are adopted, in order, with our output and the listeners that they hold."""
    with closing(FakeWorker(paths, 10, 0)) as second, closing(FakeWorker(paths, 9, 1)) as first:
        living, silent = adopt_all(paths, PROGRAM)
        assert silent == []
        assert [each.worker for each in living] == [WorkerId(9, 1), WorkerId(10, 0)]
        assert living[0].status.snapshot == 7
        assert living[0].orphan == Orphan(index=1, snapshot=7, state=WorkerState.ACCEPTING)
        assert [os.path.sameopenfile(worker.outputs[0], 1) for worker in (first, second)] == [True] * 2
        (descriptor,) = listeners_of(living[0])
        with socket.socket(fileno=descriptor) as listener:
            assert listener.getsockname() == first.listener.getsockname()
        for each in living:
            each.client.close()


def test_known_are_not_asked(paths: Paths) -> None:
    """Workers that we lead are neither asked nor tidied up."""
    with closing(FakeWorker(paths, 1, 0)) as worker, closing(_Board(paths, 2)) as board:
        assert adopt_all(paths, PROGRAM, known=[WorkerId(1, 0), WorkerId(2, 0)]) == ([], [])
        assert worker.outputs == []
        assert board.path.exists()


def test_drain_time_left() -> None:
    """A draining worker has what is left of its time, and never less than nothing."""
    past = WorkerStatus(pid=1, phase="draining", workers=1, snapshot=1, drain_deadline=1.0)
    assert orphan(past, 0, now=5.0).drain_within == 0.0


def test_dead_leave_nothing(paths: Paths) -> None:
    """Sockets and boards of dead workers are removed, other programs' and strange files are not."""
    dead = paths.worker_control(PROGRAM, 3, 0)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(dead))
        listener.listen()
    others = [paths.runtime / "worker-proxy-api-x-y.control", paths.worker_board("proxy-ingress", 3, 0)]
    for path in others:
        path.touch()
    with closing(_Board(paths, 3)) as board:
        assert adopt_all(paths, PROGRAM) == ([], [])
        assert not dead.exists()
        assert not board.path.exists()
    assert all(path.exists() for path in others)
    remove_files(paths, PROGRAM, WorkerId(3, 0))


def test_worker_that_dies_when_it_is_asked(paths: Paths) -> None:
    """It took the connection and was killed: as it is gone, it leaves nothing."""
    path = paths.worker_control(PROGRAM, 3, 0)
    with socket.socket(socket.AF_UNIX) as listener, closing(_Board(paths, 3)) as board, gevent.Timeout(30):
        listener.bind(str(path))
        listener.listen()
        search = gevent.spawn(adopt_all, paths, PROGRAM)
        wait_read(listener.fileno())
        listener.close()
        assert search.get() == ([], [])
        assert not board.path.exists()
        assert not path.exists()


@pytest.mark.parametrize("answer", [bad("not today"), good(pid="none")])
def test_useless_answers(paths: Paths, answer: Answer) -> None:
    """A worker that answers something else is left alone, with its files."""
    with closing(FakeWorker(paths, 1, 0, answer)):
        assert adopt_all(paths, PROGRAM) == ([], [])
        assert paths.worker_control(PROGRAM, 1, 0).exists()


def test_silent_worker(paths: Paths) -> None:
    """A worker that does not answer holds the others up for a bounded time only, and keeps its files."""
    path = paths.worker_control(PROGRAM, 1, 0)
    with socket.socket(socket.AF_UNIX) as listener, closing(FakeWorker(paths, 1, 1)):
        listener.bind(str(path))
        listener.listen()
        with gevent.Timeout(30):
            assert [each.worker.index for each in adopt_all(paths, PROGRAM, timeout=0.5)[0]] == [1]
        assert path.exists()


def test_board_of_a_worker_that_starts_meanwhile_stays(paths: Paths) -> None:
    """While others are waited for a worker starts: its board, made before its socket, is not removed."""
    silent = paths.worker_control(PROGRAM, 1, 0)
    with socket.socket(socket.AF_UNIX) as listener, gevent.Timeout(30):
        listener.bind(str(silent))
        listener.listen()
        search = gevent.spawn(adopt_all, paths, PROGRAM, timeout=0.5)
        gevent.sleep(0)  # it has begun, and waits for the silent one
        with closing(_Board(paths, 2)) as board:
            assert search.get() == ([], [])
            assert board.path.exists()


class _Board:
    def __init__(self, paths: Paths, generation: int) -> None:
        self.path = paths.worker_board(PROGRAM, generation, 0)
        self._writer = BoardWriter(self.path)

    def close(self) -> None:
        """Let go of the mapping."""
        self._writer.close()
