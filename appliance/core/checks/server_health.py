"""One server's health over time: from results of checks to verdict, weight and the next deadline.

`now` is any clock that only grows, in seconds. HAProxy's options `rise`, `fall`, `inter`, `fastinter`,
`downinter`, `init-state`, `slowstart` and `observe layer4` (configuration.txt 5.2) are in the other modules
of this folder, with one difference: a server whose `init` is `check` has no verdict until its first check has
ended, while HAProxy knows only up and down.

The operator's state is separate from the verdict, as in HAProxy's `set server state`: a server in `drain`
gets no new connections and is still checked; one in `maint` gets none and is not checked.
"""

from collections import Counter
from enum import StrEnum
from typing import Final

from appliance.core.checks.check_history import CheckHistory
from appliance.core.checks.check_outcome import UNCHECKED, CheckOutcome
from appliance.core.checks.check_schedule import CheckSchedule, HealthSettings
from appliance.core.checks.slow_start import STEPS, SlowStart
from appliance.core.checks.verdict_changes import Reachability, verdict_after
from appliance.model.check_results import CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState, state_of
from appliance.model.snapshot.pools import Check, CheckInit
from appliance.wire.boards.health_board import ServerHealthRecord

_PRESUMED: Final = {
    CheckInit.CHECK: HealthVerdict.UNKNOWN,
    CheckInit.UP: HealthVerdict.UP,
    CheckInit.DOWN: HealthVerdict.DOWN,
}


class HealthEvent(StrEnum):
    """What happened to a server, in the words of logs.

    UNREACHABLE and ANSWERS are changes of a server that is down already: whether it answers at all decides
    what happens to its sessions.
    """

    UP = "server-up"
    DOWN = "server-down"
    UNREACHABLE = "server-unreachable"
    ANSWERS = "server-answers-badly"
    READY = "server-ready"
    DRAIN = "server-drain"
    MAINT = "server-maint"


_ADMIN_EVENTS: Final = {
    AdminState.READY: HealthEvent.READY,
    AdminState.DRAIN: HealthEvent.DRAIN,
    AdminState.MAINT: HealthEvent.MAINT,
}


class ServerHealth:
    """The state of one server, and when something is due for it.

    `since` is when the verdict or the operator's state changed last. `streak` counts results equal to the
    last one, `failed` all failed checks; `history` is for monitoring only. `tally` counts the servers that
    share it by state: it is updated at every change, so that no one has to count.
    """

    __slots__ = (
        "_presumed",
        "_reachability",
        "_schedule",
        "_slow_start",
        "_was_away",
        "admin",
        "checked_at",
        "failed",
        "history",
        "last",
        "settings",
        "since",
        "streak",
        "tally",
        "verdict",
    )

    def __init__(
        self,
        settings: HealthSettings,
        *,
        now: float,
        window: float = 0.0,
        admin: AdminState = AdminState.READY,
        tally: Counter[ServerState] | None = None,
    ) -> None:
        """Start; the first check is due within `window` seconds, at the server's phase."""
        self.settings = settings
        self.admin = admin
        self.since = now
        self.last = UNCHECKED
        self.checked_at: float | None = None
        self.streak = 0
        self.failed = 0
        self.history = CheckHistory()
        self._presumed = settings.check is not None
        self._was_away = False
        self._slow_start = SlowStart()
        self._reachability = Reachability()
        self._schedule = CheckSchedule()
        self.verdict = self._presumed_verdict()
        self.tally: Counter[ServerState] = Counter() if tally is None else tally
        self.tally[self.state] += 1
        self._schedule_first(now, window)

    @property
    def weight(self) -> float:
        """Effective weight: the configured one, or the part of it that slow start gives now."""
        return self._slow_start.share_of(self.settings.weight)

    @property
    def state(self) -> ServerState:
        """The one word for the server that operators see."""
        return state_of(self.verdict, self.admin)

    @property
    def unreachable(self) -> bool:
        """Whether the server is down because nothing answers: no one ends its sessions."""
        return self.verdict is HealthVerdict.DOWN and self._reachability.unreachable

    @property
    def next_check(self) -> float | None:
        """When the next check is due; None if none is planned."""
        return self._schedule.due

    @property
    def deadline(self) -> float | None:
        """When the next check or step of slow start is due; None for never."""
        moments = [each for each in (self._schedule.due, self._slow_start.next_step) if each is not None]
        return min(moments, default=None)

    def count_in(self, tally: Counter[ServerState]) -> None:
        """Share a tally from now on, and leave the former one."""
        self.tally[self.state] -= 1
        self.tally = tally
        tally[self.state] += 1

    def tick(self, now: float) -> bool:
        """Take the steps of slow start that are due; True if the weight has changed."""
        return self._slow_start.advance(now, seconds=self.settings.slow_start)

    def check_started(self, now: float) -> None:
        """Store that a check begins."""
        self._schedule.check_started(now)

    def check_ended(self, outcome: CheckOutcome, *, started: float, now: float) -> HealthEvent | None:
        """Judge the server by a check that began at `started`; return what that changed, or None.

        If the operator has put the server into maint while the check ran, or a new configuration has removed
        the check, its outcome is ignored.
        """
        check = self.settings.check
        if check is None or self.admin is AdminState.MAINT:
            return None
        # Before the first check the streak is 0, so that it is 1 after it, whatever `last` is.
        self.streak = self.streak + 1 if outcome.passed is self.last.passed else 1
        self.failed += not outcome.passed
        self.history.check_ended(outcome, verdict=self.verdict)
        self.last = outcome
        self.checked_at = now
        was_unreachable = self.unreachable
        self._reachability.check_ended(outcome, needed=1 if self._presumed else check.fall)
        # A server that goes down reports only that; whether it answers is an event of its own while it is
        # down.
        event = self._judge(check, now) or self._reachability_event(before=was_unreachable)
        self._presumed = False
        self._schedule_next(check, started=started, now=now)
        return event

    def check_not_made(self, *, started: float, now: float) -> None:
        """Plan the next check if this one could not be made: that says nothing about the server."""
        if self.settings.check is not None and self.admin is not AdminState.MAINT:
            self._schedule_next(self.settings.check, started=started, now=now)

    def connect_failed(self, *, now: float) -> bool:
        """Have the server checked soon, as clients cannot connect to it; True if a check is due earlier.

        Failures of clients are never a verdict: only the result of the check counts. A server that is down
        gets no more checks for them.
        """
        check = self.settings.check
        if check is None or self.verdict is HealthVerdict.DOWN:
            return False
        return self._schedule.connect_failed(check, now)

    def set_admin(self, admin: AdminState, *, now: float) -> HealthEvent | None:
        """Apply the operator's state (HAProxy's `set server state`); return what that changed, or None.

        A server that leaves maint begins as at the start, unless it had failed before: then it must rise.
        Either way slow start gives its share back, as in HAProxy: whoever works on a machine restarts things
        on it.
        """
        if admin is self.admin:
            return None
        left_maint = self.admin is AdminState.MAINT
        self._become(self.verdict, admin)
        self.since = now
        if left_maint:
            self._leave_maint(now)
        if left_maint or admin is AdminState.MAINT:
            self._count_anew()
            self._schedule_first(now, 0.0)
        if admin is AdminState.MAINT:
            self._slow_start.end()
        return _ADMIN_EVENTS[admin]

    def change_settings(
        self, settings: HealthSettings, *, now: float, window: float = 0.0
    ) -> HealthEvent | None:
        """Continue with new settings for the same address; return what that changed, or None.

        The verdict stays: a reload must not take a server out. Another check begins a new streak, and is due
        within `window` seconds.
        """
        before, self.settings = self.settings, settings
        if settings.slow_start == 0:
            self._slow_start.end()
        if settings.check == before.check:
            return None
        self._count_anew()
        self._schedule_first(now, window)
        if settings.check is not None:
            return None
        self._presumed = False
        return None if self.verdict is HealthVerdict.UP else self._change_verdict(HealthVerdict.UP, now)

    def restore(self, record: ServerHealthRecord, *, now: float, wall: float) -> None:
        """Continue from what an earlier process published last; `wall` is `now` in Unix seconds."""
        self.failed = record.failed
        self.history = CheckHistory.of(record)
        if record.admin is self.admin:
            self.since = now - (wall - record.since)
        if record.verdict is HealthVerdict.UNKNOWN:
            return  # nothing to continue from: the first check decides, as at a first start
        if self.settings.check is not None:
            self._restore_checks(record, now=now, wall=wall)
        weight = self.settings.weight
        if record.verdict is HealthVerdict.UP and 0 < record.weight < weight and self.settings.slow_start:
            self._begin_slow_start(now, step=round(record.weight / weight * STEPS))

    def _restore_checks(self, record: ServerHealthRecord, *, now: float, wall: float) -> None:
        self._become(record.verdict, self.admin)
        self.streak = record.streak
        self._reachability.unreachable = record.unreachable
        self._presumed = record.result is CheckResult.UNCHECKED
        # Presumed down is not a failure: no slow start after that.
        self._was_away = record.verdict is HealthVerdict.DOWN and record.failed > 0
        self.last = CheckOutcome(
            result=record.result, status=record.status, duration=record.duration, detail=record.detail
        )
        self.checked_at = now - (wall - record.checked_at) if record.checked_at else None

    def _become(self, verdict: HealthVerdict, admin: AdminState) -> None:
        self.tally[self.state] -= 1
        self.verdict, self.admin = verdict, admin
        self.tally[self.state] += 1

    def _leave_maint(self, now: float) -> None:
        self._was_away = True
        if self.verdict is HealthVerdict.DOWN:
            return  # it had failed before: it must rise, like any server that is down
        self._become(self._presumed_verdict(), self.admin)
        self.last = UNCHECKED
        self.checked_at = None
        self._presumed = self.settings.check is not None
        if self.verdict is HealthVerdict.UP:
            self._come_back(now)

    def _presumed_verdict(self) -> HealthVerdict:
        return HealthVerdict.UP if self.settings.check is None else _PRESUMED[self.settings.check.init]

    def _judge(self, check: Check, now: float) -> HealthEvent | None:
        verdict = verdict_after(
            self.verdict, passed=self.last.passed, streak=self.streak, presumed=self._presumed, check=check
        )
        return None if verdict is self.verdict else self._change_verdict(verdict, now)

    def _change_verdict(self, verdict: HealthVerdict, now: float) -> HealthEvent:
        self.history.verdict_changed(before=self.verdict, after=verdict, seconds=now - self.since)
        self._become(verdict, self.admin)
        self.since = now
        if verdict is HealthVerdict.DOWN:
            self._was_away = True
            self._slow_start.end()
            return HealthEvent.DOWN
        self._reachability.unreachable = False
        self._come_back(now)
        return HealthEvent.UP

    def _reachability_event(self, *, before: bool) -> HealthEvent | None:
        if self.unreachable is before:
            return None
        return HealthEvent.UNREACHABLE if self.unreachable else HealthEvent.ANSWERS

    def _come_back(self, now: float) -> None:
        # HAProxy's slowstart never applies at the start, only to a server that has failed: with all servers
        # at a twentieth of their weight nothing would be gained.
        if self._was_away and self.settings.slow_start > 0:
            self._begin_slow_start(now, step=1)
        self._was_away = False

    def _begin_slow_start(self, now: float, *, step: int) -> None:
        self._slow_start.begin(now, seconds=self.settings.slow_start, step=step)

    def _count_anew(self) -> None:
        self.streak = 0
        self._reachability.count_anew()

    def _schedule_first(self, now: float, window: float) -> None:
        checked = self.settings.check is not None and self.admin is not AdminState.MAINT
        self._schedule.first(now + window * self.settings.phase if checked else None)

    def _schedule_next(self, check: Check, *, started: float, now: float) -> None:
        confirmed = self.verdict is (HealthVerdict.UP if self.last.passed else HealthVerdict.DOWN)
        self._schedule.check_ended(
            check,
            passed=self.last.passed,
            in_question=not confirmed or self._reachability.in_question,
            started=started,
            now=now,
            place=self.settings.phase,
        )
