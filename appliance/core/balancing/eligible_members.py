"""Which members of a pool take new connections: those that are up; in a panic the others too; then backups.

Of several backups the first that is up takes all of them: two servers that both believe themselves to be the
one to write to (Galera, Redis) would diverge for good. The words are HAProxy's (`backup`, `weight`, `option
allbackups`) and Envoy's (`panic`, its panic threshold).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from appliance.core.balancing.pool_member import PoolMember
from appliance.model.server_states import AdminState, ServerState


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleMembers:
    """The members that take new connections; `panic`: their checks do not count."""

    members: tuple[PoolMember, ...]
    panic: bool


def eligible_members(
    members: Iterable[PoolMember],
    *,
    panic: float,
    all_backups: bool = False,
    serving: Collection[PoolMember] = (),
) -> EligibleMembers:
    """Return which members take new connections; `members` are in the configuration's order.

    `panic` is the part of the servers that must be up. If fewer are up, the checks are probably wrong, and
    otherwise those that are up could not carry the whole load. `serving` are the
    members that take connections so far: backups among them continue while a server before them has its first
    check, but others are not used until that server is known to be down.
    """
    reachable = [member for member in members if member.address is not None]
    primaries = [member for member in reachable if not member.config.backup]
    up = [member for member in primaries if is_up(member)]
    if _panics(primaries, up, panic):
        return EligibleMembers(members=tuple(filter(_counts_for_panic, primaries)), panic=True)
    if not up:
        backups = [member for member in reachable if member.config.backup]
        up = _used_backups(primaries, backups, all_backups=all_backups, serving=serving)
    return EligibleMembers(members=tuple(up), panic=False)


def is_up(member: PoolMember) -> bool:
    """Whether checks and operator let a member take new connections: it is up, and its weight is above 0."""
    return member.state is ServerState.UP and member.weight > 0.0


def _used_backups(
    primaries: Sequence[PoolMember],
    backups: Sequence[PoolMember],
    *,
    all_backups: bool,
    serving: Collection[PoolMember],
) -> list[PoolMember]:
    """Return the backups that replace the primaries: the first that is up, or all that are."""
    up = [member for member in backups if is_up(member)]
    used = up if all_backups else up[:1]
    if used and used[0] in serving:
        return used
    before = primaries if all_backups or not used else (*primaries, *backups[: backups.index(used[0])])
    return [] if any(map(_may_come_up, before)) else used


def _may_come_up(member: PoolMember) -> bool:
    """Whether a member that the operator wants has not ended its first check."""
    return member.state is ServerState.CHECKING and _is_wanted(member)


def _panics(primaries: Sequence[PoolMember], up: Sequence[PoolMember], panic: float) -> bool:
    """Return whether too few members are up of those that the operator wants and the checks have judged.

    With none up, pending first checks are awaited: the next one may be up.
    """
    if panic <= 0.0:  # nearly always; at each change it spares a look at each server
        return False
    if not up and any(member.state is ServerState.CHECKING for member in primaries):
        return False
    return len(up) < sum(map(_counts_for_panic, primaries)) * panic


def _counts_for_panic(member: PoolMember) -> bool:
    return member.state is not ServerState.CHECKING and _is_wanted(member)


def _is_wanted(member: PoolMember) -> bool:
    return member.admin is AdminState.READY and member.whole_weight > 0
