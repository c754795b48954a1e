"""Which part of a pool's new connections each of its servers took recently."""

from collections import deque
from collections.abc import Mapping
from typing import Final

from appliance.core.status.status import Status

SECONDS: Final = 300.0
"""How far back a share looks."""

_STEP: Final = 10.0

_Totals = Mapping[tuple[str, str], int]


class Shares:
    """The shares, from readings of the servers' counters; times are Unix seconds."""

    def __init__(self) -> None:
        self._looks: deque[tuple[float, _Totals]] = deque(maxlen=int(SECONDS / _STEP) + 1)
        self._latest: _Totals = {}

    def look(self, status: Status, now: float) -> None:
        """Store the present counters."""
        self._latest = {(pool.name, each.name): each.total for pool in status.pools for each in pool.servers}
        if not self._looks or abs(now - self._looks[-1][0]) >= _STEP:
            self._looks.append((now, self._latest))

    def by_pool(self) -> Mapping[str, Mapping[str, float]]:
        """Return by pool and server the shares, 1.0 together; pools without new connections have none."""
        before = self._looks[0][1] if self._looks else {}
        came: dict[str, dict[str, int]] = {}
        for (pool, server), total in self._latest.items():
            came.setdefault(pool, {})[server] = max(0, total - before.get((pool, server), 0))
        sums = {pool: sum(counts.values()) for pool, counts in came.items()}
        return {
            pool: {server: count / sums[pool] for server, count in counts.items()}
            for pool, counts in came.items()
            if sums[pool]
        }
