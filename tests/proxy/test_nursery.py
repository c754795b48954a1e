"""The nursery: programs that it forks are children of its master, with what the master gives them only."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.processes import alive
from support.processes.waiting import wait_until

from appliance.net.process import python

pytestmark = pytest.mark.programs

_MASTER = """
import json, os, signal, socket, sys
from appliance.net.process import python
from appliance.proxy import child_processes, nursery
from support.processes.processes import children, command_line

held = socket.socket()
os.dup2(held.fileno(), 200, inheritable=True)
made = nursery.begin("support.processes.circumstances", "api")
assert made is not None
many = [socket.socket() for _ in range(600)]
given = [each.fileno() for each in many]
module = ("-m", "support.processes.circumstances")
"""


def master(script: str) -> list[str]:
    """Run a script in a process with a nursery; return the lines that it writes."""
    done = subprocess.run(
        [sys.executable, "-Ps", "-c", _MASTER + script],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


_SPAWN = """
def start(*words, listeners=()):
    return child_processes.spawn(module, lambda ready: [*words, str(ready)], listeners=listeners,
        environment={**os.environ, "GIVEN": "yes"}, nursery=made)
"""


def test_what_it_forks_is_a_program_of_its_own():
    """It has the descriptors that it was given by their numbers, hundreds of them, and none else."""
    said, given, status = master(
        f"""{_SPAWN}
process, ready = start(listeners=given)
print(json.dumps([*given, 0, 1, 2]), process.wait(), sep="\\n", flush=True)
"""
    )
    found = json.loads(said)["same"]
    ready = int(found["words"][-2])
    assert found["descriptors"] == sorted([*json.loads(given), ready])
    assert found["words"][:-2] == python.command("support.processes.circumstances")
    assert found["environment"]["GIVEN"] == "yes"
    assert status == "exited 3"


@pytest.mark.parametrize(
    ("meanwhile", "ending"),
    [
        ("os.kill(made._pid, signal.SIGKILL)", "it has an interpreter of its own without a nursery"),
        ("made._files._at_first = ('another',)", "and after another release was installed"),
    ],
)
def test_without_a_nursery_a_program_starts_all_the_same(meanwhile: str, ending: str):
    """A nursery that is gone, or has the modules of a former release, forks none: it is execed."""
    said, parents, status = master(
        f"""{_SPAWN}
{meanwhile}
process, ready = start()
print(len(children(os.getpid())), process.wait(), sep="\\n", flush=True)
"""
    )
    assert json.loads(said)["same"]["threads"] == 1, ending
    assert (parents, status) in {("2", "exited 3"), ("1", "exited 3")}


def test_one_that_stands_still_forks_nothing_after_all():
    """Its order is not lost but late: only the program with an interpreter of its own is there."""
    status, left = master(
        f"""{_SPAWN}
os.kill(made._pid, signal.SIGSTOP)
made._connection.settimeout(0.2)
process, ready = start("fail")
print(process.wait().partition(":")[0], len(children(os.getpid())), sep="\\n", flush=True)
"""
    )
    assert (status, left) == ("exited 1", "0")


def test_it_ends_with_its_master():
    """When its master has gone, nothing is left of it."""
    (pid,) = master("print(made._pid)")
    wait_until(lambda: not alive(int(pid)), what="it has ended")


def test_signals_to_all_processes_do_not_end_it():
    """What a unit or a terminal sends to every process leaves it: it forks the next program."""
    said, *_ = master(
        f"""{_SPAWN}
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
    os.kill(made._pid, number)
pid = made.fork(python.command(module[1]), dict(os.environ), descriptors=(), errors=2)
os.waitpid(pid, 0)
"""
    )
    assert json.loads(said)["same"]["descriptors"] == [0, 1, 2]
