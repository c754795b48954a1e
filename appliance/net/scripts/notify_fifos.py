"""FIFOs that get a line per transition (keepalived's `notify_fifo`): created if missing, kept open.

A FIFO is also open for reading, so that its lines are kept for a later reader. A full one loses new lines: we
never wait for a reader.
"""

import contextlib
import os
import stat
from collections.abc import Callable
from typing import Final

from appliance.wire.lines.tracker_lines import CommandEnded, WriteLine

_FLAGS: Final = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o600


class NotifyFifos:
    """The FIFOs by path; `report` is called with failed writes."""

    def __init__(self, report: Callable[[CommandEnded], None]) -> None:
        self._report = report
        self._open: dict[str, int] = {}

    def write(self, order: WriteLine) -> None:
        """Write a line into its FIFO."""
        try:
            os.write(self._descriptor(order.path), f"{order.line}\n".encode())
        except BlockingIOError:
            self._failed(order, "it has no reader, and is full")
        except OSError as error:
            self._failed(order, error.strerror or str(error))

    def close(self) -> None:
        """Close the FIFOs; unread lines are lost."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def _failed(self, order: WriteLine, why: str) -> None:
        self._report(CommandEnded(router=order.router, words=(order.path,), outcome=f"not written: {why}"))

    def _descriptor(self, path: str) -> int:
        """Return the present FIFO at a path; raises OSError."""
        known = self._open.get(path)
        if known is not None:
            if _is_at(known, path):
                return known
            os.close(self._open.pop(path))
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, _MODE)
        opened = os.open(path, _FLAGS)
        if not stat.S_ISFIFO(os.fstat(opened).st_mode):
            os.close(opened)
            raise OSError("it is no FIFO")
        self._open[path] = opened
        return opened


def _is_at(descriptor: int, path: str) -> bool:
    """Return whether a descriptor is of the file at a path, which may have been recreated."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False
