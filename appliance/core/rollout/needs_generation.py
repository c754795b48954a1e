"""Which changes of a snapshot need a new generation of workers; running workers apply all others."""

from typing import Final

from appliance.model.snapshot.diff import ORDER
from appliance.model.snapshot.frontends import Frontend, Group
from appliance.model.snapshot.snapshot import Snapshot

_FIXED: Final = ("name", "binds", "pool", "clients", "sni", "respond", "needs")
"""The fields of a frontend that a worker has from its start."""


def needs_generation(*, before: Snapshot, after: Snapshot, group: str) -> bool:
    """Return whether the workers of `group` must be replaced.

    A worker's listening addresses, and what it does there, are fixed when it starts. All else is not: pools,
    allowed clients, limits, timeouts, logging.
    """
    return _fixed(before.group(group)) != _fixed(after.group(group))


def _fixed(group: Group | None) -> object:
    if group is None:
        return None
    return group.workers, frozenset(map(_fixed_part, group.frontends))


def _fixed_part(frontend: Frontend) -> object:
    return tuple(getattr(frontend, name) for name in _FIXED)


def is_fixed(path: tuple[str, ...]) -> bool:
    """Return whether a change at this path of a snapshot (`model.snapshot.diff`) needs a new generation."""
    match path:
        case ("groups", name) | ("groups", name, "workers"):
            return name != ORDER
        case ("groups", _, "frontends", name, *rest):
            return name != ORDER and (not rest or rest[0] in _FIXED)
    return False
