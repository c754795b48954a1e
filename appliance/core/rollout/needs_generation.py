"""Which changes of a snapshot need a new generation of workers; all others are taken by those that run."""

from typing import Final

from appliance.model.snapshot.diff import ORDER
from appliance.model.snapshot.frontends import Frontend, Group
from appliance.model.snapshot.snapshot import Snapshot

_FIXED: Final = ("name", "binds", "pool", "sni", "respond", "needs")
"""What of a frontend a worker has from its start."""


def needs_generation(*, before: Snapshot, after: Snapshot, group: str) -> bool:
    """Say whether the workers of `group` have to be started anew.

    What a worker listens on, and what it does there, is fixed when it starts; all else is not: pools, who may
    connect, limits, timeouts, logging.
    """
    return _fixed(before.group(group)) != _fixed(after.group(group))


def _fixed(group: Group | None) -> object:
    if group is None:
        return None
    return group.workers, frozenset(map(_fixed_part, group.frontends))


def _fixed_part(frontend: Frontend) -> object:
    return tuple(getattr(frontend, name) for name in _FIXED)


def is_fixed(path: tuple[str, ...]) -> bool:
    """Say whether a change at a path of a snapshot's tree (`model.snapshot.diff`) needs a new generation."""
    match path:
        case ("groups", name) | ("groups", name, "workers"):
            return name != ORDER
        case ("groups", _, "frontends", name, *rest):
            return name != ORDER and (not rest or rest[0] in _FIXED)
    return False
