"""What the checks say of the servers of a source, over all pools that have them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from appliance.model.server_names import server_name
from appliance.model.server_states import ServerState
from appliance.model.snapshot.discovery import Source
from appliance.model.snapshot.found_servers import FoundServer
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.health_board import ServerHealthRecord

Records = Mapping[tuple[str, str], ServerHealthRecord]
"""The records of the health board by the names of pool and server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """Names of servers: those that are up in some pool, and those that are down in every one.

    One in neither has its first check under way, and one that is unknown counts as up: uncertainty must not
    cost a server.
    """

    up: frozenset[str]
    down: frozenset[str]


def verdicts(
    source: Source, servers: Iterable[FoundServer], *, snapshot: Snapshot, records: Records
) -> Verdicts:
    """Return the verdicts on these servers, at their present addresses."""
    pools = [each.name for each in snapshot.pools if each.discover and each.discover.source == source]
    up, down = set(), set()
    for server in servers:
        found = [records.get((pool, server_name(server.name))) for pool in pools]
        states = {each.state for each in found if each is not None and each.host == server.host}
        if not states or ServerState.UP in states:
            up.add(server.name)
        elif states == {ServerState.DOWN}:
            down.add(server.name)
    return Verdicts(up=frozenset(up), down=frozenset(down))
