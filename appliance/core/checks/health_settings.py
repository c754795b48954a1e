"""The health settings of one server."""

from dataclasses import dataclass

from appliance.core.checks.check_schedule import phase
from appliance.model.server_weights import OperatorWeight, asked_weight
from appliance.model.snapshot.pools import Check, Pool, Server


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSettings:
    """The combined settings of a pool and of one of its servers.

    `check` is None for a server that is never checked and always up. `slow_start` is in seconds, 0.0 for
    none. `weight` is the operator's if there is one. `phase` is the server's place in its check interval, in
    (0, 1].
    """

    check: Check | None
    weight: float
    slow_start: float
    phase: float


def health_settings(pool: Pool, server: Server, weight: OperatorWeight | None = None) -> HealthSettings:
    """Return the settings of a server; `weight` is the operator's."""
    return HealthSettings(
        check=server.check,
        weight=asked_weight(server.weight, weight),
        slow_start=pool.slow_start,
        phase=phase(pool.name, server.name),
    )
