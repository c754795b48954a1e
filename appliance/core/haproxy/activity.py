"""What requires repeated looks: rates, peaks, and the means of the last connections.

HAProxy keeps these in its process and starts again with each reload. Here they belong to the process that
reads, once a second, the counters, which reloads leave alone.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from appliance.core.status.status import Status

_HALF: Final = 512
"""Connections after which the older half is dropped from the means, which are then of 512 to 1023."""


class ProxyKind(StrEnum):
    """The kind of a row of HAProxy's statistics; one of each kind may share a name."""

    FRONTEND = "FRONTEND"
    BACKEND = "BACKEND"
    SERVER = "SERVER"


RowKey = tuple[ProxyKind, str, str]
"""A frontend, a pool, or a server of a pool; the last part is "" for the first two."""


class Counted(msgspec.Struct, frozen=True, kw_only=True):
    """The counters of one place so far; a struct, as Trend is, because structs are created faster.

    Fields after `queued` are of servers and pools only: `connected` and `ended` count the sessions that the
    sums of seconds are of.
    """

    current: int
    total: int
    queued: int = 0
    connected: int = 0
    ended: int = 0
    queue_seconds: float = 0.0
    connect_seconds: float = 0.0
    session_seconds: float = 0.0


class Trend(msgspec.Struct, frozen=True, kw_only=True):
    """The trend of one place.

    `rate` is sessions a second, `last_at` when the last one came, None for never. The means are seconds, over
    about the last thousand connections.
    """

    rate: int = 0
    most_rate: int = 0
    most_current: int = 0
    most_queued: int = 0
    last_at: float | None = None
    queue_mean: float = 0.0
    connect_mean: float = 0.0
    session_mean: float = 0.0


@dataclass(slots=True, kw_only=True)
class _Seen:
    at: float
    counted: Counted
    older: Counted
    newer: Counted
    trend: Trend


class Activity:
    """The trends of all places, from repeated looks at their counters; times are Unix seconds."""

    def __init__(self) -> None:
        self._seen: dict[RowKey, _Seen] = {}

    def look(self, counted: Mapping[RowKey, Counted], now: float) -> None:
        """Process the present counters; places that are gone are forgotten."""
        for place in self._seen.keys() - counted.keys():
            del self._seen[place]
        for place, each in counted.items():
            self._look_at(place, each, now)

    def trend(self, place: RowKey) -> Trend:
        """Return the trend of a place, an empty one if it is new."""
        seen = self._seen.get(place)
        return seen.trend if seen else Trend()

    def _look_at(self, place: RowKey, counted: Counted, now: float) -> None:
        seen = self._seen.get(place)
        if seen is None:
            none = Counted(current=0, total=0)
            trend = Trend(most_current=counted.current, most_queued=counted.queued)
            self._seen[place] = _Seen(at=now, counted=counted, older=none, newer=none, trend=trend)
            return
        # Counters of the kernel's rules go with them when a proxy takes a frontend over.
        came, passed = max(counted.total - seen.counted.total, 0), now - seen.at
        rate = round(came / passed) if passed > 0 else seen.trend.rate
        if counted.connected - seen.newer.connected >= _HALF:
            seen.older, seen.newer = seen.newer, counted
        queue_mean, connect_mean, session_mean = _means(counted, seen.older)
        seen.trend = Trend(
            rate=rate,
            most_rate=max(rate, seen.trend.most_rate),
            most_current=max(counted.current, seen.trend.most_current),
            most_queued=max(counted.queued, seen.trend.most_queued),
            last_at=now if came > 0 else seen.trend.last_at,
            queue_mean=queue_mean,
            connect_mean=connect_mean,
            session_mean=session_mean,
        )
        seen.at, seen.counted = now, counted


def _means(counted: Counted, before: Counted) -> tuple[float, float, float]:
    """Return the mean wait in the queue, connect and session, 0.0 without any since then."""
    connected, ended = counted.connected - before.connected, counted.ended - before.ended
    return (
        (counted.queue_seconds - before.queue_seconds) / connected if connected > 0 else 0.0,
        (counted.connect_seconds - before.connect_seconds) / connected if connected > 0 else 0.0,
        (counted.session_seconds - before.session_seconds) / ended if ended > 0 else 0.0,
    )


def counted(status: Status) -> dict[RowKey, Counted]:
    """Return the counters of all frontends, pools and servers of a status."""
    found = {
        (ProxyKind.FRONTEND, each.name, ""): Counted(current=each.current, total=each.total)
        for each in status.frontends
    }
    for pool in status.pools:
        servers = {
            (ProxyKind.SERVER, pool.name, each.name): Counted(
                current=each.current,
                total=each.total,
                queued=each.queued,
                connected=each.connected,
                ended=each.ended,
                queue_seconds=each.queue_seconds,
                connect_seconds=each.connect_seconds,
                session_seconds=each.session_seconds,
            )
            for each in pool.servers
        }
        found |= servers
        found[ProxyKind.BACKEND, pool.name, ""] = _sum(servers.values())
    return found


def _sum(parts: Iterable[Counted]) -> Counted:
    several = tuple(parts)
    return Counted(
        current=sum(each.current for each in several),
        total=sum(each.total for each in several),
        queued=sum(each.queued for each in several),
        connected=sum(each.connected for each in several),
        ended=sum(each.ended for each in several),
        queue_seconds=sum(each.queue_seconds for each in several),
        connect_seconds=sum(each.connect_seconds for each in several),
        session_seconds=sum(each.session_seconds for each in several),
    )
