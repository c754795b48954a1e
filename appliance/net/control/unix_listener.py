"""Unix sockets to listen on, each in the place of one left by a dead program."""

import os
import socket
from pathlib import Path
from typing import Final

_BACKLOG: Final = 128


def listen_unix(path: Path) -> socket.socket:
    """Return a listening unix socket of mode 0600 at `path`; its name is there once it listens."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.unlink(missing_ok=True)
        listener.bind(str(scratch))
        scratch.chmod(0o600)
        listener.listen(_BACKLOG)
        scratch.replace(path)
    except OSError:
        listener.close()
        scratch.unlink(missing_ok=True)
        raise
    return listener
