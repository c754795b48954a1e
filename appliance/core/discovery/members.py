"""The servers of one source over time: what the API shows, when that is accepted, which ones stay anyhow.

Call `decide` when something has changed, and once a second while servers are held: the checks of those that
came, or of those that vanished, may have new results.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

from appliance.core.discovery.removal_guard import Hold, decide
from appliance.model.server_names import server_name
from appliance.model.server_states import ServerState
from appliance.model.snapshot.discovery import ApiAddress, Source
from appliance.model.snapshot.found_servers import FoundServer, FoundSource
from appliance.model.snapshot.snapshot import Snapshot
from appliance.wire.boards.health_board import ServerHealthRecord

Records = Mapping[tuple[str, str], ServerHealthRecord]
"""The records of the health board by the names of pool and server."""

Value = TypeVar("Value")

REST: Final = 1.0
"""Seconds that a list must stay unchanged."""

PATIENCE: Final = 10.0
"""Seconds after which a list that keeps changing is accepted as it is."""


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


class Settling(Generic[Value]):
    """The last value of something, and since when. Times are monotonic seconds."""

    def __init__(self, value: Value | None = None) -> None:
        self.settled = value
        self._latest = value
        self._begun: float | None = None
        self._rests_at = 0.0

    @property
    def deadline(self) -> float | None:
        """Return when the latest value is accepted, None if it is already."""
        if self._begun is None:
            return None
        return min(self._rests_at, self._begun + PATIENCE)

    def observe(self, value: Value, now: float) -> None:
        """Store a value; one that is settled already cancels a pending one."""
        if value == self._latest:
            return
        self._latest = value
        if value == self.settled:
            self._begun = None
            return
        self._begun = now if self._begun is None else self._begun
        self._rests_at = now + REST

    def settle_at_once(self) -> None:
        """Accept the latest value now."""
        self.settled, self._begun = self._latest, None

    def settle(self, now: float) -> bool:
        """Accept the latest value if it is time to; return whether it differs."""
        deadline = self.deadline
        if deadline is None or now < deadline:
            return False
        self.settle_at_once()
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberChange:
    """What has changed, by name, for the log; a server that has another address is in `moved`."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shown:
    servers: tuple[FoundServer, ...]
    proxy: bool


class Members:
    """The servers of a source, beginning with those known at the start.

    `now` is monotonic seconds. `hold` is why vanished servers stay, `held` which; None and empty while none
    must.
    """

    def __init__(self, source: Source, known: FoundSource | None) -> None:
        self.source = source
        self.found = known or FoundSource(source=source, servers=())
        self.hold: Hold | None = None
        self.held: tuple[str, ...] = ()
        self._settling: Settling[_Shown] = Settling()

    @property
    def deadline(self) -> float | None:
        """Return when the API's last list is accepted, None if none is pending."""
        return self._settling.deadline

    def observe(self, servers: tuple[FoundServer, ...], *, proxy: bool | None, now: float) -> None:
        """Store what the API shows; `proxy` None: it is unknown, and stays as it is."""
        wanted = self.found.proxy if proxy is None else proxy
        self._settling.observe(_Shown(servers=servers, proxy=wanted), now)
        if not self.found.servers:
            self._settling.settle_at_once()

    def decide(
        self, now: float, *, verdicts: Verdicts, api: Collection[ApiAddress], wall: float
    ) -> MemberChange | None:
        """Return what changes at `now`, or None.

        `api` are the API servers that report themselves as serving, empty if unknown. `wall` is Unix seconds.
        """
        self._settling.settle(now)
        shown = self._settling.settled
        if shown is None:
            return None
        before = self.found
        vanished = {each.name for each in before.servers} - {each.name for each in shown.servers}
        undecided = vanished - verdicts.up - verdicts.down  # not to be removed on a guess
        decision = decide(
            before.servers,
            shown.servers,
            up=verdicts.up | undecided,
            gone=verdicts.down | self._not_serving(api),
        )
        self.hold, self.held = decision.hold, decision.held
        if (decision.servers, shown.proxy) == (before.servers, before.proxy):
            return None
        self.found = FoundSource(
            source=self.source, servers=decision.servers, proxy=shown.proxy, changed_at=wall
        )
        return _change(before, self.found)

    def _not_serving(self, api: Collection[ApiAddress]) -> frozenset[str]:
        """Return the masters that the API servers' own list lacks; if it has none, it proves nothing."""
        hosts = {each.host for each in api}
        here = {each.name for each in self.found.servers if each.host in hosts}
        if not self.source.is_masters or not here:
            return frozenset()
        return frozenset(each.name for each in self.found.servers) - here


def _change(before: FoundSource, after: FoundSource) -> MemberChange:
    old = {each.name: each for each in before.servers}
    new = {each.name: each for each in after.servers}
    return MemberChange(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        moved=tuple(name for name in new if name in old and new[name] != old[name]),
    )
