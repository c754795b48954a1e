"""The configuration file of this node: replaced in one step, and put back."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from appliance.net.files import config_file, state_files
from appliance.net.files.atomic_write import write_atomically

FORMER: Final = ".former"
"""What the name of the file that was replaced last ends with."""

_MODE: Final = 0o640


class FileBusy(Exception):  # noqa: N818  # said to the one who comes second
    """Another push is under way here."""


class ReplacedFile:
    """The file at a path, or where a link there leads; the one before stays beside it."""

    def __init__(self, path: Path) -> None:
        self._path = path.resolve()
        self._former = state_files.read(self._path, limit=config_file.LIMIT)
        self._mode, self._group = _MODE, -1
        with contextlib.suppress(FileNotFoundError):
            found = self._path.stat()
            self._mode, self._group = found.st_mode & 0o777, found.st_gid

    def objection(self) -> str | None:
        """Return why it cannot be replaced, None if it can."""
        folder = self._path.parent
        if not folder.is_dir():
            return f"{folder} is no directory"
        return None if os.access(folder, os.W_OK | os.X_OK) else f"{folder} cannot be written"

    def replace(self, content: bytes) -> None:
        """Give it another content; raises OSError, and then it has its own."""
        if self._former is not None and self._former != content:
            self._write(self._path.with_name(self._path.name + FORMER), self._former)
        self._write(self._path, content)

    def put_back(self) -> None:
        """Give it the content that it had first; raises OSError."""
        if self._former is None:
            self._path.unlink(missing_ok=True)
        else:
            self._write(self._path, self._former)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Let no second one replace files in this directory meanwhile; raises FileBusy, OSError."""
        descriptor = os.open(self._path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError as error:
            raise FileBusy("another push is under way on this node") from error
        finally:
            os.close(descriptor)

    def _write(self, path: Path, content: bytes) -> None:
        write_atomically(path, content, mode=self._mode, group=self._group)
