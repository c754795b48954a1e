"""What follows a refused reload: it is logged, reported, and retried if the files are not to blame."""

import time

from structlog.typing import FilteringBoundLogger

from appliance.core.rollout.reload_retries import ReloadRetries
from appliance.model.operator_events import Tell
from appliance.reload import reload_events
from appliance.reload.refusals import FilesRefused, ReloadRefused
from appliance.wire.lines.control import Answer, as_values, bad


class ReloadRefusal:
    """The refusal of the last reload of the operator's files, and its remaining retries."""

    def __init__(self, log: FilteringBoundLogger, tell: Tell) -> None:
        self._log = log
        self._tell = tell
        self._retries = ReloadRetries()

    @property
    def again_in(self) -> float | None:
        """Seconds until the same files are retried, None if they are not."""
        due_at = self._retries.due_at
        return None if due_at is None else round(max(0.0, due_at - time.monotonic()), 1)

    @property
    def is_due(self) -> bool:
        """Whether a retry is due now."""
        return self._retries.is_due(time.monotonic())

    def forget(self) -> None:
        """Forget the refusal: there is a new request, or nothing is refused now."""
        self._retries.forget()

    def begin(self) -> None:
        """Note that a retry begins, so that one which ends in a bug is not repeated for ever."""
        self._retries.begin()

    def answer(self, refusal: ReloadRefused) -> Answer:
        """Return the answer to a refused reload, with the seconds until it is retried."""
        if isinstance(refusal, FilesRefused):
            self._retries.forget()
            return self.final(refusal)
        tries, errors = self._retries.tries, as_values(refusal.problems)
        again_in = self._retries.refused(time.monotonic(), lost=refusal.lost)
        # Reported once, and once more when given up: operators do not want a report of each retry.
        if again_in is None:
            self._log.warning("reload-given-up", errors=errors, tries=tries)
            self._tell(reload_events.refused(refusal.problems))
            return bad(*refusal.problems)
        if tries:
            self._log.info("reload-refused-again", errors=errors, tries=tries, again_in=again_in)
        else:
            self._log.warning("reload-refused", errors=errors, again_in=again_in)
            self._tell(reload_events.refused_for_now(refusal.problems))
        return Answer(ok=False, errors=refusal.problems, values={"again_in": again_in})

    def final(self, refusal: ReloadRefused) -> Answer:
        """Return the answer to a refused reload that is not retried from here."""
        self._log.warning("reload-refused", errors=as_values(refusal.problems))
        self._tell(reload_events.refused(refusal.problems))
        return bad(*refusal.problems)
