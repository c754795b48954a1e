"""Unix sockets to listen on, each in the place of one left by a dead program."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Final

from appliance.net.files import state_files

_BACKLOG: Final = 128


def listen_unix(path: Path, *, mode: int = 0o600) -> socket.socket:
    """Return a listening unix socket at `path`; its name is there once it listens."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        if path.is_dir():
            state_files.set_aside(path)
        scratch.unlink(missing_ok=True)
        listener.bind(str(scratch))
        scratch.chmod(mode)
        listener.listen(_BACKLOG)
        scratch.replace(path)
    except OSError as error:
        listener.close()
        with contextlib.suppress(OSError):
            scratch.unlink()
        error.filename, error.filename2 = str(path), None  # what bind raises names none
        raise
    return listener
