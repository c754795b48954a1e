"""What the change of one server means for its pool: one server is left, none is, or it serves again."""

from appliance.model.operator_events import EventKind


class PoolCounts:
    """How many servers of each pool took traffic at the last change."""

    def __init__(self) -> None:
        self._up: dict[str, int] = {}

    def changed(self, pool: str, *, up: int, servers: int, step: int, unchecked: int) -> EventKind | None:
        """Return what it means that `up` of a pool's `servers` take traffic now, or None.

        `step` is the effect of the change on a pool without an earlier count: 1, 0, or -1. A pool with
        `unchecked` servers is not empty yet: workers use those as well.
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
