"""Real-time scheduling and locked memory, with the rights and without, in a process of its own."""

import json
import subprocess
import sys
from typing import Any

import pytest

from appliance.model.capability import Capability
from appliance.net.privileges import process_capabilities
from appliance.net.process import realtime

pytestmark = [pytest.mark.kernel, pytest.mark.needs("setpriv", root=True)]

_PROGRAM = """
import gc, json, os, pathlib, subprocess, sys
from dataclasses import asdict
from appliance.net.process import realtime
applied = realtime.apply()
status = pathlib.Path("/proc/self/status").read_text()
child = "import os, pathlib; from appliance.net.process.ordinary_scheduling import be_ordinary; " \\
    "be_ordinary(); " \\
    "print(os.sched_getscheduler(0), pathlib.Path('/proc/self/oom_score_adj').read_text().strip())"
print(json.dumps({
    **asdict(applied),
    "policy": os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK,
    "locked": next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmLck")),
    "score": int(pathlib.Path("/proc/self/oom_score_adj").read_text()),
    "frozen": gc.get_freeze_count(),
    "child": subprocess.run([sys.executable, "-c", child], capture_output=True, text=True).stdout.split(),
}))
"""


def _applied(*rights: str) -> dict[str, Any]:
    ran = subprocess.run(
        [*rights, sys.executable, "-c", _PROGRAM], check=True, capture_output=True, text=True, timeout=30
    )
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def _without(*names: str) -> list[str]:
    return ["setpriv", f"--bounding-set={','.join(f'-{name}' for name in names)}"]


_MAY_RAISE_LIMITS = process_capabilities.has(Capability.CAP_SYS_RESOURCE)


@pytest.mark.promise("kernel", "real-time scheduling and locked memory")
def test_everything():
    """With root's rights it is real-time, locked and, where root may, spared; its child is ordinary."""
    found = _applied()
    assert (found["scheduler"], found["memory"], found["oom"]) == (True, True, _MAY_RAISE_LIMITS)
    assert len(found["refused"]) == (not _MAY_RAISE_LIMITS)
    assert found["policy"] == 2  # SCHED_RR
    assert found["locked"] > 0
    assert found["score"] == (realtime.OOM_SCORE if _MAY_RAISE_LIMITS else 0)
    assert found["frozen"] > 0
    assert found["child"] == ["0", "0"]


def test_nothing():
    """Without any of the rights nothing is changed, and each refusal has its reason."""
    found = _applied("prlimit", "--memlock=65536", *_without("sys_nice", "ipc_lock", "sys_resource"))
    assert (found["scheduler"], found["memory"], found["oom"]) == (False, False, False)
    assert found["policy"] == 0
    assert found["locked"] == 0
    assert found["refused"] == [
        "real-time scheduling (CAP_SYS_NICE): Operation not permitted",
        "locked memory (CAP_IPC_LOCK): not permitted beyond the limit of RLIMIT_MEMLOCK",
        "sparing from the OOM killer (CAP_SYS_RESOURCE): Permission denied",
    ]


@pytest.mark.skipif(not _MAY_RAISE_LIMITS, reason="needs CAP_SYS_RESOURCE to raise the limit")
def test_memory_without_a_limit():
    """Where the limit permits it no capability is needed."""
    assert _applied("prlimit", "--memlock=unlimited", *_without("ipc_lock"))["memory"]


_SPINNING = """
import os, resource, threading, time
from appliance.net.process import realtime
from appliance.net.process.ordinary_scheduling import be_ordinary
realtime.REST_WITHIN = 0.2
before = realtime.apply()
until = time.monotonic() + 20
while os.sched_getscheduler(0) & os.SCHED_RR and time.monotonic() < until:
    pass
print(before.scheduler, os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, threading.stack_size() < 8 << 20)
told = []
punctuality = realtime.Punctuality(before, told.append)
punctuality.lost(100.0)
print(told[-1].scheduler, told[-1].refused[-1], punctuality.deadline)
punctuality.tick(110.0)
print(told[-1] == before, os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK, punctuality.deadline)
be_ordinary()
print(*resource.getrlimit(resource.RLIMIT_RTTIME))
"""


def test_one_that_spins_is_ordinary_again():
    """Nothing keeps a processor from all others; later it is tried again. A child has no such limit."""
    ran = subprocess.run(
        [sys.executable, "-c", _SPINNING], check=True, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout.splitlines() == [
        "True 0 True",
        "False real-time scheduling: given up for now, 0.2 s without a rest 110.0",
        "True 2 None",
        "-1 -1",
    ]


_CLOSING = """
import os, threading
from appliance.net.loop.closer import Closer
from appliance.net.process import realtime
closer = Closer()
realtime.apply()
closer.schedule_as_caller()
closed = threading.Event()
class Socket:
    def close(self):
        print(os.sched_getscheduler(0) & ~os.SCHED_RESET_ON_FORK)
        closed.set()
closer.close(Socket())
closed.wait(20)
"""


def test_the_thread_that_closes_is_scheduled_as_the_loop_is():
    """A thread of the loop's process that waits for a processor may hold the interpreter's lock."""
    ran = subprocess.run(
        [sys.executable, "-c", _CLOSING], check=True, capture_output=True, text=True, timeout=60
    )
    assert ran.stdout == "2\n"
