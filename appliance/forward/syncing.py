"""Keeps the connections of `sync: true` on all nodes: tends conntrackd, reports when this node has them.

The kernel's table has the connections of other nodes beside those of this one. They are another node's as
long as it has the virtual IP, and are not listed, counted or ended here.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

import gevent
from structlog.typing import FilteringBoundLogger

from appliance.core.forwarding.sync_state import ANSWERS_FOR, SyncPhase, SyncRole, SyncState
from appliance.forward.conntrackd import Conntrackd, ConntrackdFailed
from appliance.model.paths import Paths
from appliance.model.program_names import FORWARD
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.snapshot.sync import are_proxied, synced_addresses, synced_routers
from appliance.model.snapshot.virtual_router import VirtualRouter
from appliance.net.boards.board_content import content
from appliance.net.control.informing import inform
from appliance.net.netlink.conntrack import longest_silence
from appliance.net.netlink.networks import placed_addresses
from appliance.wire.boards import vrrp_board
from appliance.wire.conntrackd.conntrackd_config import Channel, ConntrackdSettings, conntrackd_config
from appliance.wire.conntrackd.conntrackd_control import ConntrackdStatistics
from appliance.wire.lines.forward_status import SyncStatus

_TENDED: Final = 0.5  # seconds between two looks
_AGAIN: Final = 5.0  # seconds between two starts of a conntrackd that does not run
_EXPIRES: Final = 432000  # seconds: the kernel's own (nf_conntrack_tcp_timeout_established)
_LIBERAL: Final = Path("/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal")
_LOOPBACK: Final = "lo"
_LOOPBACKS: Final = ("127.0.0.1", "::1")

_Places = Mapping[str, tuple[str, ...]]


class Syncing:
    """The connections of the snapshot applied last.

    `elsewhere` are the virtual IPs whose connections are another node's. `trouble` is why other nodes do not
    learn connections, "" if they do. `on_fault` is called with a bug that has ended the looks.
    """

    def __init__(
        self, paths: Paths, log: FilteringBoundLogger, *, on_fault: Callable[[BaseException | None], None]
    ) -> None:
        self.log = log
        self.trouble = ""
        self._paths = paths
        self._snapshot: Snapshot | None = None
        self._addresses: frozenset[str] = frozenset()
        self._conntrackd = Conntrackd(paths, log)
        self._state = SyncState()
        self._counted: ConntrackdStatistics | None = None
        self._start_at = 0.0
        self._held_at: dict[str, float] = {}
        self._looks = gevent.spawn(self._look_when_due)
        self._looks.link_exception(lambda ended: on_fault(ended.exception))

    @property
    def elsewhere(self) -> frozenset[str]:
        """The addresses whose connections are not this node's."""
        return self._addresses - _held(placed_addresses()) if self._addresses else frozenset()

    @property
    def addresses(self) -> frozenset[str]:
        """The virtual IPs whose connections all nodes have."""
        return self._addresses

    def follow(self, snapshot: Snapshot, log: FilteringBoundLogger) -> None:
        """Have other nodes learn the connections of a snapshot's frontends, soon."""
        self.log = self._conntrackd.log = log
        self._snapshot = snapshot
        self._addresses = frozenset(synced_addresses(snapshot))
        if self._addresses:
            _be_liberal(log)
        self._start_at = 0.0

    def status(self) -> SyncStatus | None:
        """Return the status, None without `sync`."""
        if not self._addresses:
            return None
        counted = self._counted
        return SyncStatus(
            state=self._state.phase.value,
            since=time.time() - (time.monotonic() - self._state.since),
            trouble=self.trouble,
            addresses=tuple(sorted(self._addresses)),
            received=counted.created + counted.updated if counted else 0,
            failed=counted.failed if counted else 0,
            bytes_sent=counted.sent if counted else 0,
            bytes_received=counted.received if counted else 0,
            errors=counted.errors + counted.lost if counted else 0,
        )

    def end(self) -> None:
        """End conntrackd: what this node forgets from now on, others keep."""
        self._looks.kill()
        self._conntrackd.stop()

    def close(self) -> None:
        """Stop looking; conntrackd continues."""
        self._looks.kill()
        self._conntrackd.close()

    def _look_when_due(self) -> None:
        while True:
            if self._snapshot is not None:
                self._look(self._snapshot)
            gevent.sleep(_TENDED)

    def _look(self, snapshot: Snapshot) -> None:
        routers = synced_routers(snapshot)
        if not routers:
            self._conntrackd.stop()
            self._state = SyncState()
            self._note("")
            return
        if self._state.phase is SyncPhase.UNSYNCED and time.monotonic() < self._start_at:
            return
        try:
            self._tend(snapshot, routers[0])
            self._note("")
        except (ConntrackdFailed, OSError) as error:
            self._start_at = time.monotonic() + _AGAIN
            self._counted = None
            self._state.lost(time.monotonic())
            self._note(str(error))
        if self._state.ready:
            self._inform({each.name for each in routers})

    def _tend(self, snapshot: Snapshot, router: VirtualRouter) -> None:
        places = placed_addresses()
        held = self._addresses & _held(places)
        reported = self._reported(held, time.monotonic())
        text = conntrackd_config(self._settings(snapshot, router, places, reported))
        pid, self._counted = self._conntrackd.run(text)
        if held != self._addresses & _held(placed_addresses()):
            return  # moved while conntrackd started: what this node has is not what it should send
        now, before = time.monotonic(), self._state.phase
        if before is SyncPhase.UNSYNCED and self._conntrackd.adopted:
            self._state.adopt(pid, self._counted, now)
        role = SyncRole.HOLDS if held else SyncRole.ANSWERS if reported else SyncRole.WAITS
        asked = self._state.look(
            pid, self._counted, now, role=role, expires=float(longest_silence() or _EXPIRES)
        )
        if asked is not None:
            self._conntrackd.send(asked)
        if self._state.phase is not before:
            write = self.log.warning if self._state.phase is SyncPhase.ALONE else self.log.info
            write(
                "sync", state=self._state.phase.value, received=self._counted.created + self._counted.updated
            )

    def _reported(self, held: frozenset[str], now: float) -> frozenset[str]:
        """Return the addresses whose connections this node sends: also those that it had just now."""
        self._held_at |= dict.fromkeys(held, now)
        self._held_at = {each: at for each, at in self._held_at.items() if now - at < ANSWERS_FOR}
        return self._addresses.intersection(self._held_at)

    def _settings(
        self, snapshot: Snapshot, router: VirtualRouter, places: _Places, reported: frozenset[str]
    ) -> ConntrackdSettings:
        virtual, paths = snapshot.virtual_addresses, self._paths
        exact = reported == self._addresses and are_proxied(snapshot, reported)
        own = sorted({each for found in places.values() for each in found} - virtual)
        others = sorted(virtual if exact else virtual - reported)
        return ConntrackdSettings(
            channel=_channel(router, places.get(router.interface, ()), virtual),
            reports=bool(reported),
            ignored=tuple(dict.fromkeys((*_LOOPBACKS, *own, *others))),
            in_kernel=not exact,
            control=str(paths.conntrackd_control),
            lock=str(paths.conntrackd_lock),
        )

    def _inform(self, names: set[str]) -> None:
        """Report to a waiting `vrrp` that this node has the connections of these virtual routers."""
        board = content(self._paths.vrrp_board, vrrp_board.decode)
        waiting = {each.name for each in board.routers if each.uninformed} if board else set()
        inform(self._paths, sorted(waiting & names), by=FORWARD)

    def _note(self, trouble: str) -> None:
        before, self.trouble = self.trouble, trouble
        if trouble and trouble != before:
            self.log.error("sync-failed", reason=trouble)
        elif before and not trouble:
            self.log.info("sync-works-again")


def _be_liberal(log: FilteringBoundLogger) -> None:
    """Have the kernel go on with connections of which it has not seen all (nf_conntrack-sysctl).

    Entries of other nodes are made so. Those that were this node's, and then another's, are not.
    """
    try:
        if _LIBERAL.read_text().strip() == "0":
            _LIBERAL.write_text("1")
    except OSError as error:  # a container may not write it
        log.warning("sync-strict", reason=error.strerror or str(error))


def _held(places: _Places) -> set[str]:
    """Return the addresses that this node answers for; `linger` keeps those that have moved on `lo`."""
    return {each for name, found in places.items() if name != _LOOPBACK for each in found}


def _channel(router: VirtualRouter, found: tuple[str, ...], virtual: frozenset[str]) -> Channel:
    """Return the way of a virtual router's advertisements; raises OSError."""
    peer = router.peers[0].partition("%")[0] if router.peers else None
    local = router.family == 6 and (peer is None or peer.startswith("fe80"))
    own = router.source or next(
        (
            each
            for each in found
            if (":" in each) == (router.family == 6)
            and (router.family == 4 or each.startswith("fe80") == local)
            and each not in virtual
        ),
        None,
    )
    if own is None:
        raise OSError(f"{router.interface} has no IPv{router.family} address of its own")
    return Channel(
        interface=router.interface, family=router.family, own=own, peer=peer, group=router.router_id
    )
