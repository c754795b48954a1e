"""What the kernel does for a process on request."""

import subprocess
import sys

import pytest
from support.processes.processes import alive
from support.processes.waiting import wait_until

pytestmark = pytest.mark.programs

_DIES_WITH_PARENT = """
import os, signal, sys, time
from appliance.net.process.prctl import die_with
parent = os.getpid()
child = os.fork()
if child == 0:
    die_with(parent, signal.SIGKILL)
    print(os.getpid(), flush=True)
    time.sleep(600)
os.waitpid(child, 0)
"""

_OF_ANOTHER_PARENT = """
import signal
from appliance.net.process.prctl import die_with
try:
    die_with(1 << 30, signal.SIGTERM)
except ProcessLookupError:
    print("refused")
"""


def test_a_child_dies_with_its_parent():
    """The kernel kills the child when its parent is killed, which can tell nobody."""
    parent = subprocess.Popen([sys.executable, "-c", _DIES_WITH_PARENT], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    with parent.stdout as said:
        child = int(said.readline())
    parent.kill()
    parent.wait()
    wait_until(lambda: not alive(child), what="the child's end")


def test_a_parent_that_has_gone_is_noticed():
    """A child whose parent died before it asked does not go on as somebody else's."""
    ran = subprocess.run(
        [sys.executable, "-c", _OF_ANOTHER_PARENT], capture_output=True, text=True, check=True
    )
    assert ran.stdout == "refused\n"
