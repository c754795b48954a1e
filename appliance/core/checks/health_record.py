"""The health board's record of a server, for the workers and `appliance status`."""

from appliance.core.checks.checked_servers import CheckedServer
from appliance.wire.boards.health_board import ServerHealthRecord


def record(checked: CheckedServer, *, now: float, wall: float) -> ServerHealthRecord:
    """Return the record of a server; `wall` is `now` in Unix seconds.

    The board has times in Unix seconds, because the process that continues from it after a restart (even of
    the machine) has another monotonic clock.
    """
    health = checked.health
    last, checked_at = health.last, health.checked_at
    return ServerHealthRecord(
        pool=checked.pool,
        server=checked.server.name,
        verdict=health.verdict,
        admin=health.admin,
        weight=health.weight,
        since=wall - (now - health.since),
        checked_at=0.0 if checked_at is None else wall - (now - checked_at),
        duration=last.duration,
        result=last.result,
        status=last.status,
        streak=health.streak,
        failed=health.failed,
        host=checked.host,
        port=checked.server.port,
        detail=last.detail,
        unreachable=health.unreachable,
        downs=health.history.downs,
        failed_up=health.history.failed_up,
        down_seconds=health.history.down_seconds,
        check_seconds=health.history.check_seconds,
        check_times=tuple(health.history.check_times),
        operator_weight=checked.weight,
        reused=health.history.reused,
    )
