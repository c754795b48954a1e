"""The first lines of the status page: whether it serves, and what is wrong, since when and why."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from appliance.core.status.problem_kinds import ProblemKind
from appliance.core.status.status import CheckStatus, PoolStatus, ServerStatus, Status, VirtualIpStatus
from appliance.model.server_states import ServerState

Moment = Callable[[float], str]
"""Writes a time (Unix seconds) in the form for operators."""

_OUT: dict[ServerState | None, str] = {
    ServerState.DOWN: "down",
    ServerState.MAINT: "in maintenance",
    ServerState.DRAIN: "draining",
    ServerState.CHECKING: "not checked yet",
    None: "unknown",
}
_NAMED = 3


class Level(StrEnum):
    """How urgent an operator's attention is; CRITICAL: clients notice."""

    OK = "well"
    ATTENTION = "attention"
    CRITICAL = "ill"


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """The headline: whether it serves, then a sentence for each problem."""

    level: Level
    first: str
    others: tuple[str, ...]

    @property
    def text(self) -> str:
        """All in one line."""
        return " ".join((self.first, *self.others))


def headline(status: Status, *, moment: Moment) -> Headline:
    """Return the headline of a status."""
    serves = _serves(status)
    lost = [each for each in status.virtual_ips if _is_lost(each)]
    others = (
        *(f"Pool {pool.name} has no server up." for pool in status.pools if not pool.ok),
        *map(_lost, lost),
        *_servers(status, moment),
        *_problems(status),
        *_degraded(status, moment),
    )
    level = Level.CRITICAL if lost or not serves else Level.ATTENTION if others else Level.OK
    return Headline(level=level, first=_first(serves=serves, reached=not lost), others=others)


def result(check: CheckStatus) -> str:
    """Return the result of a check as operators know it: L7STS/500."""
    return f"{check.result}/{check.status}" if check.status else str(check.result)


def _first(*, serves: bool, reached: bool) -> str:
    if serves and not reached:
        return "Serving, but no node holds a virtual IP."
    return "Serving." if serves else "Not serving."


def _serves(status: Status) -> bool:
    """Return whether clients are served; without proxies, whether there is a virtual IP."""
    proxies = [each for each in status.programs if each.workers is not None and each.expected]
    if not proxies:
        return bool(status.virtual_ips) and all(each.state for each in status.virtual_ips)
    return all(pool.ok for pool in status.pools) and all(each.workers for each in proxies)


def _is_lost(virtual_ip: VirtualIpStatus) -> bool:
    """Return whether no known node holds a virtual IP; unknown if `vrrp` does not answer."""
    return virtual_ip.active is False and virtual_ip.active_peer is None


def _lost(virtual_ip: VirtualIpStatus) -> str:
    return f"Virtual IP {virtual_ip.name} is held by no router that this node receives from."


def _servers(status: Status, moment: Moment) -> Iterator[str]:
    for pool in status.pools:
        for state, word in _OUT.items():
            out = [each for each in pool.servers if each.state is state]
            if out:
                count = f"{len(out)} of {len(pool.servers)} {_members(pool)}"
                verb = "is" if len(out) == 1 else "are"
                yield f"{count} {verb} {word}{_which(out, moment)}."


def _members(pool: PoolStatus) -> str:
    """Return the noun for the servers of a pool: masters, or servers of apps."""
    return pool.name if pool.name.endswith("s") else f"servers of {pool.name}"


def _which(out: list[ServerStatus], moment: Moment) -> str:
    if len(out) == 1:
        why = f": {reason}" if (reason := _reason(out[0])) else ""
        return f"{_since(out[0], moment)}{why} ({out[0].name})"
    named = ", ".join(_named(each, moment) for each in out[:_NAMED])
    more = f" and {len(out) - _NAMED} more" if len(out) > _NAMED else ""
    return f": {named}{more}"


def _named(server: ServerStatus, moment: Moment) -> str:
    why = f" ({reason})" if (reason := _reason(server)) else ""
    return f"{server.name}{_since(server, moment)}{why}"


def _since(server: ServerStatus, moment: Moment) -> str:
    return f" since {moment(server.since)}" if server.since else ""


def _reason(server: ServerStatus) -> str:
    return result(server.check) if server.check and server.state is ServerState.DOWN else ""


def _problems(status: Status) -> Iterator[str]:
    """Yield the problems that the states of servers do not show."""
    others = (each for each in status.problems if each.kind is not ProblemKind.POOL_DOWN)
    return (f"{each[:1].upper()}{each[1:]}." for each in others)


def _degraded(status: Status, moment: Moment) -> Iterator[str]:
    if status.degraded is not None:
        yield f"The last good configuration runs since {moment(status.degraded.since)}: the file has errors."
