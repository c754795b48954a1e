"""Why a pool serves, or does not."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, assert_never

from appliance.core.status.status import PoolStatus
from appliance.core.why.explanation import (
    Change,
    Decider,
    Evidence,
    Explanation,
    Kind,
    circumstances,
    health_circumstances,
)
from appliance.core.why.servers import ServerCase, answer, case, decider, panics, takes_new, used_backups
from appliance.model.server_states import ServerState
from appliance.model.snapshot.pools import Pool

SHOWN: Final = 10
"""Servers that are described one by one; the others are only counted."""


class PoolState(StrEnum):
    """Which servers of a pool take new connections. WAITING: the first checks have not ended."""

    SERVING = "serving"
    ON_BACKUPS = "on-backups"
    PANIC = "panic"
    WAITING = "waiting"
    EMPTY = "empty"


def explain_pool(pool: Pool, evidence: Evidence) -> Explanation:
    """Return why a pool is in its state."""
    cases = [case(pool, server, evidence) for server in pool.servers]
    status = next(each for each in evidence.status.pools if each.name == pool.name)
    state = pool_state(pool, evidence)
    return Explanation(
        kind=Kind.POOL,
        name=pool.name,
        state=state,
        since=_since(state, cases),
        decided_by=_decider(state, pool, cases),
        answer=pool_answer(pool, evidence),
        reasons=(*_servers(cases), *_others(pool, status, evidence)),
        circumstances=(*health_circumstances(evidence), *circumstances(evidence)),
        changes=tuple(_changes(cases)),
    )


def pool_state(pool: Pool, evidence: Evidence) -> PoolState:
    """Return one word for a pool: which servers take its new connections."""
    status = next(each for each in evidence.status.pools if each.name == pool.name)
    takes = [each for each in status.servers if takes_new(each)]
    if panics(pool, status, evidence):
        return PoolState.PANIC
    if any(not each.backup for each in takes):
        return PoolState.SERVING
    if takes:
        return PoolState.ON_BACKUPS
    checking = any(each.state is ServerState.CHECKING for each in status.servers)
    return PoolState.WAITING if checking else PoolState.EMPTY


def pool_answer(pool: Pool, evidence: Evidence) -> str:
    """Return the sentence on whether a pool serves."""
    status = next(each for each in evidence.status.pools if each.name == pool.name)
    servers = f"{status.up} of {len(status.servers)} servers of {pool.name} are up"
    match pool_state(pool, evidence):
        case PoolState.SERVING:
            return f"{pool.name} serves: {servers}."
        case PoolState.ON_BACKUPS:
            used = ", ".join(each.name for each in used_backups(pool, status))
            return f"{pool.name} serves by its backups ({used}): none of its other servers is up ({servers})."
        case PoolState.PANIC:
            return (
                f"{pool.name} sends to servers that are down, too: only {servers} (panic: {pool.panic:.0%})."
            )
        case PoolState.WAITING:
            return f"Connections to {pool.name} wait: the first checks of its servers have not ended."
        case PoolState.EMPTY:
            what = "takes new connections" if pool.servers else "is known"
            return f"{pool.name} is empty: none of its servers {what}, and clients are turned away."
        case never:
            assert_never(never)


def _since(state: PoolState, cases: list[ServerCase]) -> float | None:
    """Return when a pool that is empty or on its backups lost its last server."""
    lost = [each.status.since or 0.0 for each in cases if not each.server.backup and _out(each)]
    return max(lost, default=0.0) or None if state in (PoolState.EMPTY, PoolState.ON_BACKUPS) else None


def _out(about: ServerCase) -> bool:
    return about.status.state is not ServerState.UP


def _decider(state: PoolState, pool: Pool, cases: list[ServerCase]) -> Decider:
    if state is PoolState.WAITING:
        return Decider.NOBODY
    if not cases:
        return Decider.DISCOVERY if pool.discover else Decider.CONFIGURATION
    out = {decider(each) for each in cases if _out(each)}
    only = out.pop() if len(out) == 1 else Decider.CHECK
    return Decider.CHECK if state in (PoolState.SERVING, PoolState.PANIC) else only


def _servers(cases: list[ServerCase]) -> Iterator[str]:
    out = [each for each in cases if _out(each)]
    yield from (answer(each) for each in out[:SHOWN])
    if len(out) > SHOWN:
        yield f"{len(out) - SHOWN} more are not up either."
    weightless = [each.name for each in cases if not _out(each) and not each.weight]
    if weightless:
        yield f"No new connections by their weight of 0: {', '.join(weightless)}."


def _others(pool: Pool, status: PoolStatus, evidence: Evidence) -> Iterator[str]:
    if status.queued:
        bound = f" of {pool.max_queue}" if pool.max_queue else ""
        yield (
            f"{status.queued}{bound} connections wait for a server, each at its max_connections or not judged"
            " yet."
        )
    users = [
        each.name
        for group in evidence.snapshot.groups
        for each in group.frontends
        if pool.name in (*each.pools, each.needs)
    ]
    yield f"Used by: {', '.join(users)}." if users else "No frontend uses it, so nothing depends on it."
    for source in evidence.status.discovery:
        if pool.name in source.pools and source.hold:
            yield f"Servers that the API ({source.name}) no longer lists are kept: {source.hold}."


def _changes(cases: list[ServerCase]) -> Iterator[Change]:
    for each in [each for each in cases if _out(each)][:SHOWN]:
        if decider(each) is Decider.OPERATOR:
            yield Change(
                text=f"Let the checks of {each.server.name} decide again",
                command=f"appliance ready {each.name}",
            )
        else:
            yield Change(text=f"More on {each.server.name}", command=f"appliance why {each.name}")
