"""Files with a token, a URL or certificates, each read in its own thread: their disks may hang.

Nothing else waits for these threads: in gevent's pool a few hanging reads would stop reloads. While a read
hangs, the same file is not read again.
"""

import errno
from pathlib import Path
from typing import Final

from gevent.event import AsyncResult
from gevent.threadpool import ThreadPool

from appliance.net.files import state_files
from appliance.net.files.state_files import FileUnusable

_LONGEST: Final = 4096
_LONGEST_BUNDLE: Final = 1 << 20
_IDLE: Final = 10.0  # seconds after which an idle thread ends


class SecretUnusable(Exception):  # noqa: N818  # a state of the file, not a mistake of ours
    """A file has no secret; gives the reason, with its path."""


class SecretFiles:
    """The files with secrets of all targets."""

    def __init__(self) -> None:
        self._pools: dict[str, ThreadPool] = {}
        self._reads: dict[str, AsyncResult] = {}

    def read(self, path: str) -> str:
        """Return the secret in a file; raises SecretUnusable, OSError if no thread can start."""
        text = self._content(path, _LONGEST).decode("ascii", errors="replace").strip()
        if not text or not text.isascii() or not text.isprintable():
            raise SecretUnusable(f"{path}: is missing, empty, or not one line of ASCII")
        return text

    def certificates(self, path: str) -> str:
        """Return certificates in PEM, without the text that is not ASCII: comments. Raises as `read` does."""
        text = self._content(path, _LONGEST_BUNDLE).decode("ascii", errors="ignore")
        if not text:
            raise SecretUnusable(f"{path}: is missing or empty")
        return text

    def _content(self, path: str, limit: int) -> bytes:
        """Return the content of a file, nothing if there is none."""
        if path not in self._reads:
            read = self._begin(path, limit)
            self._reads[path] = read
            read.rawlink(lambda _: self._reads.pop(path))
        data: bytes | str | None = self._reads[path].get()
        if isinstance(data, str):
            raise SecretUnusable(f"{path}: {data}")
        return data or b""

    def _begin(self, path: str, limit: int) -> AsyncResult:
        if path not in self._pools:
            self._pools[path] = ThreadPool(1, idle_task_timeout=_IDLE)
        try:
            return self._pools[path].spawn(_read, path, limit)
        except RuntimeError as error:  # the limit of processes is reached
            del self._pools[path]
            raise OSError(errno.EAGAIN, str(error)) from error


def _read(path: str, limit: int) -> bytes | str | None:
    """Return the content of a file, or why it cannot be read: gevent prints what a thread raises."""
    try:
        return state_files.read(Path(path), limit=limit)
    except FileUnusable as error:
        return str(error)
