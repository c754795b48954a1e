"""Listening unix sockets that replace those left by dead programs."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Final

from appliance.net.files import readers, state_files

_BACKLOG: Final = 128


class SocketName:
    """The name of a listening socket. A successor may take the name while we still listen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Compared by inode: as long as our socket listens, no other file gets its number.
        self._inode = path.stat().st_ino

    @property
    def is_missing(self) -> bool:
        """Return whether the name is gone. An existing name may be a successor's."""
        return not self._path.exists()

    def remove(self) -> None:
        """Remove the name unless it is a successor's; call it before closing the socket."""
        with contextlib.suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()


def listen_unix(path: Path, *, mode: int = 0o600) -> socket.socket:
    """Return a listening unix socket at `path`; raises OSError with the path in it.

    It listens under another name first, and gets its own by rename(2): under that name it always accepts, and
    not before the mode is set. bind(2) itself would fail for an existing name.
    """
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
        error.filename, error.filename2 = str(path), None  # an error of bind names no path
        raise
    return listener


def listen_for_readers(path: Path) -> socket.socket:
    """Return a listening unix socket that members of `group:` can connect to, if there is a group."""
    return listen_unix(path, mode=readers.socket_mode(path.parent))
