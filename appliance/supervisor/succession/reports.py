"""Reports of take-overs to operators: a line in the log, an event, and the file that `status` shows."""

import os
import time
from collections.abc import Sequence

from structlog.typing import FilteringBoundLogger

from appliance import __version__
from appliance.model.operator_events import EventKind, OperatorEvent, Publish
from appliance.model.paths import Paths
from appliance.model.take_overs import FailedTakeOver, TakenOver, TakeOvers
from appliance.net.files import take_over_note
from appliance.supervisor.succession.take_over_state import TakeOverState


class SuccessionReports:
    """Reports the take-overs of one supervisord; the other one is in its `state`."""

    def __init__(self, paths: Paths, log: FilteringBoundLogger, publish: Publish) -> None:
        self.state = TakeOverState()
        self._paths, self._log, self._publish = paths, log, publish

    def standing_by(self) -> None:
        """Report that the other one takes over now."""
        self._log.warning("standing-by", version=self.state.other.version, pid=self.state.other_pid)

    def relieved(self) -> None:
        """Report that the other one is in charge."""
        self._log.warning("relieved", version=self.state.other.version, pid=self.state.other_pid)

    def in_charge(self) -> None:
        """Report that we are in charge."""
        version, pid = self.state.other.version, self.state.other_pid
        done = TakenOver(when=time.time(), version=version, pid=pid, by=__version__)
        self._note(take_over_note.read(self._paths).with_done(done))
        self._log.warning("appliance-taken-over", version=version, pid=pid)
        self._event(EventKind.TAKEN_OVER, f"from version {version}, process {pid}")

    def resumed(self, reason: str) -> None:
        """Report that the other one could not take over, and why."""
        version, pid = self.state.other.version, self.state.other_pid
        self._note_failed(version=version, pid=pid, reason=reason)
        self._log.error("take-over-failed", version=version, pid=pid, reason=reason)
        self._event(EventKind.TAKE_OVER_FAILED, f"version {version}, process {pid}: {reason}")

    def cannot_listen(self, reason: str) -> None:
        """Log that no other appliance can reach us."""
        self._log.warning("cannot-be-taken-over", reason=reason)

    def gave_way(self, reason: str) -> None:
        """Log that we could not take over, and why; the other one continues, and sends all other reports."""
        self._log.error("take-over-failed", version=__version__, pid=os.getpid(), reason=reason)

    def upgrading(self, command: Sequence[str], pid: int) -> None:
        """Report that we have started another release, which should take over."""
        self._log.warning("upgrading", command=" ".join(command), pid=pid)

    def not_upgraded(self, reason: str) -> None:
        """Report that a release that we started could not even ask to take over, and why."""
        self._note_failed(version="", pid=0, reason=reason)
        self._log.error("upgrade-failed", reason=reason)
        self._event(EventKind.TAKE_OVER_FAILED, reason)

    def _note_failed(self, *, version: str, pid: int, reason: str) -> None:
        failed = FailedTakeOver(when=time.time(), version=version, pid=pid, reason=reason)
        self._note(take_over_note.read(self._paths).with_failed(failed))

    def _note(self, note: TakeOvers) -> None:
        try:
            take_over_note.write(self._paths, note)
        except OSError as error:
            self._log.warning("take-over-not-noted", reason=error.strerror)

    def _event(self, kind: EventKind, detail: str) -> None:
        event = OperatorEvent(
            when=time.time(), kind=kind, subject="appliance", after=__version__, detail=detail
        )
        self._publish(event)
