"""Locks by which a program finds out that it is the only one of its name in a runtime directory."""

import fcntl
import os
from pathlib import Path

from appliance.net.files import state_files


def hold(path: Path) -> int | None:
    """Return a descriptor that holds a lock until it is closed, None where another has it; raises OSError.

    Something else than a file in its place is set aside: it locks nobody out.
    """
    state_files.clear_way(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor
