"""The files of the accepted configuration: lost or damaged ones are written again."""

from collections.abc import Callable
from functools import partial

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.files import snapshots, state_files
from appliance.wire.lines.control import AnswerProblem


class OnceLog:
    """Logs that a program or a file differs from the accepted configuration: once for each reason."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log
        self._logged: set[tuple[str, str]] = set()

    def failed(self, name: str, message: str) -> None:
        """Log a failure, unless it was logged since `recovered` was last called for the name."""
        if (name, message) not in self._logged:
            self._logged.add((name, message))
            self._log.error("converge-failed", name=name, error=message)

    def recovered(self, name: str) -> None:
        """Forget what was logged for a name: it works again."""
        self._logged = {each for each in self._logged if each[0] != name}


class AcceptedFiles:
    """The accepted snapshot, as programs read it when they start, and its last-good copy.

    `not_kept` maps files that a later start may want and that cannot be written to the reason.
    """

    def __init__(self, paths: Paths, log: FilteringBoundLogger, once: OnceLog) -> None:
        self.not_kept: dict[str, str] = {}
        self._paths = paths
        self._log = log
        self._once = once

    def heal(self, accepted: Snapshot) -> list[AnswerProblem]:
        """Write lost or damaged files again; return those that fail. A damaged file is renamed."""
        for path, reason in list(snapshots.damaged(self._paths)):
            aside = state_files.set_aside(path)
            self._log.error("state-damaged", reason=reason, aside=str(aside) if aside else None)
        heals = (snapshots.heal,) if accepted.awaited else (snapshots.heal, snapshots.heal_last_good)
        failed = [error for heal in heals if (error := _error(partial(heal, self._paths, accepted)))]
        self.not_kept = {str(each.filename): each.strerror or str(each) for each in failed}
        for name, why in self.not_kept.items():
            self._once.failed("state", f"{name}: {why}")
        if not failed:
            self._once.recovered("state")
        return [AnswerProblem(message=f"{path}: {why}") for path, why in self.not_kept.items()]


def _error(step: Callable[[], None]) -> OSError | None:
    try:
        step()
    except OSError as error:
        return error
    return None
