"""Programs of a runtime directory that nobody supervises: which are found, and which are another's."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest
from structlog import get_logger
from support.machines import nobody
from support.processes.waiting import wait_until

from appliance.core.program_table import CONFIGURED
from appliance.model.paths import Paths
from appliance.model.program_names import PROXIES
from appliance.net.process.leftovers import OF_VRRP, Leftovers

pytestmark = pytest.mark.programs

_IDLE = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"


@contextmanager
def program(root: Path, *, name: str = "health", runtime: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a program of that name which does nothing, for a runtime directory."""
    module = root / "appliance" / "programs" / f"{name}.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text(_IDLE)
    for package in (module.parent, module.parent.parent):  # a directory without it loses to the real package
        (package / "__init__.py").touch()
    process = subprocess.Popen(
        [sys.executable, "-m", f"appliance.programs.{name}"],
        cwd=root,
        env={**os.environ, "APPLIANCE_RUNTIME_DIR": str(runtime)},
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"up\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def leftovers(runtime: Path) -> Leftovers:
    """Return what is left in a directory."""
    return Leftovers(Paths(runtime=runtime), get_logger())


@pytest.fixture
def runtime(tmp_path: Path) -> Path:
    """Make a runtime directory."""
    (tmp_path / "run").mkdir()
    return tmp_path / "run"


def test_only_those_of_the_directory_are_found(tmp_path: Path, runtime: Path):
    """By another name of the directory too; not those of another one, and no other command."""
    other, alias = tmp_path / "other", tmp_path / "alias"
    other.mkdir()
    alias.symlink_to(runtime)
    with (
        program(tmp_path, runtime=runtime) as ours,
        program(tmp_path, name="worker", runtime=alias) as worker,
        program(tmp_path, runtime=other),
        program(tmp_path, name="unknown", runtime=runtime),
    ):
        expected = {ours.pid: "appliance.programs.health", worker.pid: "appliance.programs.worker"}
        assert leftovers(runtime).find() == expected


def test_every_program_is_found(tmp_path: Path, runtime: Path):
    """A program that a configuration can need is in the table, whenever it came into the appliance."""
    names = {"reload", "worker", *("proxy" if each in PROXIES else each for each in CONFIGURED)}
    with ExitStack() as running:
        for name in names:
            running.enter_context(program(tmp_path, name=name, runtime=runtime))
        found = leftovers(runtime).find().values()
        assert {*found} == {f"appliance.programs.{name}" for name in names}


def test_programs_are_told_once_and_workers_are_not(tmp_path: Path, runtime: Path):
    """TERM is for programs: to a worker it would mean to cut its sessions."""
    with (
        program(tmp_path, runtime=runtime) as ours,
        program(tmp_path, name="worker", runtime=runtime) as worker,
    ):
        left = leftovers(runtime)
        left.end_programs()
        assert ours.wait(15) < 0
        left.end_programs()
        assert left.find() == {worker.pid: "appliance.programs.worker"}
        left.drain_workers(0.0)  # it has no socket yet
        left.kill()
        assert worker.wait(15) < 0
        wait_until(lambda: not left.find(), what="nothing is left")


def test_vrrp_is_spared_where_a_successor_takes_its_place(tmp_path: Path, runtime: Path):
    """The program of the virtual IPs goes on, and may be told to end later; the others are told now."""
    with (
        program(tmp_path, runtime=runtime) as health,
        program(tmp_path, name="vrrp", runtime=runtime) as vrrp,
    ):
        left = leftovers(runtime)
        left.end_programs(spared=OF_VRRP)
        assert health.wait(15) == -signal.SIGTERM
        assert vrrp.poll() is None
        left.end_programs()
        assert vrrp.wait(15) == -signal.SIGTERM


def test_a_vrrp_that_nobody_knows_is_killed(tmp_path: Path, runtime: Path):
    """One is left alone by its process id, any other one is killed."""
    with (
        program(tmp_path, name="vrrp", runtime=runtime) as known,
        program(tmp_path, name="vrrp", runtime=runtime) as unknown,
    ):
        left = leftovers(runtime)
        assert sorted(left.vrrps()) == sorted([known.pid, unknown.pid])
        left.kill_vrrps(but=known.pid)
        assert unknown.wait(15) == -signal.SIGKILL
        assert known.poll() is None


def test_vrrp_is_told_to_end_where_nothing_goes_on(tmp_path: Path, runtime: Path):
    """When everything ends, it may hand over."""
    with program(tmp_path, name="vrrp", runtime=runtime) as vrrp:
        leftovers(runtime).end_programs()
        assert vrrp.wait(15) == -signal.SIGTERM


_LISTENING = """
import os, socket, sys
listener = socket.socket(socket.AF_UNIX)
listener.bind(sys.argv[1])
os.chmod(sys.argv[1], 0o777)
listener.listen()
print("up", flush=True)
while True:
    listener.accept()
"""
_END = """
import sys
from pathlib import Path
from structlog import get_logger
from appliance.core.program_table import CONFIGURED
from appliance.model.program_names import PROXIES
from appliance.model.paths import Paths
from appliance.net.process.leftovers import Leftovers
left = Leftovers(Paths(runtime=Path(sys.argv[1])), get_logger())
left.end_programs()
left.kill()
"""


@pytest.mark.needs("unshare", "mount", "setpriv", root=True)
def test_one_of_another_user_is_told_and_hinders_no_start():
    """What root ran before there was a user of ours cannot be ended: the log names it, and nothing breaks."""
    with tempfile.TemporaryDirectory(prefix="lb-left-") as root:
        runtime = Path(root)
        runtime.chmod(0o755)
        words = [sys.executable, "-c", _LISTENING, str(runtime / "health.control")]
        with subprocess.Popen(words, stdout=subprocess.PIPE) as other:
            try:
                assert other.stdout is not None
                assert other.stdout.readline() == b"up\n"
                ending = nobody.command([sys.executable, "-c", _END, str(runtime)])
                done = subprocess.run(ending, capture_output=True, text=True, check=False, timeout=60)
                assert done.returncode == 0, done.stderr
                assert done.stdout.count("leftover-of-another-user") == 2
                assert str(other.pid) in done.stdout
                assert other.poll() is None
            finally:
                other.kill()
