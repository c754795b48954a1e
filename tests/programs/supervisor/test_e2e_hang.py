"""A program that hangs, under load: ended, named and started again, with what `kill -9` of it costs.

Each program hangs in two ways: SIGSTOP, and a loop without end where its main loop is (a signal handler of
Python's runs between two instructions of whatever the main thread does).
"""

import os
import signal
import socket
from collections.abc import Callable, Iterator

import pytest
from support.load.load import Load
from support.peers.cluster import Cluster, cluster
from support.processes.processes import alive
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance, Worker

pytestmark = pytest.mark.programs

_WORKERS = 2
_PERIOD = 3.0
_SPIN = signal.SIGRTMIN + 5
_CUSTOMIZED = f"""\
import signal
def spin(*_):
    while True:
        pass
signal.signal({int(_SPIN)}, spin)
"""
_PATIENCE = 90.0


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Run three masters and an appliance whose programs can be told to spin."""
    place = tmp_path_factory.mktemp("spin")
    (place / "sitecustomize.py").write_text(_CUSTOMIZED)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(place), prepend=os.pathsep)
        with cluster(workers=_WORKERS, drain=8.0, watchdog=f"{_PERIOD:g}s") as running:
            yield running


@pytest.fixture
def load(made: Cluster) -> Iterator[Load]:
    """Put the appliance under load, every session open."""
    with Load(port=made.port, sessions=100, rate=100.0) as running:
        running.wait_for_sessions()
        yield running


_HANGS = pytest.mark.parametrize("how", [signal.SIGSTOP, _SPIN], ids=["stopped", "spinning"])


def _hung(appliance: Appliance, pid: int) -> Callable[[], dict[str, object]]:
    return lambda: next((each for each in appliance.events("program-hung") if each["pid"] == pid), {})


def _settled(appliance: Appliance) -> list[Worker]:
    """Return the workers where all accept, and none is of another generation."""
    workers = appliance.workers()
    settled = {each.phase for each in workers} == {"accepting"} and len(workers) == _WORKERS
    return workers if settled else []


def _hang(appliance: Appliance, pid: int, how: int) -> dict[str, object]:
    """Let a process hang, and return the line that names it when it has been ended."""
    os.kill(pid, how)
    line = wait_until(_hung(appliance, pid), what="it is named", timeout=_PATIENCE)
    wait_until(lambda: not alive(pid), what="it is ended")
    return line


@pytest.mark.promise("docs/concepts.md", "a program that hangs is ended and started again")
@_HANGS
@pytest.mark.parametrize("program", ["health", "reload", "proxy-api"])
def test_a_program_that_hangs_is_replaced(made: Cluster, load: Load, program: str, how: int):
    """It is named, killed, and back; no session and no new connection is lost by it."""
    appliance = made.appliance
    pid = wait_until(lambda: appliance.program_pid(program), what="it answers")
    line = _hang(appliance, pid, how)
    assert line["name"] == program
    assert float(str(line["silent"])) >= _PERIOD
    appliance.wait_for_restart(program, pid)
    wait_until(lambda: load.report().completed > 300, what="traffic goes on", timeout=60.0)
    report = load.report()
    assert report.failures == {}
    assert len(report.living) == 100
    assert appliance.reload(made.config())["ok"] is True


@pytest.mark.slow("several starts of the whole appliance")
@_HANGS
def test_a_worker_that_hangs_is_replaced_in_its_generation(made: Cluster, load: Load, how: int):
    """Its own connections are lost; new ones go to its sibling meanwhile, and its place is filled."""
    appliance = made.appliance
    victim, other = wait_until(lambda: _settled(appliance), what="one generation", timeout=60.0)
    before = load.report()
    os.kill(victim.pid, how)
    wait_until(
        lambda: load.report().completed > before.completed + 100, what="its sibling serves", timeout=60.0
    )
    line = wait_until(_hung(appliance, victim.pid), what="it is named", timeout=_PATIENCE)
    assert line["name"] == f"worker-proxy-api-{victim.generation}-{victim.index}"
    replaced = wait_until(
        lambda: [each for each in appliance.accepting() if each.pid not in (victim.pid, other.pid)],
        what="the worker is replaced",
    )
    assert (replaced[0].generation, replaced[0].index) == (victim.generation, victim.index)
    assert alive(other.pid)
    assert set(load.report().failures) <= {"reset", "end", "timeout"}
    heart = appliance.paths.worker_heartbeat("proxy-api", victim.generation, victim.index)
    assert heart.exists()


@pytest.mark.slow("several starts of the whole appliance")
def test_connections_at_the_only_worker_wait_for_the_next_one():
    """Nobody is refused: they are in the listening socket, which the master holds, and are served then."""
    with cluster(workers=1, watchdog=f"{_PERIOD:g}s") as made:
        (worker,) = wait_until(made.appliance.accepting, what="it accepts")
        wait_until(
            lambda: made.appliance.command("status", check=False).returncode == 0, what="servers are up"
        )
        os.kill(worker.pid, signal.SIGSTOP)
        with socket.create_connection(("127.0.0.1", made.port), timeout=_PATIENCE) as client:
            client.sendall(b"who\n")
            assert client.recv(100).startswith(b"master-")
        assert [each["pid"] for each in made.appliance.events("program-hung")] == [worker.pid]


@pytest.mark.slow("several starts of the whole appliance")
def test_a_machine_that_stands_still_ends_nobody(made: Cluster, load: Load):
    """All stopped for longer than the period, supervisord too, as a suspended machine is."""
    appliance = made.appliance
    everybody = appliance.processes()
    named = len(appliance.events("program-hung"))
    for pid in everybody:
        os.kill(pid, signal.SIGSTOP)
    _stand_still(2 * _PERIOD)
    for pid in everybody:  # supervisord, the oldest, is the first to go on, and sees nobody's beat
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: load.report().completed > 200, what="traffic goes on", timeout=60.0)
    _stand_still(2 * _PERIOD)
    assert len(appliance.events("program-hung")) == named
    assert all(map(alive, everybody))


def _stand_still(seconds: float) -> None:
    """Let real time pass: nothing is waited for but that."""
    signal.sigtimedwait([], seconds)


@pytest.mark.slow("several starts of the whole appliance")
def test_the_period_is_live(made: Cluster):
    """A reload changes it, without a new generation of workers; one that is too long or short is refused."""
    appliance = made.appliance
    generation = appliance.generation()
    for refused in ("1s", "1h"):
        assert appliance.reload({**made.config(), "watchdog": refused})["ok"] is False
    answer = appliance.reload({**made.config(), "watchdog": "20s"})
    assert (answer["ok"], answer["changed"]) == (True, ["watchdog"])
    assert appliance.generation() == generation
    pid = appliance.program_pid("health")
    assert pid
    assert float(str(_hang(appliance, pid, signal.SIGSTOP)["silent"])) >= 20
    appliance.wait_for_restart("health", pid)
