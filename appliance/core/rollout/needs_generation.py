"""Which changes of a snapshot need a new generation of workers; all others are taken by those that run."""

from appliance.model.snapshot.frontends import Frontend, Group
from appliance.model.snapshot.snapshot import Snapshot


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
    return (
        frontend.name,
        frontend.binds,
        frontend.pool,
        frontend.respond,
        frontend.needs,
    )
