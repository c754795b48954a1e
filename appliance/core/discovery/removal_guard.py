"""The rules that protect a pool from the API: a server that it omits may serve, and the API may be wrong.

New servers are used at once, because checks decide about them. Vanished servers are removed

- never all of them: an empty list changes nothing;
- never the last ones that serve, whatever else is there;
- never more than half of those that serve, unless others agree: the checks, or the API servers' own list.
"""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from appliance.model.snapshot.found_servers import FoundServer


class Hold(StrEnum):
    """Why servers stay that the API no longer shows."""

    EMPTY = "the list is empty: all servers are kept"
    LAST = "no other server is up"
    HALF = "more than half of the servers that are up would go at once"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The servers from now on; `held` are the names of vanished ones that stay, and why."""

    servers: tuple[FoundServer, ...]
    held: tuple[str, ...] = ()
    hold: Hold | None = None


def decide(
    current: Collection[FoundServer],
    shown: Collection[FoundServer],
    *,
    up: Collection[str],
    gone: Collection[str],
) -> Decision:
    """Return the servers from now on.

    `current` are those until now, `shown` the API's. `up` are the names of current ones that are up by
    checks, `gone` those that another source reports as not serving.
    """
    known = {each.name: each for each in current}
    wanted = {each.name: each for each in shown}
    # One that has another address is another machine: the old one vanished.
    vanished = {name for name, each in known.items() if name not in wanted or wanted[name].host != each.host}
    serving = set(up) & known.keys()
    hold, held = _held(vanished, serving, empty=not wanted, gone=set(gone))
    kept = {name: known[name] for name in held}
    return Decision(servers=_ordered(wanted | kept), held=tuple(sorted(held)), hold=hold)


def _held(
    vanished: set[str], serving: set[str], *, empty: bool, gone: set[str]
) -> tuple[Hold | None, set[str]]:
    """Return why some of the vanished servers stay, and which."""
    if vanished and empty:
        return Hold.EMPTY, vanished
    leaving = vanished & serving
    if leaving and leaving == serving:
        return Hold.LAST, leaving
    doubtful = leaving - gone
    if 2 * len(doubtful) > len(serving):
        return Hold.HALF, doubtful
    return None, set()


def _ordered(servers: dict[str, FoundServer]) -> tuple[FoundServer, ...]:
    return tuple(servers[name] for name in sorted(servers))
