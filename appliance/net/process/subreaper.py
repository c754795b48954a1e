"""Processes whose parent died: they become our children, and are terminated with this process."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final

from appliance.net.process.prctl import ProcessOption, prctl
from appliance.net.process.process_stat import process_stat

_POLL: Final = 0.01


def become_subreaper() -> None:
    """Make orphaned descendants our children rather than those of process 1.

    Otherwise no process could end the programs of a killed supervisord (PR_SET_CHILD_SUBREAPER of prctl(2)).
    """
    prctl(ProcessOption.SET_CHILD_SUBREAPER, 1)


def end_children(*, patience: float, last_patience: float) -> bool:
    """Terminate every child, and any new ones, with TERM and after `patience` seconds with KILL.

    Return whether all exited within `last_patience` seconds of the KILL.
    """
    return _end(signal.SIGTERM, patience) or _end(signal.SIGKILL, last_patience)


def parent(pid: int) -> int:
    """Return the parent of a process, 0 if it is gone."""
    try:
        return process_stat(pid).parent
    except OSError:
        return 0


def _end(number: signal.Signals, patience: float) -> bool:
    deadline = time.monotonic() + patience
    signalled: set[int] = set()
    while not _all_reaped():
        for pid in children() - signalled:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
            signalled.add(pid)
        if time.monotonic() > deadline:
            return False
        time.sleep(_POLL)
    return True


def children() -> set[int]:
    """Return the process ids of our children, including adopted orphans."""
    everybody = (int(each.name) for each in Path("/proc").glob("[0-9]*"))
    return {pid for pid in everybody if parent(pid) == os.getpid()}


def _all_reaped() -> bool:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
        return False
    return True
