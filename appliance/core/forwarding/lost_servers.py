"""Lost servers whose connections other nodes have too (`sync: true`), until the connections here end.

A node that is cut off loses all servers of a pool, and another node continues their connections. So those
of a lost server end only once each other server has been checked too, and one of them is still up.
"""

from collections.abc import Iterable, Mapping

from appliance.core.balancing.eligible_members import is_up
from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import PoolState
from appliance.model.snapshot.pools import OnDown


class LostServers:
    """Servers that were lost, with the monotonic second from which their connections may end."""

    def __init__(self) -> None:
        self._ripe_at: dict[PoolMember, float] = {}

    def add(self, members: Iterable[PoolMember], now: float) -> None:
        """Note members that were lost at `now`."""
        for each in members:
            check = each.config.check
            self._ripe_at[each] = now + (check.interval + check.timeout if check else 0.0)

    def take(self, pools: Mapping[str, PoolState], now: float) -> list[PoolMember]:
        """Return, once, the members whose connections end now; forget those that have come back."""
        self._ripe_at = {
            each: ripe_at for each, ripe_at in self._ripe_at.items() if _is_lost(each, pools.get(each.pool))
        }
        ripe = [each for each, at in self._ripe_at.items() if at <= now and pools[each.pool].has_up]
        for each in ripe:
            del self._ripe_at[each]
        return ripe


def _is_lost(member: PoolMember, pool: PoolState | None) -> bool:
    if pool is None or member not in pool.members:
        return False
    return member.unreachable or (pool.config.on_down is OnDown.CLOSE_SESSIONS and not is_up(member))
