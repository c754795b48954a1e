"""Programs of this appliance: proxies accept, others answer."""

import contextlib
import os
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import gevent
import pytest
from support.network.ports import free_port
from support.processes.greenlets import until
from support.values import boards, snapshots
from support.worker.lone_worker import LoneWorker, lone_worker

from appliance.model.paths import Paths
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.control.control_server import ControlServer
from appliance.net.tracking import program
from appliance.net.tracking.program import program_track
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown
from appliance.wire.boards import worker_board
from appliance.wire.lines.control import bad, good

pytestmark = pytest.mark.sockets

ENOUGH = 5.0
AGES = 600.0


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    """Directories of nobody else."""
    return Paths(runtime=tmp_path, state=tmp_path)


@contextlib.contextmanager
def proxy(program: str = "proxy-api") -> Iterator[tuple[LoneWorker, TrackCheck]]:
    """Run a worker of `proxy-api`, and track a program of its appliance."""
    frontend = snapshots.frontend(binds=[snapshots.bind(free_port())])
    with lone_worker(snapshots.snapshot(groups=(snapshots.group(frontends=[frontend]),))) as worker:
        subject = program_track(program, worker.paths, timeout=ENOUGH)
        yield worker, subject
        subject.close()


@pytest.mark.programs
def test_a_proxy_is_up_while_a_worker_accepts():
    """A worker that drains takes no new connections any more, and one that has ended takes none at all."""
    with proxy() as (worker, track):
        until(lambda: track.look().up, what="it accepts")
        assert track.look().detail == "workers that accept: 1"
        with socket.create_connection(("127.0.0.1", worker.ask("status")["listeners"][0]["port"])):
            until(lambda: worker.ask("status")["sessions"] == 1, what="it has a session")
            worker.ask("drain", deadline=9e9)
            until(lambda: not track.look().up, what="it drains")
            assert track.look().detail == "none of 1 workers accepts"
        worker.ask("stop")
        until(lambda: track.look() == LookResult(up=False, detail="no worker runs"), what="it has ended")


@pytest.mark.programs
def test_the_death_of_a_worker_ends_the_wait():
    """The board that a killed worker leaves says that it accepts, and is not believed."""
    with proxy() as (worker, track):
        until(lambda: track.look().up, what="it accepts")
        waiting = gevent.spawn(track.wait, AGES)
        gevent.sleep(0)
        worker.process.kill()
        until(waiting.ready, what="its death is seen")
        assert worker.board().phase is WorkerPhase.ACCEPTING
        assert track.look() == LookResult(up=False, detail="no worker runs")


@pytest.mark.programs
def test_workers_of_another_program_do_not_count():
    """A program whose name is longer has boards whose names begin alike."""
    with proxy("proxy-ap") as (_, track):
        assert track.look() == LookResult(up=False, detail="no worker runs")
    with proxy("proxy-ingress") as (_, track):
        assert track.look() == LookResult(up=False, detail="no worker runs")


def test_a_number_that_is_somebody_else_s_by_now_is_no_worker(paths: Paths):
    """A board's process may be long gone, and its number used again."""
    board = BoardWriter(paths.worker_board("proxy-api", 1, 0))
    board.publish(worker_board.encode(boards.worker(pid=os.getpid())))
    paths.worker_board("proxy-api", 1, 1).write_bytes(b"nonsense")
    assert program_track("proxy-api", paths, timeout=ENOUGH).look() == LookResult(
        up=False, detail="no worker runs"
    )


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have no look wait for a program that starts."""
    monkeypatch.setattr(program, "STARTING", 0.0)


def test_a_first_look_waits_for_a_program_that_starts(paths: Paths):
    """It starts beside the tracker: what is asked too early would alone decide."""
    looking = gevent.spawn(program_track("forward", paths, timeout=ENOUGH).look)
    gevent.sleep(0.3)
    assert not looking.ready()
    said = {"trouble": "no rules yet"}
    server = ControlServer(
        paths.control("forward"), {"status": lambda _: good(**said)}, on_error=lambda *_: None
    )
    gevent.sleep(0.3)
    assert not looking.ready()
    said["trouble"] = ""
    assert looking.get() == LookResult(up=True, detail="it answers")
    server.close()


def test_a_program_that_does_not_start_is_down(paths: Paths, monkeypatch: pytest.MonkeyPatch):
    """The first look ends, and later ones wait for nothing."""
    monkeypatch.setattr(program, "STARTING", 0.3)
    track = program_track("forward", paths, timeout=ENOUGH)
    begun = time.monotonic()
    assert not track.look().up
    assert time.monotonic() - begun >= 0.3
    later = gevent.spawn(track.look)
    gevent.sleep(0)
    assert later.ready()


@pytest.mark.usefixtures("started")
def test_another_program_is_up_while_it_answers(paths: Paths):
    """Its control socket is asked for its status."""
    track = program_track("health", paths, timeout=ENOUGH)
    assert not track.look().up
    server = ControlServer(paths.control("health"), {"status": lambda _: good()}, on_error=lambda *_: None)
    assert track.look() == LookResult(up=True, detail="it answers")
    server.close()
    assert str(paths.control("health")) in track.look().detail


@pytest.mark.usefixtures("started")
def test_a_program_with_trouble_is_down(paths: Paths):
    """`forward` answers though the kernel does not forward: others do that better."""
    said = {"trouble": "File exists"}
    server = ControlServer(
        paths.control("forward"), {"status": lambda _: good(**said)}, on_error=lambda *_: None
    )
    track = program_track("forward", paths, timeout=ENOUGH)
    assert track.look() == LookResult(up=False, detail="File exists")
    said["trouble"] = ""
    assert track.look().up
    server.close()


@pytest.mark.usefixtures("started")
def test_a_program_that_hangs_is_down_in_time(paths: Paths):
    """It accepts, and says nothing."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(paths.control("health")))
        listener.listen()
        seen = program_track("health", paths, timeout=0.1).look()
    assert not seen.up
    assert "0.1 s" in seen.detail


@pytest.mark.usefixtures("started")
def test_our_own_absence_is_not_the_program_s(paths: Paths):
    """The time was up while this process did not run: nothing is known."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(paths.control("health")))
        listener.listen()
        looking = gevent.spawn(program_track("health", paths, timeout=0.05).look)
        gevent.sleep(0)
        time.sleep(0.3)  # no greenlet runs meanwhile
        with pytest.raises(TrackUnknown):
            looking.get()


@pytest.mark.usefixtures("started")
def test_a_program_that_refuses_is_down(paths: Paths):
    """Its own words are told."""
    server = ControlServer(
        paths.control("health"), {"status": lambda _: bad("no idea")}, on_error=lambda *_: None
    )
    assert program_track("health", paths, timeout=ENOUGH).look() == LookResult(up=False, detail="no idea")
    server.close()


@pytest.mark.usefixtures("started")
def test_announce_is_up_while_every_shared_ip_is_served(paths: Paths):
    """Virtual IPs that routers send packets to follow it: the one that is not served is named."""
    served = {"name": "api", "state": "serving", "reason": "all tracks are up"}
    drained = {"name": "ingress", "state": "drained", "reason": "router is down: refused"}
    said = {"trouble": "", "engine": "table", "addresses": [served, drained]}
    server = ControlServer(
        paths.control("announce"), {"status": lambda _: good(**said)}, on_error=lambda *_: None
    )
    track = program_track("announce", paths, timeout=ENOUGH)
    assert track.look() == LookResult(up=False, detail="ingress is drained: router is down: refused")
    said["addresses"] = [served]
    assert track.look() == LookResult(up=True, detail="every shared IP is served")
    server.close()
