"""Unix sockets to listen on, each in the place of one left by a dead program."""

import contextlib
import os
import socket
from pathlib import Path
from typing import Final

from appliance.net.files import readers, state_files

_BACKLOG: Final = 128


class SocketName:
    """The name of a socket that listens now. A successor may take the name while we still listen."""

    def __init__(self, path: Path) -> None:
        self._path = path
        # Compared by inode: as long as our socket listens, the kernel gives its number to no other file.
        self._inode = path.stat().st_ino

    @property
    def is_missing(self) -> bool:
        """Return whether nobody can find us any more. A name that is there may be a successor's."""
        return not self._path.exists()

    def remove(self) -> None:
        """Remove the name unless it is a successor's; to be called before the socket is closed."""
        with contextlib.suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()


def listen_unix(path: Path, *, mode: int = 0o600) -> socket.socket:
    """Return a listening unix socket at `path`; raises OSError with the path in it.

    It listens under another name first, and gets its own by rename(2): whoever finds the name can connect,
    and nobody can before the mode is set. bind(2) itself would fail for a name that exists.
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
        error.filename, error.filename2 = str(path), None  # what bind raises names none
        raise
    return listener


def listen_for_readers(path: Path) -> socket.socket:
    """Return a listening unix socket that the members of `group:` can connect to, where there is a group."""
    return listen_unix(path, mode=readers.socket_mode(path.parent))
