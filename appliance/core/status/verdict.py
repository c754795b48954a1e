"""The first line of the status page: whether it serves, and what is down since when and why."""

from collections.abc import Callable, Iterator

from appliance.core.status.status import CheckStatus, PoolStatus, ServerStatus, Status
from appliance.model.server_states import ServerState

_OUT: dict[ServerState | None, str] = {
    ServerState.DOWN: "down",
    ServerState.MAINT: "in maintenance",
    ServerState.DRAIN: "draining",
    ServerState.CHECKING: "not checked yet",
    None: "unknown",
}
_NAMED = 3


def verdict(status: Status, *, moment: Callable[[float], str]) -> str:
    """Return sentences for operators; `moment` writes a time (Unix seconds) as they read it."""
    first = "Serving." if _serves(status) else "Not serving."
    return " ".join((first, *_without_server(status), *_servers(status, moment), *_others(status)))


def _serves(status: Status) -> bool:
    proxies = [each for each in status.programs if each.workers is not None and each.expected]
    return all(pool.ok for pool in status.pools) and all(each.workers for each in proxies) and bool(proxies)


def _without_server(status: Status) -> Iterator[str]:
    return (f"Pool {pool.name} has no server up." for pool in status.pools if not pool.ok)


def _servers(status: Status, moment: Callable[[float], str]) -> Iterator[str]:
    for pool in status.pools:
        for state, word in _OUT.items():
            out = [each for each in pool.servers if each.state is state]
            if out:
                yield _sentence(pool, word, out, moment)


def _sentence(pool: PoolStatus, word: str, out: list[ServerStatus], moment: Callable[[float], str]) -> str:
    verb = "is" if len(out) == 1 else "are"
    named = ", ".join(_named(each, moment) for each in out[:_NAMED])
    more = f" and {len(out) - _NAMED} more" if len(out) > _NAMED else ""
    return f"{len(out)} of {len(pool.servers)} servers of {pool.name} {verb} {word}: {named}{more}."


def _named(server: ServerStatus, moment: Callable[[float], str]) -> str:
    since = f" since {moment(server.since)}" if server.since else ""
    why = f" ({result(server.check)})" if server.check and server.state is ServerState.DOWN else ""
    return f"{server.name}{since}{why}"


def _others(status: Status) -> Iterator[str]:
    """Yield the problems that are not told by the states of servers."""
    told = {f"pool {pool.name} has no server up" for pool in status.pools}
    yield from (f"{each[:1].upper()}{each[1:]}." for each in status.problems if each not in told)
    if status.degraded is not None:
        yield "The last good configuration runs, because the file has errors."


def result(check: CheckStatus) -> str:
    """Return the result of a check as operators know it: L7STS/500."""
    return f"{check.result}/{check.status}" if check.status else str(check.result)
