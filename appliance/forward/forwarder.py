"""Forwarding at work: pools follow the health board, and the kernel's rules follow the pools.

The rules are in the kernel, not in this process. A crash leaves them as they are, with the last verdicts, and
the next process takes them over. When the appliance stops, they first send new connections to no server; they
are removed when the last connection has ended, or when the drain time is over.
"""

import time
from collections.abc import Callable, Iterable, Sequence
from random import Random
from typing import Final

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_state import Health, LostMembers, PoolState
from appliance.core.forwarding.forwarded import ForwardedFrontend
from appliance.core.forwarding.lost_servers import LostServers
from appliance.core.forwarding.mark_numbers import MARK, MARK_MASK, Numbers, NumbersExhausted
from appliance.core.forwarding.plan import (
    KernelFrontend,
    families,
    forwarded,
    plan,
    server_name,
    taken_by_proxies,
)
from appliance.core.forwarding.ruleset import TABLE
from appliance.forward.ended_connections import end_connections, forget
from appliance.forward.kernel_tables import KernelTables
from appliance.forward.syncing import Syncing
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.model.snapshot.frontends import Flowtable
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.board_content import BoardFollower
from appliance.net.listening.listener_lending import OtherGroups
from appliance.net.logging import log as logs
from appliance.net.netlink.connection_room import RoomWatch
from appliance.net.netlink.conntrack import Conntrack
from appliance.net.netlink.networks import interfaces, networks
from appliance.net.netlink.table_notices import TableNotices
from appliance.net.nftables.forwarding import objections
from appliance.net.nftables.nftables import NftablesError
from appliance.wire.boards import health_board
from appliance.wire.nftables.nftables_commands import Family

_GLANCE: Final = 0.05  # seconds between two reads of the board's count of changes, as in workers
_STANDING: Final = 0.5  # seconds between two checks whether the rules are intact
_SETTLE: Final = 5.0  # seconds between two checks of our own networks, and of what proxies have taken
_LEAVING: Final = 30.0  # seconds that a proxy has until its workers listen, as for binds of other groups
_ENDED: Final = 0.5  # seconds between two checks whether the last connection has ended


class Forwarder:
    """The frontends that the kernel forwards.

    `trouble` is what is wrong with the rules. `on_fault` is called with a bug that has ended the polling: the
    program no longer works.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        tables: KernelTables,
        *,
        on_fault: Callable[[BaseException | None], None],
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.trouble = ""
        self.log = log
        self.frontends: tuple[KernelFrontend, ...] = ()
        self.pools: dict[str, PoolState] = {}
        self.numbers = Numbers()
        self._lost = LostServers()
        self.tables = tables
        self._paths = paths
        self._leaving_until = 0.0
        self._board = BoardFollower(paths.health_board, health_board.decode)
        self._health: Health = {}
        self._new_verdicts()  # now, so that the first rules follow them
        self._taken_over = False
        self._room = RoomWatch()
        self._unflowing: dict[Family, str] = {}
        self._unguarded = ""
        self._removed = Event()
        self.syncing = Syncing(paths, log, on_fault=on_fault)
        self._notices = TableNotices(TABLE, on_removal=self._removed.set, on_fault=on_fault)
        self._looks = gevent.spawn(self._look)
        self._looks.link_exception(lambda ended: on_fault(ended.exception))

    # Configuration

    def apply(self, snapshot: Snapshot) -> None:
        """Forward what a snapshot says. When this returns, the kernel does so, or `trouble` says why not."""
        self.log = logs.obey(FORWARD, snapshot.log)
        leaving = taken_by_proxies(self.frontends, snapshot)
        self._leaving_until = time.monotonic() + _LEAVING
        self.snapshot, self.frontends = snapshot, (*forwarded(snapshot), *leaving)
        lost = self._apply_pools(snapshot)
        self.settle()
        self._lose(lost)
        self.syncing.follow(snapshot, self.log)
        if not self.trouble:
            OtherGroups(self._paths, FORWARD).taken(snapshot.number)

    def _apply_pools(self, snapshot: Snapshot) -> list[LostMembers]:
        """Take the pools of a snapshot; return members that were lost before we had them."""
        before, lost = self.pools, list[LostMembers]()
        self.pools = {}
        for name in dict.fromkeys(each.config.pool or "" for each in self.frontends):
            config, known = snapshot.pool(name), before.get(name)
            if config is None and known is not None:
                self.pools[name] = known  # of a frontend that is being removed: as it was
            elif config is not None and known is not None:
                lost.append(known.apply(config))
                self.pools[name] = known
            elif config is not None:
                random = Random()  # noqa: S311  # spreads load, protects nothing
                self.pools[name] = PoolState(config, workers=1, index=0, random=random)
                lost.append(self.pools[name].observe(self._health))
        return lost

    # Polling

    def _look(self) -> None:
        due, standing, removed = 0.0, 0.0, False
        while True:
            if self._new_verdicts():
                lost = [each.observe(self._health) for each in self.pools.values()]
                self.settle()
                self._lose(lost)
            now = time.monotonic()
            self._end_connections(self._lost.take(self.pools, now))
            self._room.look(self.log, now)
            if now >= due:
                due = now + _SETTLE
                self._let_leave(now)
                self.settle()
            elif now >= standing:
                standing = now + _STANDING
                self._mend(unsure=self.tables.unsure)
            elif removed:
                self._mend(unsure=False)
            removed = self._removed.wait(_GLANCE)
            self._removed.clear()

    def _lose(self, lost: Iterable[LostMembers]) -> None:
        """End the connections of lost servers, later where another node may continue them."""
        synced = {each.config.pool for each in self.frontends if each.config.sync}
        closing = [member for each in lost for member in each.closing]
        self._lost.add((each for each in closing if each.pool in synced), time.monotonic())
        ending = [each for each in closing if each.pool not in synced]
        self._end_connections([*ending, *(member for each in lost for member in each.relieved)])

    def _end_connections(self, lost: Iterable[PoolMember]) -> None:
        """End the connections of lost servers, once no new connections go there."""
        owners = {
            self.numbers.number(server_name(each.name, member.pool, member.name)): member.label
            for member in lost
            for each in self.frontends
            if each.config.pool == member.pool
        }
        if not owners:
            return
        try:
            offloaded = self.tables.stop_offload()
            ended = end_connections(owners, but=self.syncing.elsewhere)
        except (OSError, NftablesError) as error:
            for server in dict.fromkeys(owners.values()):
                self.log.error("connections-not-ended", server=server, reason=str(error))  # noqa: TRY400  # no bug
            return
        for server, count in ended.items():
            self.log.info("connections-ended", server=server, connections=count)
        if offloaded:
            self.settle()

    def _let_leave(self, now: float) -> None:
        """Return frontends to proxies that have had time to bind them."""
        if now >= self._leaving_until:
            self.frontends = tuple(each for each in self.frontends if not each.leaving)

    def _mend(self, *, unsure: bool) -> None:
        """Write rules again that another program changed or removed, or whose state is unknown (`unsure`)."""
        try:
            stand = self.tables.stand()
        except NftablesError as error:
            self._note(str(error))
            return
        if unsure or not stand:
            self.settle()

    # Rules

    def _new_verdicts(self) -> bool:
        """Read the board if it has changed; without a board servers stay as they are."""
        board = self._board.changed()
        if board is not None:
            self._health = board.by_name()
        return board is not None

    def settle(self) -> None:
        """Make the rules follow; if the kernel refuses, the next poll tries again."""
        written: list[Family] = []
        try:
            self._take_over()
            if not self.tables.stand():
                self.log.warning("forward-rules-gone")
                self.tables.forget()
            own = networks()
        except (NftablesError, OSError) as error:
            self._note(str(error))
            return
        refused = [reason for family in Family if (reason := self._install(family, own, written))]
        self._note("; ".join((*dict.fromkeys(refused), *self._objections())))
        self._note_guard(self.tables.unguarded)
        if written:
            self.log.info("forward-rules", families=written, servers=self._serving())

    def _objections(self) -> tuple[str, ...]:
        """Return why the kernel drops packets that it should forward, as far as its settings show."""
        if self.snapshot is None:
            return ()
        used = {family for _, each in self.snapshot.forwarded for family in families(self.snapshot, each)}
        return tuple(objections(sorted(used)))

    def _take_over(self) -> None:
        if not self._taken_over:
            self.numbers.restore(self.tables.taken_over())
            self._taken_over = True

    def _install(self, family: Family, own: tuple[str, ...], written: list[Family]) -> str:
        """Write a family, and log it if there was anything to do; return why the kernel refuses it."""
        try:
            wanted = plan(family, self.frontends, self.pools, number=self.numbers.number, networks=own)
            if self.tables.install(family, wanted):
                written.append(family)
        except (NftablesError, NumbersExhausted) as error:
            return str(error)
        self._offload(family, wanted)
        return ""

    def _offload(self, family: Family, wanted: Sequence[ForwardedFrontend]) -> None:
        """Use flowtables too; without them the kernel forwards by the rules, so a failure is no trouble."""
        wants = any(each.config.flowtable is not Flowtable.NONE for each in wanted)
        try:
            self.tables.offload(family, wanted, interfaces() if wants else ())
            reason = ""
        except (NftablesError, OSError) as error:
            reason = str(error)
        if reason and reason != self._unflowing.get(family):
            self.log.warning("flowtable-failed", family=family, reason=reason)
        self._unflowing[family] = reason

    def _serving(self) -> dict[str, list[str]]:
        return {name: [each.name for each in pool.eligible] for name, pool in self.pools.items()}

    def _note(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble and trouble != before:
            self.log.error("forward-failed", reason=trouble)
        elif before and not trouble:
            self.log.info("forward-works-again")

    def _note_guard(self, reason: str) -> None:
        before, self._unguarded = self._unguarded, reason
        if reason and reason != before:
            self.log.warning("forward-not-guarded", reason=reason)

    # The end

    def drain(self, seconds: float, *, cut: Callable[[], bool]) -> None:
        """Send new connections to no server, and return when the last one has ended, or the time is over.

        It does not wait for connections with which another node continues.
        """
        self.frontends = ()
        self.settle()
        until = time.monotonic() + seconds
        conntrack = Conntrack()
        try:
            while time.monotonic() < until and not cut():
                if not conntrack.open_by_mark(MARK, MARK_MASK, but=self.syncing.elsewhere):
                    break
                gevent.sleep(_ENDED)
        finally:
            conntrack.close()

    def close(self) -> None:
        """Stop polling; the rules stay."""
        self._notices.close()
        self._looks.kill()
        self.syncing.close()
        self._board.close()

    def remove(self) -> None:
        """Remove the rules, and make conntrack forget the remaining connections."""
        self.syncing.end()  # first: what is forgotten here continues elsewhere
        conntrack = Conntrack()
        try:
            self.tables.remove()
            forget(conntrack, MARK, MARK_MASK, offloaded=True)
        finally:
            conntrack.close()
