"""What the change of one server means for its pool: the last one is left, none is, it serves again."""

from appliance.model.operator_events import EventKind


class PoolCounts:
    """How many servers of each pool took traffic when something changed last."""

    def __init__(self) -> None:
        self._up: dict[str, int] = {}

    def changed(self, pool: str, *, up: int, servers: int, step: int, unchecked: int) -> EventKind | None:
        """Return what it means that `up` of a pool's `servers` take traffic now, None for nothing.

        `step` is what the change did to a pool that is met for the first time: 1, 0, or -1. A pool of which
        servers are `unchecked` is not empty yet: workers use those as well.
        """
        before = self._up.get(pool, up - step)
        if up == 0 and unchecked:
            return None
        self._up[pool] = up
        if up == 0 and before > 0:
            return EventKind.POOL_EMPTY
        if up > 0 and before <= 0:
            return EventKind.POOL_SERVES
        return EventKind.LAST_SERVER if up == 1 and before > 1 and servers > 1 else None
