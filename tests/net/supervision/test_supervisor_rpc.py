"""supervisord over its unix socket, against a real one."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.processes.waiting import wait_until

from appliance.net.supervision.supervisor_rpc import SupervisorClient, SupervisorUnavailable

pytestmark = pytest.mark.programs

_CONFIG = """\
[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile={root}/pid
[unix_http_server]
file={root}/supervisor.sock
chmod=0600
[rpcinterface:supervisor]
supervisor.rpcinterface_factory = supervisor.rpcinterface:make_main_rpcinterface
[program:steady]
command=sleep 1000
[program:waiting]
command=sleep 1000
autostart=false
[program:missing]
command=/no/such/program
[program:stubborn]
command=sh -c 'trap "" TERM; : > {root}/deaf; while :; do sleep 0.1; done'
stopwaitsecs=2
"""


def state(supervisor: SupervisorClient, name: str) -> str:
    """Return a program's state, "" while no supervisord answers."""
    try:
        return next(each.state for each in supervisor.processes() if each.name == name)
    except SupervisorUnavailable:
        return ""


@pytest.fixture
def supervisord(tmp_path: Path) -> Iterator[tuple[SupervisorClient, "subprocess.Popen[bytes]"]]:
    """Run a supervisord of four programs."""
    configuration = tmp_path / "supervisord.conf"
    configuration.write_text(_CONFIG.format(root=tmp_path))
    with subprocess.Popen(
        [sys.executable, "-m", "supervisor.supervisord", "-n", "-c", str(configuration)],
        stdout=subprocess.DEVNULL,
    ) as process:
        supervisor = SupervisorClient(tmp_path / "supervisor.sock")
        wait_until(lambda: state(supervisor, "steady") == "RUNNING", what="steady is up", timeout=20.0)
        # Its shell may not have read a line yet; then TERM would end it at once.
        wait_until((tmp_path / "deaf").exists, what="stubborn does not heed TERM", timeout=20.0)
        yield supervisor, process
        process.terminate()


def test_processes_tell_what_supervisord_knows(supervisord: tuple[SupervisorClient, object]):
    """A running program has a pid and a start, one that cannot start has its reason."""
    supervisor, _ = supervisord
    failed = {"BACKOFF", "FATAL"}
    wait_until(lambda: state(supervisor, "missing") in failed, what="missing has failed", timeout=20.0)
    processes = {each.name: each for each in supervisor.processes()}
    assert processes["steady"].pid
    assert processes["steady"].started_at
    assert processes["waiting"].pid is None
    assert processes["waiting"].started_at is None
    assert "/no/such/program" in processes["missing"].spawn_error


def test_start_and_stop_can_be_repeated(supervisord: tuple[SupervisorClient, object]):
    """Starting what runs and stopping what is down are no errors."""
    supervisor, _ = supervisord
    supervisor.start("waiting")
    supervisor.start("waiting")
    wait_until(lambda: state(supervisor, "waiting") == "RUNNING", what="waiting is RUNNING", timeout=20.0)
    supervisor.stop("waiting")
    wait_until(lambda: state(supervisor, "waiting") == "STOPPED", what="waiting is STOPPED", timeout=20.0)
    supervisor.stop("waiting")


def test_unknown_program_is_refused(supervisord: tuple[SupervisorClient, object]):
    """A name that supervisord does not have is an error with that name."""
    supervisor, _ = supervisord
    with pytest.raises(SupervisorUnavailable, match="nobody"):
        supervisor.start("nobody")


def test_shutting_down(supervisord: tuple[SupervisorClient, "subprocess.Popen[bytes]"]):
    """It is going down from its TERM until its end, and before it is not."""
    supervisor, process = supervisord
    assert not supervisor.shutting_down()
    process.terminate()
    wait_until(supervisor.shutting_down, what="it is going down", timeout=20.0)


def test_nobody_there(tmp_path: Path):
    """Without a supervisord every call says so."""
    supervisor = SupervisorClient(tmp_path / "none.sock")
    with pytest.raises(SupervisorUnavailable):
        supervisor.shutting_down()
    with pytest.raises(SupervisorUnavailable):
        supervisor.processes()


def test_silent_supervisord_is_given_up(tmp_path: Path):
    """One that takes connections and says nothing is unavailable after the timeout."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "mute.sock"))
        listener.listen()
        with pytest.raises(SupervisorUnavailable):
            SupervisorClient(tmp_path / "mute.sock", timeout=0.1).shutting_down()
