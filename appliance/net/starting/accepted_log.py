"""Logging as the accepted configuration wants it.

For the start of every program, and for those that `reload` does not tell of a new configuration: supervisord
and the tracker look for themselves.
"""

from typing import Final

from appliance.model.paths import Paths
from appliance.net.files import snapshots
from appliance.net.logging import log

PAUSE: Final = 1.0
"""Seconds between two looks whether another configuration was accepted."""


class AcceptedLog:
    """The logging of one program; `logger` is set up at once, and anew by `follow`."""

    def __init__(self, program: str, paths: Paths) -> None:
        self._program, self._path = program, paths.accepted
        self._seen = self._stamp()
        self.logger = self._configured()

    def follow(self) -> None:
        """Log as the configuration wants that was accepted since, if there is one.

        Loggers that were made before follow too: structlog's configuration is one for the whole process.
        """
        stamp = self._stamp()
        if stamp not in (None, self._seen):
            self._seen = stamp
            self.logger = self._configured()

    def _configured(self) -> log.Logger:
        accepted = snapshots.readable(
            self._path
        )  # that it is damaged is logged where it is read to be obeyed
        if accepted is None:
            return log.configure(self._program, level="info", form="json")
        return log.obey(self._program, accepted.log)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
