"""Delivery of found servers to the pools: written to files, and applied by the program `reload`."""

from appliance.discovery.reports import DiscoveryReports
from appliance.model.paths import Paths
from appliance.model.snapshot.found_servers import FoundServers
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.files import found_files
from appliance.wire.lines.control import Question

_PATIENCE = 180.0  # seconds for an answer: another reload may be under way
_FAILURES = 3  # consecutive failures until they are reported


class Delivery:
    """`not_kept` are files that cannot be written, with the reason; `trouble` is why pools lack servers."""

    def __init__(self, paths: Paths, reports: DiscoveryReports) -> None:
        self.not_kept: dict[str, str] = {}
        self.trouble: str | None = None
        self._failures = 0
        self._paths = paths
        self._reports = reports
        self._kept: FoundServers | None = None

    def deliver(self) -> bool:
        """Make `reload` apply the written files; return whether it did. Waits for the answer."""
        try:
            answer = ask(self._paths.control("reload"), Question(command="discovered"), timeout=_PATIENCE)
        except ControlUnavailable as error:
            return self._failed(str(error))
        if not answer.ok:
            return self._failed("; ".join(each.message for each in answer.errors))
        self.done()
        return True

    def done(self) -> None:
        """Forget the trouble: the pools have the found servers."""
        self._failures, self.trouble = 0, None

    def keep(self, found: FoundServers) -> None:
        """Write both files if changed: for `reload`, and for a start without the API."""
        if found == self._kept and not self.not_kept:
            return
        failed: dict[str, str] = {}
        for write in (found_files.write, found_files.keep):
            try:
                write(self._paths, found)
            except OSError as error:
                failed[str(error.filename)] = error.strerror or str(error)
        for path, reason in failed.items():
            if self.not_kept.get(path) != reason:
                self._reports.not_written(path, reason)
        self._kept, self.not_kept = found, failed

    def _failed(self, reason: str) -> bool:
        self._failures += 1
        # At a start, and while it restarts, `reload` is briefly unavailable.
        if self._failures >= _FAILURES and self.trouble != reason:
            self._reports.not_taken(reason)
            self.trouble = reason
        return False
