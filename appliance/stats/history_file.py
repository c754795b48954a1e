"""The file of the last hours: created at its full size, then one slot of it is written each minute.

So a disk that fills up later does no harm. A damaged file, or one of another version, is set aside. If it
cannot be written, that is reported and tried again each minute, and the program runs without it.
"""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from structlog.typing import FilteringBoundLogger

from appliance.net.files import state_files
from appliance.net.files.atomic_write import remove_scratch_files, write_atomically
from appliance.net.files.state_files import FileUnusable
from appliance.wire import history_ring
from appliance.wire.history_ring import SIZE, HistoryError, Minute


class HistoryFile:
    """The file at a path; `failure` is why it cannot be written, None while it can."""

    def __init__(self, path: Path, log: FilteringBoundLogger) -> None:
        self.path = path
        self._log = log
        self.failure: str | None = None

    def load(self) -> tuple[Minute, ...]:
        """Return the minutes kept; if the file is missing or unreadable, create one without any."""
        try:
            data = state_files.read(self.path, limit=SIZE)
            if data is not None:
                return history_ring.decode(data)
        except (FileUnusable, HistoryError) as error:
            aside = state_files.set_aside(self.path)
            self._log.warning("history-damaged", path=str(self.path), reason=str(error), aside=str(aside))
        self._kept(self._make)
        return ()

    def write(self, minute: Minute) -> None:
        """Write a minute over the oldest one."""
        self._kept(partial(self._write, minute))

    def _kept(self, action: Callable[[], None]) -> None:
        """Do something with the file, and note whether it can be written."""
        try:
            action()
        except OSError as error:
            reason = error.strerror or str(error)
            if self.failure != reason:
                self._log.warning("state-not-kept", reason=f"{self.path}: {reason}")
            self.failure = reason
        else:
            self.failure = None

    def _make(self) -> None:
        remove_scratch_files(self.path)
        write_atomically(self.path, history_ring.empty())

    def _write(self, minute: Minute) -> None:
        try:
            descriptor = self._open()
        except FileNotFoundError:
            self._make()
            descriptor = self._open()
        try:
            os.pwrite(descriptor, history_ring.encode(minute), history_ring.place(minute.number))
        finally:
            os.close(descriptor)

    def _open(self) -> int:
        # Whatever has been put at the path since the last minute: never wait, or follow a link elsewhere.
        return os.open(self.path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
