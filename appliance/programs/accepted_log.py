"""Logging as the accepted configuration has it, for a start, and for programs that no reload tells."""

from typing import Final

from appliance.model.paths import Paths
from appliance.net.files import snapshots
from appliance.net.logging import log

PAUSE: Final = 1.0
"""Seconds between two looks at what is accepted."""


class AcceptedLog:
    """One program's logging; follow it now and then."""

    def __init__(self, program: str, paths: Paths) -> None:
        self._program, self._path = program, paths.accepted
        self._seen = self._stamp()
        self.logger = self._configured()

    def follow(self) -> None:
        """Log as the configuration says that was accepted since; loggers that are there do, too."""
        stamp = self._stamp()
        if stamp not in (None, self._seen):
            self._seen = stamp
            self.logger = self._configured()

    def _configured(self) -> log.Logger:
        accepted = snapshots.readable(self._path)  # damage is said when it is read to be obeyed
        if accepted is None:
            return log.configure(self._program, level="info", form="json")
        return log.obey(self._program, accepted.log)

    def _stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns
