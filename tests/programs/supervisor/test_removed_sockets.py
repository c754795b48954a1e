"""Somebody removes what programs find each other by, under load: it comes back, and nobody lies till then."""

import contextlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.load.load import Load
from support.peers.cluster import Cluster, cluster
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

from appliance.net.files import lock_files

pytestmark = [pytest.mark.programs, pytest.mark.slow("several starts of the whole appliance")]

_SESSIONS = 30


@pytest.fixture(scope="module")
def made() -> Iterator[Cluster]:
    """Run masters and an appliance of two workers."""
    with cluster(workers=2, drain=600.0) as running:
        yield running


@pytest.fixture
def load(made: Cluster) -> Iterator[Load]:
    """Put the appliance under load; in the end nothing of it may be lost."""
    with Load(port=made.port, sessions=_SESSIONS, rate=50.0) as running:
        running.wait_for_sessions()
        yield running
        wanted = running.report().completed + 100
        wait_until(lambda: running.report().completed >= wanted, what="load goes on", timeout=60.0)
        report = running.report()
        assert report.failures == {}
        assert report.ended == []
        assert len(report.living) == _SESSIONS


def reload_is_obeyed(made: Cluster, revision: int) -> None:
    """Reload, by a live change and by one that needs a generation, and see that workers obey."""
    appliance = made.appliance
    wait_until(appliance.paths.reload_socket.exists, what="the reload socket is there")
    for config in (made.config(revision=revision, retries=revision % 10), made.config(revision=revision + 1)):
        answer = appliance.reload(config)
        assert answer["ok"], answer
        assert "warnings" not in answer, answer
        obeyed = {str(appliance.ask(each, "status")["snapshot"]) for each in ("health", "proxy-api")}
        assert obeyed == {str(answer["generation"])}
        obeyed = {str(worker.snapshot) for worker in appliance.accepting()}
        assert obeyed == {str(answer["generation"])}
    assert status_is_good(appliance)


def status_is_good(appliance: Appliance) -> bool:
    """Return whether `status` has no problem to tell, once it had time to see what is new."""
    return bool(
        wait_until(
            lambda: appliance.command("status", check=False).returncode == 0, what="status is 0", timeout=60.0
        )
    )


@pytest.mark.parametrize(
    "name", ["health.control", "proxy-api.control", "reload.control", "worker-*.control"]
)
def test_one_socket(made: Cluster, load: Load, name: str):
    """A reload that comes at once waits for it, and is obeyed."""
    for path in made.appliance.paths.runtime.glob(name):
        path.unlink()
    reload_is_obeyed(made, 10 + 2 * len(name))
    assert load.report().failures == {}


def test_all_sockets(made: Cluster, load: Load):
    """Those of supervisord and of the reload program, too."""
    for path in made.appliance.paths.runtime.iterdir():
        if path.is_socket():
            path.unlink()
    reload_is_obeyed(made, 100)
    wait_until(made.appliance.paths.supervisor_socket.exists, what="supervisord listens again")
    assert made.appliance.supervisorctl("pid", "proxy-api").strip().isdecimal()
    assert load.report().failures == {}


def _put_a_directory(path: Path) -> None:
    """Put a directory in a socket's place, before the program listens there again."""
    made = False
    while not made:
        path.unlink(missing_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir()
            made = True


def test_a_master_that_cannot_be_asked(made: Cluster, load: Load):
    """It runs, and something is in the place of its socket: the reload is refused, nothing has changed."""
    path, accepted = made.appliance.paths.control("proxy-api"), made.appliance.accepted()
    _put_a_directory(path)
    answer = made.appliance.reload(made.config(revision=200))
    assert not answer["ok"]
    assert "proxy-api: it runs, and does not answer" in str(answer["errors"])
    assert made.appliance.accepted() == accepted
    path.rmdir()
    wait_until(path.exists, what="its socket is back")
    reload_is_obeyed(made, 202)
    assert load.report().failures == {}


def test_a_master_that_dies_without_its_workers_sockets(made: Cluster, load: Load):
    """Its successor waits until they have made them again, and goes on with the same workers."""
    before = {worker.pid for worker in made.appliance.accepting()}
    master = made.appliance.program_pid("proxy-api")
    for path in made.appliance.paths.runtime.glob("worker-*.control"):
        path.unlink()
    killed = made.appliance.kill("proxy-api")
    assert killed == master
    made.appliance.wait_for_restart("proxy-api", killed)
    wait_until(
        lambda: (
            {worker.pid for worker in made.appliance.accepting()} == before
            and made.appliance.ask("proxy-api", "status")["snapshot"] == made.appliance.accepted()
        ),
        what="the workers are adopted",
        timeout=60.0,
    )
    assert len(made.appliance.events("start-failed")) == 0
    reload_is_obeyed(made, 300)
    assert load.report().failures == {}


@pytest.mark.parametrize("again", [True, False])
def test_the_whole_directory(made: Cluster, load: Load, *, again: bool):
    """Removed, and made again or not: everything comes back, and a master that dies finds its workers."""
    runtime = made.appliance.paths.runtime
    shutil.rmtree(runtime.rename(runtime.with_name("gone")))
    if again:
        runtime.mkdir(mode=0o700, exist_ok=True)
    wait_until(lambda: len(made.appliance.accepting()) == 2, what="workers can be asked", timeout=60.0)
    wait_until(made.appliance.paths.accepted.exists, what="the accepted snapshot is back", timeout=60.0)
    before = {worker.pid for worker in made.appliance.accepting()}
    killed = made.appliance.kill("proxy-api")
    made.appliance.wait_for_restart("proxy-api", killed)
    wait_until(
        lambda: {worker.pid for worker in made.appliance.accepting()} == before, what="they are adopted"
    )
    reload_is_obeyed(made, 400 + 2 * again)
    assert load.report().failures == {}


@pytest.mark.parametrize("waits", [True, False])
def test_a_second_appliance_in_a_directory_that_was_removed(made: Cluster, *, waits: bool):
    """It is refused, at once by the process that is there, and later by the lock that it has taken again."""
    paths = made.appliance.paths
    shutil.rmtree(paths.runtime.rename(paths.runtime.with_name("gone")))
    paths.runtime.mkdir(mode=0o700, exist_ok=True)  # the appliance makes it again too
    if waits:
        wait_until(paths.lock.exists, what="the directory is locked again", timeout=60.0)
        assert lock_files.hold(paths.lock) is None
    second = made.appliance.command("run", "--no-take-over", check=False)
    assert second.returncode == 3
    assert "an appliance runs here already" in second.stderr
    wait_until(paths.accepted.exists, what="the accepted snapshot is back", timeout=60.0)
    assert status_is_good(made.appliance)
