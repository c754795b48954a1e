"""The program `vrrp` without its commands: instances in their groups, netlink, tracker and board."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.boards.vrrp_publisher import FRESH, VrrpPublisher
from appliance.net.events.event_board import EventBoard
from appliance.net.files import snapshots, stopped_virtual_ips
from appliance.net.logging import log as logs
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.netlink import vrrp_leftovers
from appliance.net.netlink.address_record import AddressRecord
from appliance.net.netlink.links import Links
from appliance.net.netlink.namespace_claim import NamespaceClaim
from appliance.net.netlink.neighbours import Neighbours
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.routing import Routing
from appliance.net.netlink.virtual_addresses import Addresses
from appliance.net.privileges import process_capabilities
from appliance.net.process.realtime import Realtime
from appliance.vrrp.addresses.neighbour_queries import NeighbourQueries
from appliance.vrrp.addresses.peer_returns import PeerReturns
from appliance.vrrp.groups.opening import OpeningOutcome
from appliance.vrrp.groups.router_groups import RouterGroups
from appliance.vrrp.instance.shared_by_instances import RouterEnvironment
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.instance_events import RouterReports
from appliance.vrrp.interface_monitor import InterfaceMonitor
from appliance.vrrp.reload_faults import endangered
from appliance.vrrp.status import board_record
from appliance.vrrp.takeover.resumed_state import EarlierRun, ResumedState
from appliance.vrrp.tracks import Tracks
from appliance.wire.boards.vrrp_board import VrrpBoard, encode_router
from appliance.wire.boards.vrrp_board import encode as encode_board
from appliance.wire.lines.control import AnswerProblem

# Times in the shortest interval: the next run decides by the last advert on the board whether it can resume.
_PUBLISHED: Final = 4
_MARGIN: Final = 1.0  # seconds after the longest hand-over until a stop gives up waiting


class VrrpService:
    """The program; `before` is the state of an earlier run.

    While a predecessor still runs, resources that only one process can have, such as the tracker, wait until
    `predecessor_ended`. `taken_over` is whether a successor has taken this program's place. `takes_part` is
    False while the virtual routers are left to peers, after the line `stop` on a reload socket.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        loop: Loop,
        *,
        realtime: Realtime,
        before: EarlierRun,
        board: BoardWriter,
        closer: Closer,
    ) -> None:
        self.taken_over = False
        self.missing = process_capabilities.missing()
        self.realtime = realtime
        self.snapshot: Snapshot | None = None
        self.takes_part = not stopped_virtual_ips.are_stopped(paths)
        self._latest: Snapshot | None = None
        self._paths = paths
        self._log = log
        self._loop = loop
        self._alone = before.predecessor is None
        self._recorded: dict[VrrpInstance, tuple[int, bytes]] = {}
        self._stop_by: float | None = None
        self._claim = NamespaceClaim(vrrp_leftovers.CLAIM)
        self._links = Links()
        self._addresses = Addresses(AddressRecord(paths.owned_addresses))
        self._publisher = VrrpPublisher(board, self._board, on_trouble=self._board_trouble)
        self._tracks = Tracks(
            loop, self._links, log, heartbeat=paths.heartbeat("tracker"), groups=lambda: self.groups
        )
        self.reports = RouterReports(
            log,
            run=self._tracks.run,
            touch=self._publisher.touch,
            publish=EventBoard(paths.event_board(VRRP), VRRP),
        )
        if before.board is not None:
            self.reports.lateness.go_on(before.board)
        self._requests = Requests()
        self._routing = Routing(self._requests)
        self._asking = NeighbourQueries(loop, closer)
        environment = RouterEnvironment(
            loop=loop,
            links=self._links,
            addresses=self._addresses,
            routing=self._routing,
            requests=self._requests,
            neighbours=Neighbours(self._requests),
            closer=closer,
            asking=self._asking,
            returns=PeerReturns(self._asking),
            log=log,
            missing=self.missing,
            routers=lambda: (each.router for each in self.groups.instances),
        )
        self.groups = RouterGroups(environment, self.reports, self._open_instance, on_left=self._group_left)
        self._monitor = InterfaceMonitor(self._links, self.groups, self._tracks, log)
        if self.missing:
            log.error("capabilities-missing", missing=list(self.missing))
        if realtime.refused:
            log.warning("realtime-refused", refused=list(realtime.refused))
        loop.read(self._links.fileno(), self._monitor.readable)
        accepted = snapshots.accepted(self._paths, self._log)
        if accepted is not None:
            self._configure(accepted)
            resumed = ResumedState(self._addresses, before, self._log)
            self.groups.begin(self._routers(accepted), resume=resumed.resume)
            self._latest = accepted
            self._applied(accepted)
        if self._alone:
            self._clean()
        loop.add(self._publisher)
        loop.add(self._asking)
        loop.add(self)

    # Configuration

    def apply(self, snapshot: Snapshot, now: float, *, then: Callable[[OpeningOutcome], None]) -> None:
        """Change to the virtual routers of a snapshot; unchanged ones are not touched.

        `then` is called when all take part, or cannot: now, or after some turns of the loop.
        """
        self._configure(snapshot)
        self._latest = snapshot

        def ended(outcome: OpeningOutcome) -> None:
            if outcome is OpeningOutcome.DONE:
                self._applied(snapshot)
            then(outcome)

        self.groups.apply(self._routers(snapshot), now, then=ended)

    def take_part(self, now: float, *, wanted: bool, then: Callable[[OpeningOutcome], None]) -> None:
        """Leave all virtual routers in order, or take part in them again; `then` as for `apply`."""
        before, self.takes_part = self.takes_part, wanted
        if wanted is before or self._latest is None:
            then(OpeningOutcome.DONE)
            return
        self._log.info("takes-part" if wanted else "leaves-all")
        self.apply(self._latest, now, then=then)

    def _routers(self, snapshot: Snapshot) -> tuple[VirtualRouter, ...]:
        return snapshot.virtual_routers if self.takes_part else ()

    def endangered(self, snapshot: Snapshot) -> tuple[AnswerProblem, ...]:
        """Return a problem for each virtual router that is active here and that a snapshot puts in fault."""
        return tuple(endangered(self.groups.instances, snapshot.virtual_routers, self._links))

    def _configure(self, snapshot: Snapshot) -> None:
        self._log = self.reports.log = self._tracks.log = self._monitor.log = logs.obey(VRRP, snapshot.log)
        # Two trackers would kill each other's scripts as leftovers. Ours starts before the first transition,
        # which may have a notify command.
        if self._alone:
            self._tracks.require(snapshot.virtual_routers)

    def _applied(self, snapshot: Snapshot) -> None:
        """Send the tracker its tracks, and publish; if done earlier, a verdict would find no instance."""
        self.snapshot = snapshot
        adverts = (each.advert for each in snapshot.virtual_routers)
        self._publisher.fresh = max(FRESH, min(adverts, default=0.0) / _PUBLISHED)
        self._tracks.report()
        self._publisher.touch()

    def predecessor_ended(self) -> None:
        """Begin what two processes cannot do at once: run the tracker, and remove leftovers."""
        self._alone = True
        self._claim.close()
        self._claim = NamespaceClaim(vrrp_leftovers.CLAIM)
        self._tracks.require(each.router for each in self.groups.instances)
        self._clean()
        self._log.info("taken-over", routers=[each.name for each in self.groups.instances])

    def end_for_successor(self) -> None:
        """Exit without an advert or a change of addresses: a successor has taken over both."""
        self.taken_over = True
        self._loop.stop()

    def _clean(self) -> None:
        """Remove addresses, routes and macvlans that an earlier run left and no instance here uses."""
        if self.missing:
            return
        vrrp_leftovers.remove(
            self._addresses,
            self._routing,
            self._requests,
            routers=[each.router for each in self.groups.instances],
            in_use={
                each.holder.interface.index
                for each in self.groups.instances
                if each.holder.interface is not None
            },
            alone=self._claim.held,
            log=self._log,
        )

    def _open_instance(self, instance: VrrpInstance, now: float) -> None:
        """Give a new instance the state of its interface, and of the interfaces that it tracks."""
        instance.update_link(self._links.state(instance.router.interface), now)
        self._tracks.update_interfaces(instance)

    # The end

    @property
    def deadline(self) -> float | None:
        """Return when a stop gives up waiting, or when the interfaces must be read again."""
        return min((at for at in (self._stop_by, self._monitor.retry_at) if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Read the interfaces again, or stop without waiting any longer."""
        self._monitor.tick(now)
        if self._stop_by is not None and now >= self._stop_by:
            self._cut()

    def _cut(self) -> None:
        self._log.warning(
            "stop-cut", routers=[name for group in self.groups.leaving for name in group.instances]
        )
        self._loop.stop()

    @property
    def stopping(self) -> bool:
        """Return whether the program stops: then it refuses commands that change something."""
        return self._stop_by is not None

    def stop(self, now: float) -> None:
        """Stop all instances, then the loop; a second call no longer waits for hand-overs."""
        if self._stop_by is not None:
            self._loop.stop()
            return
        patience = max((each.router.hand_over for each in self.groups.instances), default=0.0)
        self._stop_by = now + patience + _MARGIN
        self.groups.stop(now)
        self._end_when_left()

    def close(self) -> None:
        """Write the board for the last time, remove the addresses still held, and close everything."""
        self._publisher.close()
        self.groups.close()
        self._asking.close()
        self._tracks.close()
        self._addresses.close()
        self._requests.close()
        self._links.close()
        self._claim.close()

    def _group_left(self) -> None:
        self._publisher.touch()
        self._end_when_left()

    def _end_when_left(self) -> None:
        if self._stop_by is not None and not self.groups.leaving:
            self._loop.stop()

    # The board

    def _board(self) -> bytes:
        lateness = self.reports.lateness
        return encode_board(
            VrrpBoard(
                snapshot=self.snapshot.number if self.snapshot else 0,
                pid=os.getpid(),
                written_at=time.time(),
                monotonic=time.monotonic(),
                late_wakeups=lateness.count,
                latest_wakeup=lateness.latest,
                realtime=self.realtime.scheduler,
                routers=(),
            ),
            tuple(self._records()),
        )

    def _records(self) -> Iterator[bytes]:
        """Yield the board's record of each router; without an event in its group, the last one is reused."""
        before, self._recorded = self._recorded, {}
        for group in self.groups:
            for each in group.instances.values():
                known = before.get(each)
                if known is None or known[0] != group.changes:
                    known = group.changes, encode_router(board_record(each))
                self._recorded[each] = known
                yield known[1]

    def _board_trouble(self, reason: str) -> None:
        if reason:
            self._log.error("board-not-written", board=str(self._paths.vrrp_board), reason=reason)
        else:
            self._log.info("board-written", board=str(self._paths.vrrp_board))
