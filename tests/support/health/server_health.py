"""A server's health, fed with results of checks that are written as texts."""

from support.values import snapshots

from appliance.core.checks.check_outcome import CheckOutcome
from appliance.core.checks.check_schedule import HealthSettings
from appliance.core.checks.server_health import HealthEvent, ServerHealth
from appliance.model.check_results import CheckResult
from appliance.model.snapshot.pools import Check
from appliance.wire.boards.health_board import ServerHealthRecord

GOOD = CheckOutcome(result=CheckResult.L7OK, status=200, duration=0.01)
BAD = CheckOutcome(result=CheckResult.L7STS, status=500, duration=0.02, detail="Internal Server Error")
REFUSED = CheckOutcome(result=CheckResult.L4CON, detail="connection refused")
RESULTS = {"+": GOOD, "-": BAD, "x": REFUSED}
CHECK = snapshots.check("http", interval=10.0, fast_interval=2.0, down_interval=5.0, rise=2, fall=3)


def settings_of(
    check: Check | None = CHECK, *, weight: int = 100, slow_start: float = 0.0, at: float = 0.0
) -> HealthSettings:
    """Return settings whose place in the interval is its beginning, so that pauses are whole."""
    return HealthSettings(check=check, weight=weight, slow_start=slow_start, phase=at)


def feed(
    health: ServerHealth, results: str, *, now: float = 0.0, step: float = 1.0
) -> list[HealthEvent | None]:
    """Conclude a check for each result, `step` seconds apart, and return what each changed.

    `+` is good, `-` a bad answer and `x` none at all.
    """
    events = []
    for index, result in enumerate(results):
        at = now + index * step
        events.append(health.check_ended(RESULTS[result], started=at, now=at))
    return events


def fallen(*, slow_start: float = 0.0, now: float = 0.0) -> ServerHealth:
    """Return a server that its first check found down."""
    health = ServerHealth(settings_of(slow_start=slow_start), now=now)
    feed(health, "-", now=now)
    return health


def record_of(health: ServerHealth, *, now: float, wall: float) -> ServerHealthRecord:
    """Return a board record as the program writes it."""
    return ServerHealthRecord(
        pool="pool",
        server="server-0",
        verdict=health.verdict,
        admin=health.admin,
        weight=health.weight,
        since=wall - (now - health.since),
        checked_at=0.0 if health.checked_at is None else wall - (now - health.checked_at),
        duration=health.last.duration,
        result=health.last.result,
        status=health.last.status,
        streak=health.streak,
        failed=health.failed,
        host="127.0.0.1",
        port=8080,
        detail=health.last.detail,
        unreachable=health.unreachable,
    )
