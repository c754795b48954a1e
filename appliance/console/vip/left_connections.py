"""The connections at addresses that this node has left, as `linger` and `migrate` report them."""

from collections.abc import Collection

from appliance.wire.lines.linger_status import KeeperStatus, KeptStatus, LingerStatus
from appliance.wire.lines.migrate_status import DepartureStatus, MigrateStatus


class LeftConnections:
    """Those of one virtual IP, or of all if `name` is None. Programs that are not used answer None."""

    def __init__(
        self, linger: LingerStatus | None, migrate: MigrateStatus | None, *, name: str | None = None
    ) -> None:
        found: list[tuple[str, KeptStatus | KeeperStatus]] = []
        if linger:
            found += [("this node", each) for each in linger.addresses]
            found += [(each.node, each) for each in linger.others]
        self._routers = {each.address: each.router for _, each in found}
        self._kept = [
            (node, each, each.left_at)
            for node, each in found
            if each.left_at is not None and name in (None, each.router)
        ]
        departures = migrate.departures if migrate else ()
        self._moved = [each for each in departures if name in (None, self._router(each))]

    @property
    def routers(self) -> frozenset[str]:
        """Return the virtual routers of these addresses; "" stands for addresses without one."""
        return frozenset((*map(self._router, self._moved), *(each.router for _, each, _ in self._kept)))

    def kept(self, routers: Collection[str]) -> list[tuple[str, KeptStatus | KeeperStatus, float]]:
        """Return the addresses of these routers with open connections: at which node, and since when."""
        return [(node, each, left_at) for node, each, left_at in self._kept if each.router in routers]

    def moved(self, routers: Collection[str]) -> list[DepartureStatus]:
        """Return the sessions of these routers' addresses that have moved to another node, or stay."""
        return [each for each in self._moved if self._router(each) in routers]

    def values(self) -> dict[str, object]:
        """Return everything as JSON has it."""
        kept = [
            {"address": each.address, "node": node, "connections": each.connections, "left_at": left_at}
            for node, each, left_at in self._kept
        ]
        return {"connections": kept, "sessions": self._moved}

    def _router(self, departure: DepartureStatus) -> str:
        return self._routers.get(departure.address, "")
