"""TERM and INT at every moment of a start that takes over from a killed supervisord: nothing is left."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import pytest
from support.network.ports import free_port
from support.peers.backend import Backend
from support.processes.processes import end, kill
from support.processes.waiting import wait_until
from support.supervisor.appliance import Appliance

pytestmark = [pytest.mark.programs, pytest.mark.slow("several starts of the whole appliance")]

_COMMAND: Final = Path(sys.executable).parent / "appliance"
_STAGES: Final = (
    "starting",  # `run` is about to become supervisord
    "leftover-program",
    "program-starting",
    "generation-adopted",
    "generation-resumed",
    "program-running",
)


def config(*, server: int = 9, drain: str = "2s") -> dict[str, object]:
    """Return a file with one frontend before one server."""
    frontend = {"bind": [f"127.0.0.1:{free_port()}"], "pool": "servers"}
    return {
        "api": {"workers": 1, "frontends": {"through": frontend}},
        "pools": {"servers": {"servers": {"one": {"address": f"127.0.0.1:{server}"}}}},
        "defaults": {"drain": drain},
    }


def leave(appliance: Appliance) -> None:
    """Kill supervisord, and forget what was logged."""
    kill(appliance.pid)
    assert len(appliance.processes()) >= 4
    os.truncate(appliance.log_file, 0)


@contextmanager
def running(appliance: Appliance) -> "Iterator[subprocess.Popen[bytes]]":
    """Run the appliance again, and wait for nothing."""
    with appliance.log_file.open("ab") as output:
        process = subprocess.Popen(
            [_COMMAND, "run"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=appliance.environment,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        end(process)


def logged(appliance: Appliance, event: str) -> Callable[[], bool]:
    """Return the question whether an event was logged."""
    return lambda: bool(appliance.events(event))


@pytest.mark.parametrize(
    ("stage", "number"),
    [*((stage, signal.SIGTERM) for stage in _STAGES), *((stage, signal.SIGINT) for stage in _STAGES[:2])],
)
def test_told_to_end_during_a_take_over(stage: str, number: signal.Signals):
    """Whatever has been logged when the signal comes, everything of the runtime directory ends."""
    with Appliance(config()) as appliance:
        leave(appliance)
        with running(appliance) as process:
            wait_until(logged(appliance, stage), what=f"{stage} is logged", timeout=30.0, pause=0.001)
            process.send_signal(number)
            assert process.wait(30) == 0
            assert appliance.processes() == []


def test_told_to_end_while_the_file_is_read():
    """A signal during the validation is obeyed when supervisord has taken over; no program is started."""
    with Appliance(config()) as appliance:
        leave(appliance)
        with appliance.paths.config.open("a") as file:
            file.write("# a comment that takes its time to be read\n" * 50_000)
        with running(appliance) as process:
            # From then on it reads the file, and TERM waits for supervisord.
            wait_until(lambda: _keeps_back(process.pid, signal.SIGTERM), what="it keeps TERM", pause=0.001)
            process.terminate()
            assert process.wait(30) == 0
            assert appliance.processes() == []
        assert appliance.events("program-starting") == []


def _keeps_back(pid: int, number: signal.Signals) -> bool:
    """Return whether a process has blocked the signal (proc(5), SigBlk: bit N-1 of a hexadecimal mask)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("SigBlk:"))
    return bool(int(mask, 16) & 1 << (number - 1))


def test_told_to_end_at_a_first_start():
    """Without anything to take over it is the same."""
    with Appliance(config()) as appliance:
        assert appliance.stop(patience=30) == 0
        os.truncate(appliance.log_file, 0)
        with running(appliance) as process:
            wait_until(logged(appliance, "program-starting"), what="a program starts", pause=0.001)
            process.terminate()
            assert process.wait(30) == 0
            assert appliance.processes() == []


def test_a_second_signal_ends_leftovers_at_once():
    """Sessions of a worker that nobody took over are drained at the first signal, and cut at the second."""
    with Backend("one") as backend, Appliance(config(server=backend.port, drain="1h")) as appliance:
        with _session(appliance) as session:
            leave(appliance)
            with running(appliance) as process:
                wait_until(logged(appliance, "starting"), what="it starts", pause=0.001)
                process.terminate()
                wait_until(lambda: appliance.workers() and not appliance.accepting(), what="it drains")
                session.settimeout(0.2)
                with pytest.raises(TimeoutError):
                    session.recv(1)
                wait_until(lambda: process.terminate() or process.poll() is not None, what="end", pause=0.3)
                assert process.wait() == 1
                assert appliance.processes() == []
            session.settimeout(15.0)
            with suppress(ConnectionError):
                assert not session.recv(1)
        appliance.remove_sockets()


@contextmanager
def _session(appliance: Appliance) -> Iterator[socket.socket]:
    """Open a session that a server has accepted."""
    group = appliance.config["api"]
    assert isinstance(group, dict)
    port = int(group["frontends"]["through"]["bind"][0].rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port)) as session:
        wait_until(lambda: any(each.sessions for each in appliance.workers()), what="a session")
        yield session
