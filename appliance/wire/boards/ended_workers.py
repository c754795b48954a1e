"""The counters of a proxy's ended workers: the file that keeps counters from going backwards.

A worker's counters are on its board, and are lost when it ends. So the master first adds them up here, and
then removes the board. The file names the workers added last: a reader that reads the boards first and then
this file counts every worker exactly once, and a master that is killed between the two steps adds none twice.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from appliance.wire.boards.worker_board import (
    FrontendCounters,
    PoolTimes,
    ServerCounters,
    WorkerBoard,
    summed,
)
from appliance.wire.checksummed_json import ChecksumError, checksummed, verified

_REMEMBERED: Final = 256
"""Workers that the file names: as many may end between two reads by one reader."""

REMOVED: Final = ""
"""Name under which frontends that have left the configuration are summed up."""


class EndedWorkersError(Exception):
    """The file does not hold the counters of ended workers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedWorkers:
    """The sums, by frontend, server and pool, and the number of workers in them.

    `since` is when the first of them was started, Unix seconds, 0.0 for none. `recent` are the identities of
    those added last, the latest at the end. `reasons` counts the ends of connections by reason.
    """

    since: float = 0.0
    workers: int = 0
    recent: tuple[str, ...] = ()
    frontends: tuple[FrontendCounters, ...] = ()
    servers: tuple[ServerCounters, ...] = ()
    pools: tuple[PoolTimes, ...] = ()
    reasons: Mapping[str, int] = field(default_factory=dict)


def identity(board: WorkerBoard) -> str:
    """Return the unique identity of a worker: its place may already belong to another one."""
    return f"{board.generation}-{board.index}-{board.pid}-{board.started_at!r}"


def with_ended(ended: EndedWorkers, board: WorkerBoard) -> EndedWorkers:
    """Return the sums including those of a worker that has ended; unchanged if they already do."""
    name = identity(board)
    if name in ended.recent:
        return ended
    reasons = dict(ended.reasons)
    for reason, count in board.reasons.items():
        if count:
            reasons[reason.value] = reasons.get(reason.value, 0) + count
    return EndedWorkers(
        since=min(ended.since or board.started_at, board.started_at),
        workers=ended.workers + 1,
        recent=(*ended.recent, name)[-_REMEMBERED:],
        frontends=_summed_frontends((*ended.frontends, *board.frontends)),
        servers=_summed_servers((*ended.servers, *board.servers)),
        pools=_summed_times((*ended.pools, *board.pools)),
        reasons=reasons,
    )


def kept(
    ended: EndedWorkers, *, frontends: Collection[str], servers: Collection[tuple[str, str]]
) -> EndedWorkers:
    """Return the sums without removed servers (by pool and name); removed frontends are merged into one.

    Otherwise the file would grow forever if names change. Sums over all frontends stay.
    """
    named = (each if each.name in frontends else replace(each, name=REMOVED) for each in ended.frontends)
    pools = {pool for pool, _ in servers}
    return replace(
        ended,
        frontends=_summed_frontends(named),
        servers=tuple(each for each in ended.servers if (each.pool, each.server) in servers),
        pools=tuple(each for each in ended.pools if each.pool in pools),
    )


def encode(ended: EndedWorkers) -> bytes:
    """Return the content of the file."""
    return checksummed(msgspec.json.encode(ended))


def decode(data: bytes) -> EndedWorkers:
    """Return the value encoded by `encode`; raises EndedWorkersError."""
    try:
        return msgspec.json.decode(verified(data), type=EndedWorkers)
    except (ChecksumError, ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise EndedWorkersError(str(error)) from error


def _summed_frontends(counters: Iterable[FrontendCounters]) -> tuple[FrontendCounters, ...]:
    sums: dict[str, FrontendCounters] = {}
    for each in counters:
        known = sums.get(each.name)
        sums[each.name] = replace(each, current=0) if known is None else _sum(known, each)
    return tuple(sums.values())


def _sum(one: FrontendCounters, other: FrontendCounters) -> FrontendCounters:
    return replace(
        one,
        total=one.total + other.total,
        denied=one.denied + other.denied,
        failed=one.failed + other.failed,
        bytes_in=one.bytes_in + other.bytes_in,
        bytes_out=one.bytes_out + other.bytes_out,
    )


def _summed_servers(counters: Iterable[ServerCounters]) -> tuple[ServerCounters, ...]:
    parts: dict[tuple[str, str], list[ServerCounters]] = {}
    for each in counters:
        parts.setdefault((each.pool, each.server), []).append(each)
    return tuple(msgspec.structs.replace(summed(several), current=0, queued=0) for several in parts.values())


def _summed_times(times: Iterable[PoolTimes]) -> tuple[PoolTimes, ...]:
    sums: dict[str, PoolTimes] = {}
    for each in times:
        known = sums.get(each.pool)
        connects = each.connects
        if known is not None:
            connects = tuple(map(sum, zip(known.connects, each.connects, strict=True)))
        sums[each.pool] = PoolTimes(pool=each.pool, connects=connects)
    return tuple(sums.values())
