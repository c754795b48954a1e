"""What `vrrp` does: its virtual routers in their groups, and everything that they hear of from outside."""

import os
import time
from collections.abc import Callable, Iterator
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.boards import BoardWriter
from appliance.net.boards.vrrp_publisher import FRESH, VrrpPublisher
from appliance.net.files import snapshots
from appliance.net.logging import log as logs
from appliance.net.loop.closer import Closer
from appliance.net.loop.loop import Loop
from appliance.net.netlink import vrrp_leftovers
from appliance.net.netlink.addresses import Addresses
from appliance.net.netlink.links import LinkChange, Links
from appliance.net.netlink.namespace_claim import NamespaceClaim
from appliance.net.netlink.neighbours import Neighbours
from appliance.net.netlink.netlink import Requests
from appliance.net.netlink.owned_addresses import OwnedAddresses
from appliance.net.process.realtime import Realtime
from appliance.vrrp.addresses.address_questions import AddressQuestions
from appliance.vrrp.addresses.peer_returns import PeerReturns
from appliance.vrrp.instance.environment import RouterEnvironment
from appliance.vrrp.instance.vrrp_instance import VrrpInstance
from appliance.vrrp.opening import OpeningOutcome
from appliance.vrrp.reload_faults import endangered
from appliance.vrrp.reports import RouterReports
from appliance.vrrp.router_group import RouterGroup
from appliance.vrrp.router_groups import RouterGroups
from appliance.vrrp.status import record
from appliance.vrrp.takeover.resumed_state import EarlierRun, ResumedState
from appliance.vrrp.tracks import Tracks
from appliance.wire.boards.vrrp_board import VrrpBoard, encode_router
from appliance.wire.boards.vrrp_board import encode as encode_board
from appliance.wire.lines.control import AnswerProblem

PROGRAM: Final = "vrrp"
_PUBLISHED: Final = 4  # times in the shortest interval: what the next start has to know is when that was
_LOOK_AGAIN: Final = 1.0  # seconds until the kernel is asked again for its interfaces
_WHOLE: Final = frozenset({LinkChange.APPEARED, LinkChange.DISAPPEARED})
_MARGIN: Final = 1.0  # seconds beyond the longest hand-over until a stop does not wait any longer


class VrrpProgram:
    """Everything but the commands. `before` is what was found of an earlier life.

    While a predecessor serves, what only one can have, as the tracker, waits until `succeed` says that it is
    gone. `relieved` is whether this one has got a successor.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        loop: Loop,
        *,
        missing: tuple[str, ...],
        realtime: Realtime,
        before: EarlierRun,
        board: BoardWriter,
    ) -> None:
        self.relieved = False
        self.missing = missing
        self.realtime = realtime
        self.snapshot: Snapshot | None = None
        self._paths = paths
        self._log = log
        self._loop = loop
        self._alone = before.predecessor is None
        self._recorded: dict[VrrpInstance, tuple[int, bytes]] = {}
        self._stop_by: float | None = None
        self._damage_said = False
        self._look_again: float | None = None
        self._claim = NamespaceClaim(vrrp_leftovers.CLAIM)
        self._links = Links()
        self._addresses = Addresses(OwnedAddresses(paths.owned_addresses))
        self._publisher = VrrpPublisher(board, self._board, on_trouble=self._board_trouble)
        self._tracks = Tracks(loop, self._links, log, groups=lambda: self.groups)
        self.reports = RouterReports(log, run=self._tracks.run, touch=self._publisher.touch, left=self._left)
        self._requests = Requests()
        closer = Closer()
        self._asking = AddressQuestions(loop, closer)
        environment = RouterEnvironment(
            loop=loop,
            links=self._links,
            addresses=self._addresses,
            requests=self._requests,
            neighbours=Neighbours(self._requests),
            closer=closer,
            asking=self._asking,
            returns=PeerReturns(self._asking),
            log=log,
            missing=missing,
            routers=lambda: (each.router for each in self.groups.instances),
        )
        self.groups = RouterGroups(environment, self.reports, self._look)
        if missing:
            log.error("capabilities-missing", missing=list(missing))
        if realtime.refused:
            log.warning("realtime-refused", refused=list(realtime.refused))
        loop.read(self._links.fileno(), self._links_changed)
        accepted = snapshots.accepted(self._paths, self._log)
        if accepted is not None:
            self._configure(accepted)
            inheritance = ResumedState(self._addresses, before, self._log)
            self.groups.begin(accepted.virtual_routers, resumes=inheritance.resumes)
            self._applied(accepted)
        if self._alone:
            self._clean()
        loop.add(self._publisher)
        loop.add(self._asking)
        loop.add(self)

    # Configuration

    def apply(self, snapshot: Snapshot, *, then: Callable[[OpeningOutcome], None]) -> None:
        """Make a snapshot's virtual routers real; those that did not change are not touched.

        `then` is called when all take part, or will not: now, or after some turns of the loop.
        """
        self._configure(snapshot)

        def ended(outcome: OpeningOutcome) -> None:
            if outcome is OpeningOutcome.DONE:
                self._applied(snapshot)
            then(outcome)

        self.groups.apply(snapshot.virtual_routers, time.monotonic(), then=ended)

    def endangered(self, snapshot: Snapshot) -> tuple[AnswerProblem, ...]:
        """Return why a snapshot would put into fault what is active here now."""
        return tuple(endangered(self.groups.instances, snapshot.virtual_routers, self._links))

    def _configure(self, snapshot: Snapshot) -> None:
        self._log = self.reports.log = self._tracks.log = logs.obey(PROGRAM, snapshot.log)
        if self._alone:  # two trackers would take each other's scripts for leftovers
            self._tracks.require(snapshot.virtual_routers)  # before anything that a command is to hear of

    def _applied(self, snapshot: Snapshot) -> None:
        """Have everything looked at that counts now, and publish; before, a verdict would find nobody."""
        self.snapshot = snapshot
        adverts = (each.advert for each in snapshot.virtual_routers)
        self._publisher.fresh = max(FRESH, min(adverts, default=0.0) / _PUBLISHED)
        self._tracks.tell()
        self._publisher.touch()

    def succeed(self) -> None:
        """Take the end of the predecessor: have all that two at a time cannot have."""
        self._alone = True
        self._claim.close()
        self._claim = NamespaceClaim(vrrp_leftovers.CLAIM)
        self._tracks.require(each.router for each in self.groups.instances)
        self._clean()
        self._log.info("taken-over", routers=[each.name for each in self.groups.instances])

    def relieve(self) -> None:
        """End without a word to anybody: a successor has everything that is held here."""
        self.relieved = True
        self._loop.stop()

    def _clean(self) -> None:
        """Remove what an earlier life left and nobody goes on with."""
        if self.missing:
            return
        vrrp_leftovers.remove(
            self._addresses,
            self._requests,
            ours={address for each in self.groups.instances for address in each.router.addresses},
            seats={
                each.holder.interface.index
                for each in self.groups.instances
                if each.holder.interface is not None
            },
            alone=self._claim.held,
            log=self._log,
        )

    # Interfaces

    def _look(self, instance: VrrpInstance) -> None:
        """Give a instance that is new the state of its interface, and of those that it tracks."""
        instance.look(self._links.state(instance.router.interface))
        self._tracks.look(instance)

    def _links_changed(self) -> None:
        now = time.monotonic()
        try:
            events = self._links.read()
        except OSError as error:
            self._log.error("interfaces-unread", reason=error.strerror or str(error))
            self._look_again = now + _LOOK_AGAIN
            return
        names = {event.name for event in events}
        removed = {
            (event.name, event.address) for event in events if event.change is LinkChange.ADDRESS_REMOVED
        }
        if self._links.damaged and not self._damage_said:
            self._damage_said = True
            self._log.error("netlink-damaged", count=self._links.damaged)
        moved = {event.address.partition("/")[0] for event in events}
        everywhere = any(event.change in _WHOLE for event in events)  # about its addresses nothing is told
        for group in (*self.groups, *self.groups.leaving):
            for each in group.instances.values():
                if everywhere or moved & each.virtual:
                    each.look_for_foreign()
                if names & {
                    each.router.interface,
                    each.holder.interface.name if each.holder.interface else "",
                }:
                    link = self._links.state(each.router.interface)
                    if each.concerns(link):
                        group.look(each, link, now)
                    self._restore(group, each, removed, now)
                if self._tracks.look(each):
                    group.weigh(each, now)

    def _restore(
        self, group: RouterGroup, instance: VrrpInstance, removed: set[tuple[str, str]], now: float
    ) -> None:
        """Put back what somebody else has removed from an active, and say so."""
        place = instance.holder.interface.name if instance.holder.interface else ""
        lost = [each for each in instance.holder.addresses if (place, each) in removed]
        if not lost:
            return
        if instance.may_restore(len(lost), now):
            group.restore(instance, now)
            self._log.warning("address-restored", router=instance.name, addresses=lost)
        group.moved()

    # The end

    @property
    def deadline(self) -> float | None:
        """Return until when a stop may take, or when the interfaces are looked at again."""
        return min((at for at in (self._stop_by, self._look_again) if at is not None), default=None)

    def tick(self, now: float) -> None:
        """Look at the interfaces again, or stop without waiting any longer."""
        if self._look_again is not None and now >= self._look_again:
            self._look_again = None
            self._links_changed()
        if self._stop_by is not None and now >= self._stop_by:
            self._cut()

    def _cut(self) -> None:
        self._log.warning(
            "stop-cut", routers=[name for group in self.groups.leaving for name in group.instances]
        )
        self._loop.stop()

    @property
    def stopping(self) -> bool:
        """Say whether it leaves: from then on it takes no command that changes something."""
        return self._stop_by is not None

    def stop(self, now: float) -> None:
        """Leave all virtual routers and end the loop when that is done; a second time without waiting."""
        if self._stop_by is not None:
            self._loop.stop()
            return
        patience = max((each.router.hand_over for each in self.groups.instances), default=0.0)
        self._stop_by = now + patience + _MARGIN
        self.groups.leave(now)
        self._end_when_left()

    def close(self) -> None:
        """Write the board for the last time and let go of everything, also of addresses still held."""
        self._publisher.close()
        self.groups.close()
        self._asking.close()
        self._tracks.close()
        self._addresses.close()
        self._requests.close()
        self._links.close()
        self._claim.close()

    def _left(self, group: RouterGroup) -> None:
        self.groups.remove(group)
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
        """Yield what the board says of each router; where nothing was done since the last time it is kept."""
        before, self._recorded = self._recorded, {}
        for group in self.groups:
            for each in group.instances.values():
                known = before.get(each)
                if known is None or known[0] != group.changes:
                    known = group.changes, encode_router(record(each))
                self._recorded[each] = known
                yield known[1]

    def _board_trouble(self, reason: str) -> None:
        if reason:
            self._log.error("board-not-written", board=str(self._paths.vrrp_board), reason=reason)
        else:
            self._log.info("board-written", board=str(self._paths.vrrp_board))
