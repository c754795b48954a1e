"""From looks at a status, about one a second, to one set of figures for each minute."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.status.status import FrontendStatus, PoolStatus, Status
from appliance.wire.history_ring import SLOTS, FrontendMinute, Minute, PoolMinute

SECONDS: Final = 300.0
"""How far back a share looks."""

_STEP: Final = 10.0

_Totals = Mapping[tuple[str, str], int]

_MINUTE: Final = 60
_NOTHING: Final = FrontendMinute(connections=0, sessions=0, failed=0, bytes=0)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Begun:
    """The running minute: the counters at its start, and the extremes since then."""

    number: int
    counters: Minute
    extremes: Minute


class Minutes:
    """The complete minutes, the oldest first, as many as the file keeps."""

    def __init__(self, known: tuple[Minute, ...] = ()) -> None:
        self.known = known
        self._begun: _Begun | None = None

    def look(self, status: Status, now: float) -> Minute | None:
        """Process a reading at `now`, Unix seconds; return the minute that it completes, or None."""
        number = int(now // _MINUTE)
        seen = _seen(status, number)
        begun = self._begun
        if begun is None:
            self._begun = _Begun(number=number, counters=seen, extremes=seen)
            return None
        extremes = _extremes(begun.extremes, seen)
        if number == begun.number:
            self._begun = _Begun(number=number, counters=begun.counters, extremes=extremes)
            return None
        self._begun = _Begun(number=number, counters=seen, extremes=seen)
        ended = _ended(begun, extremes, seen)
        self.known = (*(each for each in self.known if 0 < ended.number - each.number < SLOTS), ended)
        return ended


def _seen(status: Status, number: int) -> Minute:
    """Return the counters and gauges of a moment, as if they were figures of a minute."""
    frontends = {each.name: _frontend(each) for each in status.frontends}
    return Minute(
        number=number,
        total=FrontendMinute(*map(sum, zip(_NOTHING, *frontends.values(), strict=True))),
        frontends=frontends,
        pools={each.name: _pool(each) for each in status.pools},
    )


def _frontend(frontend: FrontendStatus) -> FrontendMinute:
    return FrontendMinute(
        connections=frontend.total,
        sessions=frontend.current,
        failed=frontend.failed + frontend.denied,
        bytes=frontend.bytes_in + frontend.bytes_out,
    )


def _pool(pool: PoolStatus) -> PoolMinute:
    return PoolMinute(connections=pool.total, sessions=pool.current, queued=pool.queued, up=pool.up)


def _extremes(known: Minute, seen: Minute) -> Minute:
    """Return the greatest numbers of sessions and of waiting connections, the smallest of servers up."""
    pools = {
        name: each._replace(
            sessions=max(each.sessions, known.pools.get(name, each).sessions),
            queued=max(each.queued, known.pools.get(name, each).queued),
            up=min(each.up, known.pools.get(name, each).up),
        )
        for name, each in seen.pools.items()
    }
    frontends = {
        name: each._replace(sessions=max(each.sessions, known.frontends.get(name, each).sessions))
        for name, each in seen.frontends.items()
    }
    total = seen.total._replace(sessions=max(seen.total.sessions, known.total.sessions))
    return Minute(number=seen.number, total=total, frontends=frontends, pools=pools)


def _ended(begun: _Begun, extremes: Minute, seen: Minute) -> Minute:
    """Return the figures of the minute between two readings of the counters."""
    before = begun.counters
    return Minute(
        number=begun.number,
        total=_counted(before.total, seen.total, extremes.total),
        frontends={
            name: _counted(before.frontends.get(name, _NOTHING), seen.frontends[name], each)
            for name, each in extremes.frontends.items()
        },
        pools={
            name: each._replace(
                connections=_came(
                    before.pools[name].connections if name in before.pools else 0, each.connections
                )
            )
            for name, each in extremes.pools.items()
        },
    )


def _counted(before: FrontendMinute, after: FrontendMinute, extremes: FrontendMinute) -> FrontendMinute:
    return FrontendMinute(
        connections=_came(before.connections, after.connections),
        sessions=extremes.sessions,
        failed=_came(before.failed, after.failed),
        bytes=_came(before.bytes, after.bytes),
    )


def _came(before: int, after: int) -> int:
    """Return the growth of a counter; one that started again has grown to its present value."""
    return after - before if after >= before else after
