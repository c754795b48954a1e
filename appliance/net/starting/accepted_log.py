"""Logging as configured by the accepted snapshot.

For the start of every program, and for those that `reload` does not notify of a new configuration:
supervisord and the tracker check on their own.
"""

from typing import Final

from appliance.model.paths import Paths
from appliance.net.files import snapshots
from appliance.net.logging import log

PAUSE: Final = 1.0
"""Seconds between two checks for a newly accepted configuration."""


class AcceptedLog:
    """The logging of one program; `logger` is set up at once, and again by `follow`."""

    def __init__(self, program: str, paths: Paths) -> None:
        self._program, self._path = program, paths.accepted
        self._seen = self._stamp()
        self.logger = self._configured()

    def follow(self) -> None:
        """Use the log settings of a configuration accepted since, if there is one.

        Existing loggers follow, too: structlog has one configuration per process.
        """
        stamp = self._stamp()
        if stamp not in (None, self._seen):
            self._seen = stamp
            self.logger = self._configured()

    def _configured(self) -> log.Logger:
        settings = snapshots.log_settings(self._path)  # damage is logged where the file is read to be applied
        if settings is None:
            return log.configure(self._program, level="info", form="json")
        return log.obey(self._program, settings)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
