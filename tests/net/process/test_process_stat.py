"""What /proc says of processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.processes.processes import running
from support.processes.waiting import wait_until

from appliance.net.process.process_stat import process_stat, waits_for_processor

pytestmark = pytest.mark.sockets

_NAMES_ITSELF = "open('/proc/self/comm', 'w').write('a) S (1'); print(flush=True); input()"


def test_our_own_process():
    """Parent and state are those of this process, and its start does not change."""
    found = process_stat(os.getpid())
    assert (found.parent, found.state) == (os.getppid(), "R")
    assert found.started == process_stat(os.getpid()).started > 0


@pytest.mark.programs
def test_a_name_with_parentheses_hides_nothing():
    """A process may call itself anything: the other fields are still found."""
    with subprocess.Popen(
        [sys.executable, "-c", _NAMES_ITSELF], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        found = process_stat(child.pid)
    assert (found.name, found.parent) == (b"a) S (1", os.getpid())


def test_a_process_that_does_not_exist():
    """A number that no process has is an OSError."""
    with pytest.raises(OSError, match="No such"):
        process_stat(1 << 30)


@pytest.mark.programs
def test_waits_for_a_processor(tmp_path: Path):
    """Two that never rest share one processor: each waits while the other one runs, and both wait on."""
    one = min(os.sched_getaffinity(0))
    busy = [sys.executable, "-c", f"import os; os.sched_setaffinity(0, [{one}])\nwhile True: pass"]
    log = tmp_path / "log"
    with running(busy, log=log) as first, running(busy, log=log) as second:
        for each in (first, second):
            wait_until(lambda each=each: waits_for_processor(each.pid) > 0.5, what="it has waited")  # type: ignore[misc]


@pytest.mark.programs
def test_who_sleeps_does_not_wait_for_a_processor(tmp_path: Path):
    """What a process does not ask for it does not wait for; one that does not exist has never waited."""
    with running(["sleep", "60"], log=tmp_path / "log") as process:
        before = waits_for_processor(process.pid)
        wait_until(lambda: process_stat(process.pid).state == "S", what="it sleeps")
        assert waits_for_processor(process.pid) - before < 1.0
    assert waits_for_processor(1 << 30) == 0.0
