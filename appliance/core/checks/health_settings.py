"""What the configuration says about the health of one server."""

from dataclasses import dataclass

from appliance.core.checks.check_schedule import phase
from appliance.model.snapshot.pools import Check, Pool, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """Settings of a pool and of one of its servers, put together.

    `check` is None for a server that is never checked and always up. `slow_start` is in seconds, 0.0 is none.
    `phase` is the server's place in its check interval, in (0, 1].
    """

    check: Check | None
    weight: int
    slow_start: float
    phase: float


def health_settings(pool: Pool, server: Server) -> HealthSettings:
    """Return the settings of a server."""
    return HealthSettings(
        check=server.check,
        weight=server.weight,
        slow_start=pool.slow_start,
        phase=phase(pool.name, server.name),
    )
