"""What /proc says of processes."""

import os
import subprocess
import sys

import pytest

from appliance.net.process.process_stat import process_stat

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
