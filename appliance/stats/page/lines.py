"""The lines of the page: the figures of the last hours that are drawn."""

from collections.abc import Mapping
from dataclasses import dataclass

from appliance.core.history.series import Series, series
from appliance.wire.history_ring import Minute


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """The lines of all frontends together, and of each frontend and pool in the minutes.

    `latest` is the last complete minute, None if none of the last few is there.
    """

    latest: Minute | None
    connections: Series
    sessions: Series
    failed: Series
    bytes: Series
    frontends: Mapping[str, Series]
    pools: Mapping[str, Series]

    @classmethod
    def of(cls, minutes: tuple[Minute, ...], now: float) -> "Lines":
        """Return the lines up to `now`, Unix seconds."""
        ends = int(now // 60) - 1
        latest = minutes[-1] if minutes and minutes[-1].number >= ends - 1 else None
        frontends = {name for each in minutes for name in each.frontends}
        pools = {name for each in minutes for name in each.pools}
        return cls(
            latest=latest,
            connections=series(minutes, lambda each: each.total.connections, ends=ends),
            sessions=series(minutes, lambda each: each.total.sessions, ends=ends),
            failed=series(minutes, lambda each: each.total.failed, ends=ends),
            bytes=series(minutes, lambda each: each.total.bytes, ends=ends),
            frontends={name: _of_frontend(minutes, name, ends) for name in frontends},
            pools={name: _of_pool(minutes, name, ends) for name in pools},
        )


def _of_frontend(minutes: tuple[Minute, ...], name: str, ends: int) -> Series:
    return series(
        minutes, lambda each: each.frontends[name].connections if name in each.frontends else None, ends=ends
    )


def _of_pool(minutes: tuple[Minute, ...], name: str, ends: int) -> Series:
    return series(
        minutes, lambda each: each.pools[name].connections if name in each.pools else None, ends=ends
    )
