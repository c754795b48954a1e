"""Which members of a pool take new connections: those that are up, in a panic the others too, then backups.

The words are HAProxy's (`backup`, `weight`) and Envoy's (`panic`, its panic threshold).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from appliance.core.balancing.pool_member import PoolMember
from appliance.model.server_states import AdminState, ServerState


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleMembers:
    """The members that take new connections; `panic` says that their checks do not count."""

    members: tuple[PoolMember, ...]
    panic: bool


def eligible_members(members: Iterable[PoolMember], *, panic: float) -> EligibleMembers:
    """Return which members take new connections.

    `panic` is the part of the servers that have to be up. With fewer up it is more likely that the checks are
    wrong than that so many servers are down, and those that are left could not carry the load of all.
    """
    reachable = [member for member in members if member.address is not None]
    primaries = [member for member in reachable if not member.config.backup]
    up = [member for member in primaries if is_up(member)]
    if _panics(primaries, up, panic):
        return EligibleMembers(members=tuple(filter(_counts_for_panic, primaries)), panic=True)
    backups = [member for member in reachable if member.config.backup and is_up(member)]
    return EligibleMembers(members=tuple(up or backups), panic=False)


def is_up(member: PoolMember) -> bool:
    """Whether checks and operator let a member take new connections: it is up, and its weight is above 0."""
    return member.state is ServerState.UP and member.weight > 0.0


def _panics(primaries: Sequence[PoolMember], up: Sequence[PoolMember], panic: float) -> bool:
    """Return whether too few are up of those that the operator wants and the checks have judged.

    With none up the checks are waited for where they have not ended: the next one may be.
    """
    if not up and any(member.state is ServerState.CHECKING for member in primaries):
        return False
    return len(up) < sum(map(_counts_for_panic, primaries)) * panic


def _counts_for_panic(member: PoolMember) -> bool:
    judged = member.state is not ServerState.CHECKING
    return judged and member.admin is AdminState.READY and member.whole_weight > 0
