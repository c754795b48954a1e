"""Which workers live, by what is left of them in a runtime directory."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.values import boards

from appliance.model.paths import Paths
from appliance.net.boards import heartbeats
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.boards.heartbeats import Heartbeat
from appliance.net.observing.observation import counted_by_workers
from appliance.wire.boards import worker_board

pytestmark = pytest.mark.sockets


@pytest.fixture(name="paths")
def fixture_paths(tmp_path: Path) -> Iterator[Paths]:
    """A runtime directory with the board of a worker that has the number of this process."""
    paths = Paths(config=tmp_path / "none.yaml", runtime=tmp_path, state=tmp_path)
    board = BoardWriter(paths.worker_board("proxy-api", 1, 0))
    board.publish(worker_board.encode(boards.worker(pid=os.getpid())))
    yield paths
    board.close()


def test_a_worker_with_a_heartbeat_is_not_connected_to(paths: Paths):
    """Its number and its start are those of a process: it lives, also where nothing listens at its socket."""
    beat = Heartbeat(paths.worker_heartbeat("proxy-api", 1, 0))
    assert [each.pid for each in counted_by_workers(paths)[0]] == [os.getpid()]
    beat.close()


def test_a_number_that_is_used_again_is_no_worker(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    """Its heartbeat has the start of another process than the one that has the number now."""
    monkeypatch.setattr(heartbeats, "started", lambda _: 1)
    Heartbeat(paths.worker_heartbeat("proxy-api", 1, 0)).close()
    monkeypatch.undo()
    living, ended = counted_by_workers(paths)
    assert not living
    assert ended["proxy-api"].workers == 1


def test_without_a_heartbeat_its_socket_decides(paths: Paths):
    """The number is that of a process, but nobody listens any more where the worker did."""
    assert [each.pid for each in counted_by_workers(paths)[0]] == [os.getpid()], "there is no socket to ask"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(paths.worker_control("proxy-api", 1, 0)))
    assert not counted_by_workers(paths)[0]
