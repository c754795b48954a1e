"""One server's health over time: check results go in; verdict, weight and the next deadline come out.

`now` is any clock that only grows, in seconds. The verdicts follow HAProxy's `rise`, `fall`, `inter`,
`fastinter`, `downinter`, `init-state` and `slowstart` (configuration.txt 5.2), with one difference: a
server whose `init` is `check` has no verdict until its first check has ended. The first check alone decides,
whatever was presumed before it.
"""

import math
import zlib
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.model.check_results import UNREACHABLE, CheckResult
from appliance.model.server_states import AdminState, HealthVerdict, ServerState, state_of
from appliance.model.snapshot.pools import Check, CheckInit
from appliance.wire.boards.health_board import ServerHealthRecord

RAMP_STEPS: Final = 20
"""Steps of slow_start: the first one is a twentieth of the weight, never nothing."""

_PASSED: Final = frozenset({CheckResult.L4OK, CheckResult.L6OK, CheckResult.L7OK})
_INITIAL: Final = {
    CheckInit.CHECK: HealthVerdict.UNKNOWN,
    CheckInit.UP: HealthVerdict.UP,
    CheckInit.DOWN: HealthVerdict.DOWN,
}


class HealthEvent(StrEnum):
    """What happened to a server, as logs name it.

    UNREACHABLE and ANSWERS are changes of a server that is down already: sessions on it may live or not.
    """

    UP = "server-up"
    DOWN = "server-down"
    UNREACHABLE = "server-unreachable"
    ANSWERS = "server-answers-badly"
    READY = "server-ready"
    DRAIN = "server-drain"
    MAINT = "server-maint"


_OPERATED: Final = {
    AdminState.READY: HealthEvent.READY,
    AdminState.DRAIN: HealthEvent.DRAIN,
    AdminState.MAINT: HealthEvent.MAINT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckOutcome:
    """How one check ended; `status` is the HTTP status or 0, `duration` is seconds."""

    result: CheckResult
    status: int = 0
    duration: float = 0.0
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the check says that the server is fit for traffic."""
        return self.result in _PASSED

    @property
    def unreachable(self) -> bool:
        """Whether the check failed because nothing answers, not because of what was answered."""
        return self.result in UNREACHABLE


UNCHECKED: Final = CheckOutcome(result=CheckResult.UNCHECKED)


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """What the configuration says of a server's health; `phase` is its place in an interval, (0, 1]."""

    check: Check | None
    weight: int
    slow_start: float
    phase: float


def phase(pool: str, server: str) -> float:
    """Return the same place in (0, 1] for the same server always, and places spread evenly over many."""
    return (zlib.crc32(f"{pool}/{server}".encode()) + 1) / (1 << 32)


class ServerHealth:
    """The state of one server. `next_check` is None when nothing is to be checked.

    `window` spreads first checks: this one is due within that many seconds, at the server's phase.
    """

    __slots__ = (
        "_decided",
        "_doubted",
        "_for_doubt_at",
        "_next_step",
        "_returns",
        "_settled",
        "_silences",
        "_step",
        "_unreachable",
        "admin",
        "checked_at",
        "failed",
        "last",
        "next_check",
        "since",
        "streak",
        "terms",
        "verdict",
    )

    def __init__(
        self, terms: HealthSettings, *, now: float, window: float = 0.0, admin: AdminState = AdminState.READY
    ) -> None:
        self.terms = terms
        self.admin = admin
        self.since = now
        self.last = UNCHECKED
        self.checked_at: float | None = None
        self.streak = 0
        self.failed = 0
        self._decided = terms.check is None
        self._doubted = False
        self._for_doubt_at = -math.inf
        self._returns = False
        self._settled = False
        self._silences = 0
        self._step = RAMP_STEPS
        self._next_step: float | None = None
        self._unreachable = False
        self.verdict = self._initial()
        self.next_check = self._first(now, window)

    @property
    def weight(self) -> float:
        """Effective weight: the configured one, or as much of it as slow_start gives by now."""
        return self.terms.weight * self._step / RAMP_STEPS

    @property
    def state(self) -> ServerState:
        """The one word for the server that operators see."""
        return state_of(self.verdict, self.admin)

    @property
    def unreachable(self) -> bool:
        """Whether the server is down because nothing answers: sessions on it have nobody to end them."""
        return self.verdict is HealthVerdict.DOWN and self._unreachable

    @property
    def deadline(self) -> float | None:
        """When something is due next: a check or a step of slow_start; None is never."""
        if self.next_check is None or self._next_step is None:
            return self.next_check if self._next_step is None else self._next_step
        return min(self.next_check, self._next_step)

    def tick(self, now: float) -> bool:
        """Take the steps of slow_start that are due; True when the weight has changed."""
        before = self._step
        while self._next_step is not None and now >= self._next_step:
            self._step += 1
            self._next_step += self.terms.slow_start / RAMP_STEPS
            if self._step == RAMP_STEPS:
                self._next_step = None
        return self._step != before

    def conclude(self, outcome: CheckOutcome, *, started: float, now: float) -> HealthEvent | None:
        """Take the result of a check that began at `started`; return what it changed.

        One that ends after the operator has taken the server away is nobody's.
        """
        check = self.terms.check
        if check is None or self.admin is AdminState.MAINT:
            return None
        self.streak = self.streak + 1 if outcome.passed is self.last.passed else 1
        self.failed += not outcome.passed
        self.last = outcome
        self.checked_at = now
        before = self.unreachable
        self._note_reach(check)
        event = self._judge(check, now) or self._turned(before)
        self._decided = True
        self.next_check = self._after(started, now)
        return event

    def doubt(self, *, now: float) -> bool:
        """Have the server checked at once, as clients' connects fail; True when a check is due earlier by it.

        However many clients fail, only one check for each fast_interval is made for them (HAProxy's `on-error
        fastinter`), and only its result counts. A server that is down has its time.
        """
        check = self.terms.check
        if check is None or self.next_check is None or self.verdict is HealthVerdict.DOWN:
            return False
        self._doubted = True
        soonest = max(now, self._for_doubt_at + check.fast_interval)
        if soonest >= self.next_check:
            return False
        self.next_check = soonest
        return True

    def begin(self, now: float) -> None:
        """Note that a check begins: it answers the doubts up to now, later ones want another."""
        if self._doubted:
            self._doubted = False
            self._for_doubt_at = now

    def postpone(self, *, started: float, now: float) -> None:
        """Pass over a check that could not be made for a reason of our own: it says nothing of the server."""
        self.next_check = self._after(started, now)

    def operate(self, admin: AdminState, *, now: float) -> HealthEvent | None:
        """Take the operator's word; return what it changed.

        A server that leaves maint begins as at the start, unless it had failed before: then it has to rise.
        Either way it gets its share back over slow_start, as in HAProxy.
        """
        if admin is self.admin:
            return None
        left_maint = self.admin is AdminState.MAINT
        self.admin = admin
        self.since = now
        if left_maint:
            self._leave_maint(now)
        if left_maint or admin is AdminState.MAINT:
            self.streak = self._silences = 0
            self.next_check = self._first(now, 0.0)
        if admin is AdminState.MAINT:
            self._stop_ramp()
        return _OPERATED[admin]

    def revise(self, terms: HealthSettings, *, now: float, window: float = 0.0) -> HealthEvent | None:
        """Take new settings for the same address: the verdict stays, a new check begins a new streak."""
        before, self.terms = self.terms, terms
        if terms.slow_start == 0:
            self._stop_ramp()
        if terms.check == before.check:
            return None
        self.streak = self._silences = 0
        self._settled = False
        self.next_check = self._first(now, window)
        if terms.check is None:
            self._decided = True
            return None if self.verdict is HealthVerdict.UP else self._turn(HealthVerdict.UP, now)
        return None

    def restore(self, record: ServerHealthRecord, *, now: float, wall: float) -> None:
        """Go on from what an earlier process last published; `wall` is `now` in Unix seconds."""
        self.failed = record.failed
        if record.admin is self.admin:
            self.since = now - (wall - record.since)
        if record.verdict is HealthVerdict.UNKNOWN:
            return
        if self.terms.check is not None:
            self._restore_checks(record, now=now, wall=wall)
        if (
            record.verdict is HealthVerdict.UP
            and 0 < record.weight < self.terms.weight
            and self.terms.slow_start
        ):
            self._ramp_from(now, step=round(record.weight / self.terms.weight * RAMP_STEPS))

    def _restore_checks(self, record: ServerHealthRecord, *, now: float, wall: float) -> None:
        self.verdict = record.verdict
        self.streak = record.streak
        self._unreachable = record.unreachable
        self._decided = record.result is not CheckResult.UNCHECKED
        self._returns = record.verdict is HealthVerdict.DOWN and record.failed > 0
        self.last = CheckOutcome(
            result=record.result, status=record.status, duration=record.duration, detail=record.detail
        )
        self.checked_at = now - (wall - record.checked_at) if record.checked_at else None

    def _leave_maint(self, now: float) -> None:
        self._returns = True
        if self.verdict is HealthVerdict.DOWN:
            return
        self.verdict = self._initial()
        self.last = UNCHECKED
        self.checked_at = None
        self._decided = self.terms.check is None
        if self.verdict is HealthVerdict.UP:
            self._come_back(now)

    def _note_reach(self, check: Check) -> None:
        """Learn whether the server answers at all; that it does not takes as many failures as its fall.

        A bad answer counts at once: it cannot come from a server that is not there.
        """
        if self.last.unreachable:
            self._silences += 1
            self._unreachable = self._unreachable or self._silences >= (check.fall if self._decided else 1)
            return
        self._silences = 0
        if not self.last.passed:
            self._unreachable = False

    def _turned(self, before: bool) -> HealthEvent | None:  # noqa: FBT001  # what `unreachable` was
        if self.unreachable is before:
            return None
        return HealthEvent.UNREACHABLE if self.unreachable else HealthEvent.ANSWERS

    def _initial(self) -> HealthVerdict:
        return HealthVerdict.UP if self.terms.check is None else _INITIAL[self.terms.check.init]

    def _first(self, now: float, window: float) -> float | None:
        if self.terms.check is None or self.admin is AdminState.MAINT:
            return None
        return now + window * self.terms.phase

    def _judge(self, check: Check, now: float) -> HealthEvent | None:
        passed = self.last.passed
        wanted = HealthVerdict.UP if passed else HealthVerdict.DOWN
        if wanted is self.verdict:
            return None
        needed = check.rise if passed else check.fall
        if self._decided and self.streak < needed:
            return None
        return self._turn(wanted, now)

    def _turn(self, verdict: HealthVerdict, now: float) -> HealthEvent:
        self.verdict = verdict
        self.since = now
        if verdict is HealthVerdict.DOWN:
            self._returns = True
            self._stop_ramp()
            return HealthEvent.DOWN
        self._unreachable = False
        self._come_back(now)
        return HealthEvent.UP

    def _come_back(self, now: float) -> None:
        # slowstart never applies at the start, only to a server that was away (configuration.txt).
        if self._returns and self.terms.slow_start > 0:
            self._ramp_from(now, step=1)
        self._returns = False

    def _ramp_from(self, now: float, *, step: int) -> None:
        self._step = max(step, 1)
        self._next_step = now + self.terms.slow_start / RAMP_STEPS if self._step < RAMP_STEPS else None

    def _stop_ramp(self) -> None:
        self._step = RAMP_STEPS
        self._next_step = None

    def _after(self, started: float, now: float) -> float | None:
        check = self.terms.check
        if check is None or self.admin is AdminState.MAINT:
            return None
        pace = self._pace(check)
        # The first checks of all servers come close together; the second ones find their place.
        if not self._settled:
            self._settled = True
            pace *= self.terms.phase
        return max(started + pace, now)

    def _pace(self, check: Check) -> float:
        if self.verdict is HealthVerdict.UNKNOWN or self.last.passed is not (
            self.verdict is HealthVerdict.UP
        ):
            return check.fast_interval
        if self._doubted or (self._silences and not self._unreachable):
            return check.fast_interval
        return check.interval if self.last.passed else check.down_interval
