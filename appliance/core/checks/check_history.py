"""What monitoring wants to know of checks: how often a server went down, how long, how fast it answers."""

from bisect import bisect_left
from dataclasses import dataclass, field
from typing import Self

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.server_states import HealthVerdict
from appliance.wire.boards.health_board import CHECK_BOUNDS, NO_CHECKS, ServerHealthRecord


@dataclass(slots=True, kw_only=True)
class CheckHistory:
    """Counters that never go back, as the health board has them; durations are seconds."""

    downs: int = 0
    failed_up: int = 0
    down_seconds: float = 0.0
    check_seconds: float = 0.0
    reused: int = 0
    check_times: list[int] = field(default_factory=lambda: list(NO_CHECKS))

    @classmethod
    def of(cls, record: ServerHealthRecord) -> Self:
        """Return what an earlier process published."""
        return cls(
            downs=record.downs,
            failed_up=record.failed_up,
            down_seconds=record.down_seconds,
            check_seconds=record.check_seconds,
            reused=record.reused,
            check_times=list(record.check_times),
        )

    def check_ended(self, outcome: CheckOutcome, *, verdict: HealthVerdict) -> None:
        """Count a check; `verdict` is that of before it."""
        self.failed_up += not outcome.passed and verdict is not HealthVerdict.DOWN
        self.reused += outcome.reused
        self.check_seconds += outcome.duration
        self.check_times[bisect_left(CHECK_BOUNDS, outcome.duration)] += 1

    def verdict_changed(self, *, before: HealthVerdict, after: HealthVerdict, seconds: float) -> None:
        """Count a change of the verdict, `seconds` after the last change.

        As in HAProxy the operator's word counts as a change too: what a server was down before a drain that
        was ordered meanwhile is not in the sum.
        """
        if after is HealthVerdict.DOWN:
            self.downs += 1
        elif before is HealthVerdict.DOWN:
            self.down_seconds += seconds
