"""A network namespace in which the kernel may give two ports to connections, and no more."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from support.processes.waiting import patient

_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
_TESTS: Final = Path(__file__).parents[2]


def run_alone(program: str) -> None:
    """Run a file as a program in a namespace of its own; AssertionError where it fails."""
    ran = subprocess.run(
        ["unshare", "--net", "sh", "-c", f"ip link set lo up && exec {sys.executable} {program}"],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(_TESTS)},
        timeout=patient(60),
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr


def limit_to_two() -> None:
    """Leave two ports, in the namespace of this process."""
    _RANGE.write_text("50000 50001")
