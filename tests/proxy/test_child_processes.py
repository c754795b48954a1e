"""Worker processes: their ready byte, their death, and signals that reach nobody else."""

import errno
import os
import signal
import socket
import subprocess
from pathlib import Path

import gevent
import pytest
from support.processes.processes import descriptors

from appliance.proxy.child_processes import WorkerProcess, spawn, wait_ready

pytestmark = pytest.mark.programs


def start(tmp_path: Path, code: str, *, listeners: tuple[int, ...] = ()) -> tuple[WorkerProcess, int]:
    """Start a program; its argument is the ready descriptor."""
    script = tmp_path / "program.py"
    script.write_text(f"import os, sys, time, socket\nready = int(sys.argv[1])\n{code}\n")
    return spawn([str(script)], lambda ready: [str(ready)], listeners=listeners, environment=os.environ)


def test_ready(tmp_path: Path) -> None:
    """A program that writes its byte is ready; its end is told with its status."""
    process, ready = start(tmp_path, "os.write(ready, b'R')\nsys.exit(4)")
    assert wait_ready(ready)
    assert process.wait() == "exited 4"


@pytest.mark.parametrize("code", ["sys.exit(1)", "os.close(ready)\ntime.sleep(60)", "os.write(ready, b'?')"])
def test_never_ready(tmp_path: Path, code: str) -> None:
    """A program that ends, closes its pipe or writes something else will never be ready."""
    process, ready = start(tmp_path, code)
    assert not wait_ready(ready)
    process.kill()
    process.wait()


def test_last_words(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """What a program wrote to standard error is passed on, and its last line explains its end."""
    process, ready = start(tmp_path, "raise ValueError('no such snapshot')")
    assert not wait_ready(ready)
    assert process.wait() == "exited 1: ValueError: no such snapshot"
    assert "Traceback" in capfd.readouterr().err


def test_errors_are_passed_on_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Complaints of a program that got ready are passed on, and are not its last words."""
    process, ready = start(tmp_path, "print('hm', file=sys.stderr, flush=True)\nos.write(ready, b'R')")
    assert wait_ready(ready)
    assert process.pass_errors_on() == "hm\n"
    assert process.wait() == "exited 0"
    assert capfd.readouterr().err == "hm\n"


def test_killed(tmp_path: Path) -> None:
    """A killed program is told as that; a signal to a dead one goes nowhere."""
    process, ready = start(tmp_path, "time.sleep(60)")
    process.kill()
    assert process.wait() == "killed by SIGKILL"
    assert not wait_ready(ready)
    process.kill()


def test_killed_by_a_nameless_signal(tmp_path: Path) -> None:
    """A signal without a name is told by number."""
    number = signal.SIGRTMIN + 3
    process, ready = start(tmp_path, f"os.kill(os.getpid(), {number})")
    assert process.wait() == f"killed by signal {number}"
    os.close(ready)


def test_death_is_waited_for_beside_other_work(tmp_path: Path) -> None:
    """Waiting for one program holds nobody else up."""
    process, ready = start(tmp_path, "time.sleep(60)")
    waiting = gevent.spawn(process.wait)
    gevent.sleep(0)
    assert not waiting.ready()
    process.kill()
    assert waiting.get(timeout=10) == "killed by SIGKILL"
    os.close(ready)


def test_only_listeners_are_inherited(tmp_path: Path) -> None:
    """A program has the listeners that it was given, and no other descriptor of ours."""
    with socket.create_server(("127.0.0.1", 0)) as given, socket.create_server(("127.0.0.1", 0)) as kept:
        code = (
            f"os.fstat({given.fileno()})\n"
            f"try: os.fstat({kept.fileno()})\n"
            "except OSError: os.write(ready, b'R')"
        )
        process, ready = start(tmp_path, code, listeners=(given.fileno(),))
        assert wait_ready(ready)
        assert process.wait() == "exited 0"


def test_adopted() -> None:
    """The death of a process that is not our child is noticed too."""
    script = "sleep 60 >/dev/null & echo $!"
    said = subprocess.run(["sh", "-c", script], stdout=subprocess.PIPE, check=True).stdout
    process = WorkerProcess(int(said))
    process.kill()
    assert process.wait() == "gone"


def test_nobody() -> None:
    """A number that no process has is an error."""
    child = subprocess.Popen(["true"])
    child.wait()
    with pytest.raises(ProcessLookupError):
        WorkerProcess(child.pid)


def test_program_that_cannot_be_started() -> None:
    """A start that fails leaves no descriptor behind."""
    before = descriptors(os.getpid())
    with pytest.raises(OSError, match="Argument list too long"):
        spawn(["x" * (1 << 20)], lambda ready: [str(ready)], listeners=(), environment={})
    assert descriptors(os.getpid()) == before


def test_a_child_that_cannot_be_held_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a descriptor for its pidfd the start has failed: no process and no file stays."""
    pids: list[int] = []

    def fail(pid: int) -> int:
        pids.append(pid)
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(os, "pidfd_open", fail)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        before = descriptors(os.getpid())
        with pytest.raises(OSError, match="Too many open files"):
            start(tmp_path, "time.sleep(60)", listeners=(listener.fileno(),))
        assert not Path(f"/proc/{pids[0]}").exists()
        assert descriptors(os.getpid()) == before
