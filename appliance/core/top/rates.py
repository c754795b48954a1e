"""Rates per second, from looks at counters that never decrease.

A counter that is lower than before was not read whole: a worker was killed, or a file was just being
replaced. Its highest count is remembered, so that its return is no rate. A counter that stays lower has
started again, and counts from there.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from appliance.core.status.status import FrontendStatus, ServerStatus, Status

Counter = tuple[str, ...]
"""A counter by what it counts: ("server", "masters", "master-0", "total")."""

PATIENCE: Final = 3
"""Looks in a row at a lower count after which the counter counts as restarted."""

_OF_FRONTEND: Final = ("total", "denied", "failed", "bytes_in", "bytes_out")
_OF_SERVER: Final = ("total", "failed", "retried", "redispatched", "bytes_in", "bytes_out", "downs")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    highest: float
    lower: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """The rates at a look `at` (monotonic), `seconds` after the last; None for counters that are new."""

    at: float
    seconds: float
    per_second: Mapping[Counter, float | None]
    seen: Mapping[Counter, _Seen]

    def of(self, *counter: str) -> float | None:
        """Return the rate of one counter, None if unknown."""
        return self.per_second.get(counter)


def looked(before: Rates | None, counters: Mapping[Counter, float], at: float) -> Rates:
    """Return the rates after a look at `at`, monotonic seconds; counters that are gone are forgotten."""
    known = before.seen if before else {}
    seconds = at - before.at if before else 0.0
    rates: dict[Counter, float | None] = {}
    seen: dict[Counter, _Seen] = {}
    for counter, count in counters.items():
        rates[counter], seen[counter] = _rate(known.get(counter), count, seconds)
    return Rates(at=at, seconds=seconds, per_second=rates, seen=seen)


def _rate(seen: _Seen | None, count: float, seconds: float) -> tuple[float | None, _Seen]:
    if seen is None or (count < seen.highest and seen.lower + 1 >= PATIENCE):
        return None, _Seen(highest=count)
    if count < seen.highest:
        return 0.0, _Seen(highest=seen.highest, lower=seen.lower + 1)
    return (count - seen.highest) / seconds if seconds > 0 else None, _Seen(highest=count)


def counters(status: Status) -> dict[Counter, float]:
    """Return all counters of a status."""
    found: dict[Counter, float] = {("ended", reason): count for reason, count in status.ended.items()}
    for frontend in status.frontends:
        for name in _OF_FRONTEND:
            found["frontend", frontend.program, frontend.name, name] = _count(frontend, name)
    for pool in status.pools:
        for server in pool.servers:
            for name in _OF_SERVER:
                found["server", pool.name, server.name, name] = _count(server, name)
            checks_failed = server.check.failed if server.check else 0
            found["server", pool.name, server.name, "checks_failed"] = checks_failed
    return found


def _count(counted: FrontendStatus | ServerStatus, name: str) -> int:
    count: int = getattr(counted, name)
    return count


def summed(rates: Iterable[float | None]) -> float | None:
    """Return the sum of the known ones of those rates, None if there is none."""
    known = [each for each in rates if each is not None]
    return sum(known) if known else None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sample:
    """One look: the status, and the rates since the look before. No two looks are equal."""

    status: Status
    rates: Rates
