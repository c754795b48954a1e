"""`kill -9` of each program under load: what may be lost, and what must not happen (DESIGN.md section 2).

`E2E_FULL=1` runs it under 1,000 sessions and 300 new connections a second.
"""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support.load.load import Load
from support.peers.cluster import Cluster, cluster
from support.processes.processes import alive, kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from appliance.core.rollout.timing import Timing

pytestmark = [pytest.mark.programs, pytest.mark.data_path]

_FULL = os.environ.get("E2E_FULL") == "1"
_SESSIONS = 1000 if _FULL else 200
_RATE = 300.0 if _FULL else 150.0
_WORKERS = 2
_DRAIN = 4.0
_LONG = 600.0 if _FULL else 0.0


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    """Run three masters and an appliance of two workers, the same for every death."""
    with cluster(workers=_WORKERS, drain=_DRAIN) as running:
        yield running


@pytest.fixture
def load(made: Cluster) -> Iterator[Load]:
    """Put the appliance under load, every session open."""
    with Load(port=made.port, sessions=_SESSIONS, rate=_RATE) as running:
        running.wait_for_sessions()
        yield running


@pytest.mark.needs("ss")
@pytest.mark.promise("survives", "a worker")
def test_a_killed_worker_loses_only_its_own_connections(made: Cluster, load: Load):
    """Its sessions are lost, the other worker's live; nothing is refused; it is replaced in its place."""
    victim, other = made.appliance.accepting()
    os.kill(victim.pid, signal.SIGSTOP)
    held = _held(victim.pid, made.port)
    kill(victim.pid)
    replaced = wait_until(
        lambda: [each for each in made.appliance.accepting() if each.pid not in (victim.pid, other.pid)],
        what="the worker is replaced",
    )
    assert (replaced[0].generation, replaced[0].index) == (victim.generation, victim.index)
    _more_connections(load, 300)
    report = load.report()
    assert set(report.failures) <= {"reset", "end"}
    assert 0 < _SESSIONS - len(report.living) <= held
    assert _SESSIONS - len(report.living) + sum(report.failures.values()) <= held
    assert alive(other.pid)


def _held(pid: int, port: int) -> int:
    """Return how many connections of clients a process holds, short ones too, by the kernel."""
    listed = subprocess.run(
        ["ss", "-Htnp", "sport", "=", f":{port}"], check=True, capture_output=True, text=True
    ).stdout
    return listed.count(f"pid={pid},")


@pytest.mark.promise("survives", "a proxy master")
def test_a_killed_master_loses_nothing(made: Cluster, load: Load):
    """Its workers go on as the generation of its successor: no session ends, long after a drain too."""
    workers = {worker.pid for worker in made.appliance.accepting()}
    killed = made.appliance.kill("proxy-api")
    _same_workers_serve(made.appliance, killed, workers)
    _beyond_the_drain(load, longer=_LONG)
    _assert_nothing_lost(load)
    assert {worker.pid for worker in made.appliance.workers()} == workers


@pytest.mark.slow("generations of real workers under load")
def test_a_master_killed_again_and_again_loses_nothing(made: Cluster, load: Load):
    """A second death, also one while the first is mended, changes nothing."""
    workers = {worker.pid for worker in made.appliance.accepting()}
    for _ in range(3):
        killed = made.appliance.kill("proxy-api")
        made.appliance.wait_for_restart("proxy-api", killed)
    _same_workers_serve(made.appliance, killed, workers)
    _beyond_the_drain(load)
    _assert_nothing_lost(load)


@pytest.mark.promise("survives", "`supervisorctl restart proxy-api`")
def test_supervisorctl_restart_of_a_master_loses_nothing(made: Cluster, load: Load):
    """A restart on purpose takes the same way as a death."""
    workers = {worker.pid for worker in made.appliance.accepting()}
    killed = made.appliance.program_pid("proxy-api")
    assert killed
    made.appliance.supervisorctl("restart", "proxy-api")
    _same_workers_serve(made.appliance, killed, workers)
    _beyond_the_drain(load)
    _assert_nothing_lost(load)


@pytest.mark.promise("survives", "health")
def test_a_killed_prober_changes_no_server_and_stops_no_traffic(made: Cluster, load: Load):
    """Workers go by its last verdicts, and its successor takes them over."""
    ups = len(made.appliance.events("server-up"))
    killed = made.appliance.kill("health")
    made.appliance.wait_for_restart("health", killed)
    _more_connections(load, 300)
    _assert_nothing_lost(load)
    assert made.appliance.events("server-down") == []
    assert len(made.appliance.events("server-up")) == ups
    made.master("master-1").ready(500)
    made.appliance.wait_for_event("server-down", lambda event: event["server"] == "master-1")
    made.master("master-1").ready(200)
    wait_until(lambda: len(made.appliance.events("server-up")) > ups, what="it is up again")


@pytest.mark.promise("survives", "reload")
def test_a_killed_reload_handler_affects_no_traffic(made: Cluster, load: Load):
    """Its successor answers the next reload; nothing else noticed."""
    killed = made.appliance.kill("reload")
    made.appliance.wait_for_restart("reload", killed)
    with _next_generation(made.appliance):
        assert made.appliance.reload(made.config(revision=1))["ok"] is True
    _more_connections(load, 200)
    _assert_nothing_lost(load)


@pytest.mark.promise("survives", "supervisord")
def test_after_a_killed_supervisord_the_next_start_takes_over(made: Cluster, load: Load):
    """In a container everything goes with it; on a host the next start takes over without loss."""
    left = set(made.appliance.processes()) - {made.appliance.pid}
    workers = {worker.pid for worker in made.appliance.workers()}
    serving = {worker.pid for worker in made.appliance.accepting()}
    kill(made.appliance.pid)
    _more_connections(load, 100)
    made.appliance.start()
    wait_until(
        lambda: {worker.pid for worker in made.appliance.accepting()} == serving,
        what="the same workers serve",
    )
    _beyond_the_drain(load)
    _assert_nothing_lost(load)
    for program in ("reload", "health", "proxy-api"):
        assert made.appliance.program_pid(program) not in left
    assert left & set(made.appliance.processes()) <= workers


@pytest.mark.slow("another start of the whole appliance")
def test_a_supervisord_that_dies_as_it_ends_leftovers(made: Cluster, load: Load):
    """It has sent TERM to the programs of the one before, and is killed, too: they leave their workers."""
    appliance = made.appliance
    left = {name: appliance.program_pid(name) for name in ("reload", "health", "proxy-api")}
    serving = {worker.pid for worker in appliance.accepting()}
    kill(appliance.pid)
    for pid in filter(None, left.values()):
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda pid=pid: not alive(pid), what="it has ended")
    _more_connections(load, 100)
    appliance.start()
    wait_until(
        lambda: {worker.pid for worker in appliance.accepting()} == serving, what="the same workers serve"
    )
    _beyond_the_drain(load)
    _assert_nothing_lost(load)


@contextmanager
def _next_generation(appliance: Appliance) -> Iterator[None]:
    """Wait at the end until a later generation accepts than at the beginning, with all its workers."""
    last = appliance.generation()
    yield
    wait_until(
        lambda: sum(worker.generation > last for worker in appliance.accepting()) == _WORKERS,
        what=f"a generation after {last} accepts",
        timeout=30.0,
    )


def _same_workers_serve(appliance: Appliance, killed: int, workers: set[int]) -> None:
    successor = appliance.wait_for_restart("proxy-api", killed)
    wait_until(
        lambda: (
            {worker.pid for worker in appliance.accepting()} == workers
            and appliance.ask("proxy-api", "status")["snapshot"] == appliance.accepted()
        ),
        what=f"master {successor} goes on with the workers that are there",
        timeout=30.0,
    )


def _beyond_the_drain(load: Load, *, longer: float = 0.0) -> None:
    """Wait until a generation that drains since now would have been cut, and so many seconds longer."""
    over = time.monotonic() + _DRAIN + Timing().kill_grace + 1.0 + longer
    wait_until(lambda: time.monotonic() > over, what="the drain time is over", timeout=60.0 + longer)
    _more_connections(load, 100)


def _more_connections(load: Load, number: int) -> None:
    wanted = load.report().completed + number
    wait_until(lambda: load.report().completed >= wanted, what=f"{number} more connections", timeout=30.0)


def _assert_nothing_lost(load: Load) -> None:
    report = load.report()
    assert report.failures == {}
    assert report.ended == []
    assert len(report.living) == _SESSIONS
