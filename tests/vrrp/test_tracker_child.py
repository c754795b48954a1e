"""A child that is told and tells lines, and is started anew when it ends."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.processes.processes import alive, kill
from support.processes.waiting import wait_until

from appliance.net.loop.loop import Loop
from appliance.vrrp.tracker_child import TrackerChild

pytestmark = pytest.mark.programs

_ECHO = """
import socket, sys
peer = socket.socket(fileno=int(sys.argv[1]))
while chunk := peer.recv(65536):
    peer.sendall(chunk)
"""
_DEAF = """
import socket, sys, time
peer = socket.socket(fileno=int(sys.argv[1]))
peer.sendall(b"here\\n")
time.sleep(600)
"""


class Parent:
    """The loop of a parent, run in turns by the test itself."""

    def __init__(self, directory: Path, code: str) -> None:
        program = directory / "child.py"
        program.write_text(code)
        self.loop = Loop()
        self.lines: list[bytes] = []
        self.starts: list[int] = []
        self.ends: list[str] = []
        self.child = TrackerChild(
            self.loop,
            [str(program)],
            greeting=lambda: b"hello\n",
            on_line=self.lines.append,
            on_start=self.starts.append,
            on_end=self.ends.append,
        )
        self.deadline: float | None = None

    def tick(self, now: float) -> None:
        """Do nothing: a deadline of its own bounds each turn of the loop."""
        del now

    def run_until(self, condition: Callable[[], object], what: str) -> None:
        """Turn the loop until something holds."""
        self.loop.add(self)
        self.deadline = 0.0  # always due: each turn returns at once
        wait_until(lambda: (self.loop.turn(), condition())[1], what=what, pause=0.005)
        self.loop.remove(self)


@pytest.fixture
def parent(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Parent]:
    """Return a parent of a child that echoes, or of the code that the test is marked with."""
    made = Parent(tmp_path, getattr(request, "param", _ECHO))
    yield made
    pid = made.child.pid
    made.child.close()
    if pid:
        kill(pid)
        os.waitpid(pid, 0)
    made.loop.close()


def test_no_child_before_it_is_required(parent: Parent):
    """Nothing runs, and nothing is kept, until a child is required."""
    parent.child.send(b"lost\n")
    assert parent.child.deadline is None
    parent.child.require()
    parent.run_until(lambda: parent.lines, "the greeting")
    assert parent.lines == [b"hello"]


def test_what_is_said_before_it_runs_is_kept(parent: Parent):
    """Lines follow the greeting, also those from before the child was there."""
    parent.child.require()
    parent.child.send(b"early\n")
    parent.run_until(lambda: len(parent.lines) == 2, "both lines")
    parent.child.send(b"late\n")
    parent.child.greet()
    parent.run_until(lambda: len(parent.lines) == 4, "all lines")
    assert parent.lines == [b"hello", b"early", b"late", b"hello"]


def test_a_child_that_ends_has_a_successor(parent: Parent):
    """A killed child is replaced after a pause, is waited for, and the new one is greeted."""
    parent.child.require()
    parent.run_until(lambda: parent.lines, "the greeting")
    first = parent.child.pid
    os.kill(first, 9)
    parent.run_until(lambda: len(parent.lines) == 2, "the second greeting")
    assert parent.child.pid not in (0, first)
    assert parent.starts == [first, parent.child.pid]
    assert len(parent.ends) == 1
    parent.run_until(lambda: not alive(first) and not Path(f"/proc/{first}").exists(), "no zombie is left")


@pytest.mark.parametrize("parent", [_DEAF], indirect=True)
def test_a_child_that_does_not_read_is_replaced(parent: Parent):
    """What it would owe us is bounded: past that it is killed and another one started."""
    parent.child.require()
    parent.run_until(lambda: parent.lines, "it runs")
    first = parent.child.pid
    for _ in range(40):
        parent.child.send(b"x" * 65535 + b"\n")
    assert parent.ends == ["does not read"]
    parent.run_until(lambda: not alive(first), "it is killed")


@pytest.mark.needs(root=True)
def test_a_start_waits_for_no_exec(parent: Parent):
    """A real-time parent goes on although its ordinary child has not had a processor yet."""
    processors = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(processors)})
    os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    try:
        parent.child.require()
        parent.child.tick(0.0)
        started = Path(f"/proc/{parent.child.pid}/cmdline").read_bytes()
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        os.sched_setaffinity(0, processors)
    assert started == Path("/proc/self/cmdline").read_bytes()
    parent.run_until(lambda: parent.lines, "the greeting")


def test_a_program_that_is_not_there_is_told(parent: Parent):
    """A child that cannot be started is tried again, and the reason is told."""
    parent.child._words = ("/no/such/program",)
    parent.child.require()
    parent.run_until(lambda: parent.ends, "the failure is told")
    assert "No such file" in parent.ends[0]
    assert parent.child.deadline is not None


def test_a_machine_without_descriptors_is_told(parent: Parent):
    """The loop goes on, and a child is started once there are some again."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    parent.child.require()
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        parent.child.tick(0.0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert "Too many open files" in parent.ends[0]
    parent.run_until(lambda: parent.lines, "the greeting")
