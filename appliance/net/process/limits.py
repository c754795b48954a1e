"""This process's limits of open files and processors."""

import math
import os
import resource
from pathlib import Path
from typing import Final

_CGROUP_CPU: Final = Path("/sys/fs/cgroup/cpu.max")


def raise_open_files() -> int:
    """Raise the soft limit of open files (RLIMIT_NOFILE) to the hard one, for children too, and return it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def most_open_files() -> int:
    """Return the hard limit of open files, which applies after `raise_open_files`."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[1]


def open_files() -> int:
    """Return how many open files this process, and its children, may have."""
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def processors() -> int:
    """Return how many processors we may keep busy: those of our affinity, at most the container's quota."""
    return max(1, min(len(os.sched_getaffinity(0)), _quota()))


def _quota() -> int:
    # Documentation/admin-guide/cgroup-v2.rst, cpu.max: "$MAX $PERIOD", "max" for no limit.
    try:
        allowed, period = _CGROUP_CPU.read_text().split()
    except (OSError, ValueError):
        return os.cpu_count() or 1
    if allowed == "max":
        return os.cpu_count() or 1
    return math.ceil(int(allowed) / int(period))
