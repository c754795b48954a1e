"""What operators want of servers, drain and maint, kept beyond the life of the program.

A server in maint must not get traffic because a program was restarted, or because a file was damaged: then
the health board says what was wanted last.
"""

from collections.abc import Mapping
from pathlib import Path

from appliance.core.checks.checked_servers import Key
from appliance.health.reports import HealthReports
from appliance.model.server_states import AdminState
from appliance.net.files import operator_states, state_files
from appliance.net.files.operator_states import OperatorStatesError
from appliance.wire.boards.health_board import ServerHealthRecord


class KeptOperatorStates:
    """The file at `path`. Where it cannot be written the states act all the same, and that is reported."""

    def __init__(self, path: Path, reports: HealthReports) -> None:
        self._path = path
        self._reports = reports

    def load(self, records: tuple[ServerHealthRecord, ...]) -> dict[Key, AdminState]:
        """Return the states in the file; where it cannot be read, those in the board's `records`."""
        try:
            return operator_states.load(self._path)
        except OperatorStatesError as error:
            self._reports.log.error(  # noqa: TRY400  # a damaged file is no bug: there is no traceback to see
                "operator-states-unreadable",
                reason=str(error),
                aside=str(state_files.set_aside(self._path)),
            )
            known: dict[Key, AdminState] = {
                (each.pool, each.server): each.admin for each in records if each.admin is not AdminState.READY
            }
            self.keep(known)
            return known

    def keep(self, states: Mapping[Key, AdminState]) -> None:
        """Write the states of all servers."""
        path = str(self._path)
        try:
            operator_states.save(self._path, states)
            self._reports.not_kept.pop(path, None)
        except OperatorStatesError as error:
            self._reports.not_kept[path] = str(error).removeprefix(f"{path}: ")
            self._reports.log.error("operator-states-not-kept", reason=str(error))  # noqa: TRY400  # no bug

    def warning(self) -> dict[str, str]:
        """Return the warning for the operator, as fields of an answer; none where the file was written."""
        reason = self._reports.not_kept.get(str(self._path))
        return {"not_kept": f"{self._path}: {reason}"} if reason else {}
