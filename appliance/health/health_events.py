"""What `health` tells of servers and pools: each change of a server, and what it means for its pool."""

import time
from typing import Final

from appliance.core.checks.checked_servers import CheckedServer, CheckedServers, Key
from appliance.core.checks.server_health import HealthEvent
from appliance.core.events.pool_counts import PoolCounts
from appliance.model.operator_events import EventKind, OperatorEvent, Tell
from appliance.model.server_states import ServerState

_STEPS: Final = {HealthEvent.UP: 1, HealthEvent.DOWN: -1}
_BY_CHECKS: Final = frozenset(
    {HealthEvent.UP, HealthEvent.DOWN, HealthEvent.UNREACHABLE, HealthEvent.ANSWERS}
)
_OPERATOR: Final = "operator"


class HealthEvents:
    """Tells events of servers and pools."""

    def __init__(self, tell: Tell) -> None:
        self._tell = tell
        self._states: dict[Key, ServerState] = {}
        self._counts = PoolCounts()

    def happened(self, checked: CheckedServer, event: HealthEvent, among: CheckedServers) -> None:
        """Tell what happened to a server, then what that means for its pool."""
        health = checked.health
        up, count = among.up(checked.pool)
        by_checks = event in _BY_CHECKS
        last = health.last
        said = " ".join(filter(None, (str(last.status or ""), last.detail))) if by_checks else ""
        now, state = time.time(), health.state
        self._tell(
            OperatorEvent(
                when=now,
                kind=EventKind(event.value),
                subject="/".join(checked.key),
                before=self._states.get(checked.key, ""),
                after=state,
                cause=last.result.value if by_checks else _OPERATOR,
                detail=f"{said}; {up} of {count} up".removeprefix("; "),
            )
        )
        self._states[checked.key] = state
        step, unchecked = _STEPS.get(event, 0), among.unchecked(checked.pool)
        meaning = self._counts.changed(checked.pool, up=up, servers=count, step=step, unchecked=unchecked)
        if meaning is not None:
            cause = f"{event.value} {checked.server.name}"
            words = f"{up} of {count} up"
            self._tell(OperatorEvent(when=now, kind=meaning, subject=checked.pool, cause=cause, detail=words))
