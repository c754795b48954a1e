"""Who is started and stopped, against a real supervisord, whose programs may be slow to end."""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.waiting import wait_until

from appliance.console.reload import reload
from appliance.core.rollout.timing import Timing
from appliance.model.paths import Paths
from appliance.net.supervision.supervisor_rpc import SupervisorClient, SupervisorUnavailable
from appliance.reload.program_clients import ProgramClients, ProgramTimeouts

pytestmark = pytest.mark.programs

_CONFIG = """\
[supervisord]
logfile=/dev/null
logfile_maxbytes=0
pidfile={root}/pid
[unix_http_server]
file={root}/supervisor.sock
chmod=0600
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[program:health]
command=sleep 1000
startsecs=0
[program:proxy-api]
command=sh -c 'trap "" TERM; : > {root}/deaf; while :; do sleep 0.1; done'
stopwaitsecs=1
startsecs=0
"""


class House:
    """A supervisord of a `health` that ends at once and a `proxy-api` that has to be killed."""

    def __init__(self, root: Path) -> None:
        self.paths = Paths(runtime=root, state=root)
        self.supervisor = SupervisorClient(self.paths.supervisor_socket)
        self.clients = self.restarted()

    def restarted(self, *, start: float = 15.0) -> ProgramClients:
        """Return what a reload that was killed starts with."""
        return ProgramClients(self.paths, timeouts=ProgramTimeouts(start=start))

    def state(self, name: str) -> str:
        """Return a program's state, "" while no supervisord answers."""
        try:
            return next(each.state for each in self.supervisor.processes() if each.name == name)
        except SupervisorUnavailable:
            return ""

    def until(self, name: str, state: str) -> None:
        """Wait for a program's state."""
        wait_until(lambda: self.state(name) == state, what=f"{name} is {state}")


@pytest.fixture
def house() -> Iterator[House]:
    """Run both programs."""
    with tempfile.TemporaryDirectory(prefix="lb-") as directory:
        root = Path(directory)
        (root / "c.conf").write_text(_CONFIG.format(root=root))
        command = [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(root / "c.conf")]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
            made = House(root)
            made.until("health", "RUNNING")
            made.until("proxy-api", "RUNNING")
            # It runs for supervisord before its shell has read a line; then TERM would end it.
            wait_until((root / "deaf").exists, what="proxy-api does not heed TERM")
            yield made
            process.terminate()


def test_a_program_that_is_stopping_is_waited_for(house: House):
    """A start that comes right after a stop is one."""
    house.clients.stop("proxy-api")
    house.clients.start("proxy-api")
    assert house.state("proxy-api") == "RUNNING"


def test_one_that_takes_too_long_is_started_later(house: House):
    """The wait is bounded and its end is told; the program is started when it has ended after all."""
    hurried = house.restarted(start=0.1)
    house.supervisor.stop("proxy-api")
    with pytest.raises(SupervisorUnavailable, match="still stopping"):
        hurried.start("proxy-api")
    house.until("proxy-api", "STOPPED")
    hurried.put_right(["health", "proxy-api"])
    house.until("proxy-api", "RUNNING")


def test_what_a_killed_reload_had_stopped_is_started(house: House):
    """The next reload knows that it was no operator who stopped it."""
    house.clients.stop("health")
    house.until("health", "STOPPED")
    house.restarted().put_right(["health", "proxy-api"])
    house.until("health", "RUNNING")


def test_what_the_operator_stopped_stays_so(house: House):
    """Also where a reload had stopped it before, and it has run since."""
    house.clients.stop("health")
    house.until("health", "STOPPED")
    house.supervisor.start("health")
    house.clients.put_right(["health", "proxy-api"])
    house.supervisor.stop("health")
    house.until("health", "STOPPED")
    house.clients.put_right(["health", "proxy-api"])
    assert house.state("health") == "STOPPED"


def test_what_is_not_needed_is_stopped(house: House):
    """A program of ours that runs for no group is stopped, and started when it is needed again."""
    house.clients.put_right(["proxy-api"])
    house.until("health", "STOPPED")
    house.clients.put_right(["health", "proxy-api"])
    house.until("health", "RUNNING")


def test_a_damaged_note_is_none(house: House):
    """Half a file of names does not keep anything from being started or stopped."""
    (house.paths.runtime / "stopped.json").write_text("[")
    house.clients.stop("health")
    house.clients.start("health")
    assert house.state("health") == "RUNNING"


def test_who_waits_longer():
    """A proxy gives up before the reload that waits for it, and that before the operator who asked."""
    (asked,) = (each.default for each in reload.params if each.name == "timeout")
    assert (
        Timing().startup
        < ProgramTimeouts().prepare
        < ProgramTimeouts().prepare + ProgramTimeouts().commit
        < asked
    )
