"""The servers that this node checks, as it reports them to other nodes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from appliance.core.linger.other_nodes import JudgedHere
from appliance.model.server_states import AdminState, HealthVerdict
from appliance.model.snapshot.pools import Check, Pool
from appliance.wire.boards.health_board import ServerHealthRecord
from appliance.wire.linger_node import MOST_SERVERS, server_key

_EXCHANGED: Final = 10.0
"""Seconds that it may take until another node learns a new verdict."""

_EXCHANGED_PER_SERVER: Final = 0.002
"""The same for each server besides, because very many are read more rarely."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchedServer:
    """A server with a check: the key under which it is reported, and how much later others may judge it."""

    key: bytes
    delay: float


def watched_servers(pools: Iterable[Pool]) -> Mapping[tuple[str, str], WatchedServer]:
    """Return the servers with a check, by pool and name."""
    checked = [(pool.name, each.name, each.check) for pool in pools for each in pool.servers if each.check]
    exchanged = _EXCHANGED + _EXCHANGED_PER_SERVER * len(checked)
    return {
        (pool, server): WatchedServer(key=server_key(pool, server), delay=_lag(check) + exchanged)
        for pool, server, check in checked
    }


def judged_servers(
    watched: Mapping[tuple[str, str], WatchedServer], records: Iterable[ServerHealthRecord]
) -> dict[bytes, JudgedHere]:
    """Return those with a verdict by their keys, those that are down first. One in maintenance has none."""
    found = [
        (known.key, JudgedHere(name=f"{each.pool}/{each.server}", up=_is_up(each), delay=known.delay))
        for each in records
        if (known := watched.get((each.pool, each.server))) is not None
        and each.verdict is not HealthVerdict.UNKNOWN
        and each.admin is not AdminState.MAINT
    ]
    found.sort(key=lambda one: (one[1].up, one[1].name))
    return dict(found)


def told_servers(judged: Mapping[bytes, JudgedHere]) -> dict[bytes, bool]:
    """Return what is reported to other nodes: the first ones of very many servers."""
    return {key: each.up for key, each in islice(judged.items(), MOST_SERVERS)}


def _is_up(record: ServerHealthRecord) -> bool:
    return record.verdict is HealthVerdict.UP


def _lag(check: Check) -> float:
    """Return after how long two nodes have both seen what a server does."""
    interval = max(check.interval, check.fast_interval, check.down_interval)
    return max(check.rise, check.fall) * (interval + check.timeout)
