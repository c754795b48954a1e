"""A child of a real-time program becomes an ordinary one, and so do its children."""

import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.programs, pytest.mark.needs(root=True)]

PROGRAM = """
import os, pathlib, subprocess
from appliance.net.process.ordinary_scheduling import be_ordinary
be_ordinary()
print(os.sched_getscheduler(0), pathlib.Path("/proc/self/oom_score_adj").read_text().strip())
print(subprocess.run(["cat", "/proc/self/oom_score_adj"], capture_output=True, text=True).stdout.strip())
"""


def outcome(prepare: str) -> list[str]:
    """Return scheduler, score and a child's score after a process with these properties became ordinary."""
    program = f"{prepare}\n{PROGRAM}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    if "Operation not permitted" in done.stderr or "Permission denied" in done.stderr:
        pytest.skip("this machine permits no real-time scheduling or no low score")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_real_time_scheduling_is_given_up():
    """It would take the processor from everybody else."""
    prepare = "import os; os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))"
    assert outcome(prepare)[0] == str(os.SCHED_OTHER)


def test_a_protected_score_is_given_up():
    """When memory is short, a check goes before what it serves."""
    prepare = "import pathlib; pathlib.Path('/proc/self/oom_score_adj').write_text('-900')"
    assert outcome(prepare)[1:] == ["0", "0"]


def test_a_high_score_is_kept():
    """Whoever runs the appliance has said that it may go early."""
    prepare = "import pathlib; pathlib.Path('/proc/self/oom_score_adj').write_text('300')"
    assert outcome(prepare)[1:] == ["300", "300"]
