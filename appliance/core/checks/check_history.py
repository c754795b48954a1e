"""Figures of checks for monitoring: how often a server went down, how long, how fast it answers."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Self

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.model.server_states import HealthVerdict, ServerState
from appliance.wire.boards.health_board import CHECK_BOUNDS, NO_CHECKS, PoolHealthRecord, ServerHealthRecord


@dataclass(slots=True, kw_only=True)
class CheckHistory:
    """Counters that never decrease, as the health board has them; durations are seconds."""

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
        """Count a check; `verdict` is the one before it."""
        self.failed_up += not outcome.passed and verdict is not HealthVerdict.DOWN
        self.reused += outcome.reused
        self.check_seconds += outcome.duration
        self.check_times[bisect_left(CHECK_BOUNDS, outcome.duration)] += 1

    def verdict_changed(self, *, before: HealthVerdict, after: HealthVerdict, seconds: float) -> None:
        """Count a change of the verdict, `seconds` after the last change.

        As in HAProxy an operator's order counts as a change too: the sum lacks the time that a server was
        down before a drain ordered meanwhile.
        """
        if after is HealthVerdict.DOWN:
            self.downs += 1
        elif before is HealthVerdict.DOWN:
            self.down_seconds += seconds


@dataclass(slots=True)
class _PoolHistory:
    downs: int = 0
    down_seconds: float = 0.0
    down_since: float | None = None


class PoolHistories:
    """How often whole pools were down, and how long: HAProxy's `chkdown` and `downtime` of a backend.

    A pool is down while none of its servers takes connections, because of checks or of the operator. HAProxy
    counts both, but at the end drops the time that was due to the operator: such a counter decreases. While a
    server is not judged yet, its pool stays as it was. `now` is monotonic seconds, `wall` the same in Unix
    seconds.
    """

    def __init__(self, records: Iterable[PoolHealthRecord], *, now: float, wall: float) -> None:
        """Continue from what an earlier process published."""
        self._pools = {
            each.pool: _PoolHistory(
                each.downs, each.down_seconds, now - (wall - each.down_since) if each.down_since else None
            )
            for each in records
        }

    def look(self, servers: Mapping[str, Iterable[tuple[ServerState, float]]], *, now: float) -> None:
        """Look at state and effective weight of the servers of all pools, up to the first that is up.

        Pools that are gone are forgotten.
        """
        self._pools = {pool: self._pools.get(pool) or _PoolHistory() for pool in servers}
        for pool, members in servers.items():
            _look_at(self._pools[pool], members, now)

    def records(self, *, now: float, wall: float) -> tuple[PoolHealthRecord, ...]:
        """Return what the health board shows."""
        return tuple(
            PoolHealthRecord(
                pool=name,
                downs=each.downs,
                down_seconds=each.down_seconds,
                down_since=0.0 if each.down_since is None else wall - (now - each.down_since),
            )
            for name, each in self._pools.items()
        )


def _look_at(pool: _PoolHistory, members: Iterable[tuple[ServerState, float]], now: float) -> None:
    judged = True
    for state, weight in members:
        if state is ServerState.UP and weight > 0:
            if pool.down_since is not None:
                pool.down_seconds += now - pool.down_since
                pool.down_since = None
            return
        judged = judged and state is not ServerState.CHECKING
    if judged and pool.down_since is None:
        pool.downs += 1
        pool.down_since = now
