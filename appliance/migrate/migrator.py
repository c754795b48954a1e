"""Follows the addresses: when one has left this node, its sessions go to a node that serves it.

A virtual IP has left when another node holds it, a shared one when this node leaves by command or stops, and
announces it no longer. Sessions of shared IPs may also be given away by a command, a share of them at a time.
"""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_interface
from typing import Final

import gevent
from gevent import ssl
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.migrate import link, tcp_repair
from appliance.migrate.arrivals import Arrivals
from appliance.migrate.departures import Departures, Target
from appliance.migrate.held_packets import HeldPackets
from appliance.migrate.link import LinkError
from appliance.migrate.owners import Owners
from appliance.migrate.withdrawn_addresses import WithdrawnAddresses
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.model.paths import Paths
from appliance.model.program_names import LINGER, MIGRATE
from appliance.model.snapshot.linger import MovedSessions
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.board_content import BoardFollower
from appliance.net.boards.worker_boards import worker_boards
from appliance.net.control.control_client import ControlUnavailable, ask, status_of
from appliance.net.events.event_board import EventBoard
from appliance.net.logging import log as logs
from appliance.wire.boards import vrrp_board
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines.control import ControlError, Question
from appliance.wire.lines.linger_status import LingerStatus
from appliance.wire.lines.migrate_status import DepartureStatus

_LOOK: Final = 0.5
"""Seconds between two looks whether an address has left, or sessions can move now that could not before."""

_LIVELY: Final = 30.0
"""Seconds after a change of `vrrp` in which `linger` is asked; later only while addresses are left."""

_SETTLED: Final = 0.5
"""Seconds after which an address has left for good: by then its packets are forwarded here."""

_RETRY: Final = 5.0
_ANSWERED: Final = 2.0
_MOVED: Final = 30.0  # seconds for a worker to move what it can


def interfaces_of(snapshot: Snapshot) -> dict[str, str]:
    """Return the interface of each virtual IP that moves with its connections."""
    return {
        str(ip_interface(address).ip): each.interface
        for each in snapshot.virtual_routers
        for address in each.here
    }


class Migrator:
    """The virtual IPs of the snapshot applied last. `trouble` is why sessions cannot move, empty if they can.

    `on_fault` is called with a bug that has ended the polling, or the accepting: the program no longer
    works.
    """

    def __init__(
        self, paths: Paths, log: FilteringBoundLogger, *, on_fault: Callable[[BaseException | None], None]
    ) -> None:
        self.snapshot: Snapshot | None = None
        self.log = log
        self.reports: dict[str, DepartureStatus] = {}
        self.taken = self.lost = 0
        self.arrivals: Arrivals | None = None
        self._left_because: dict[str, frozenset[str]] = {}
        self._paths = paths
        self._publish = EventBoard(paths.event_board(MIGRATE), MIGRATE)
        self._held = HeldPackets()
        self._owners = Owners(paths, log)
        self._targets: dict[str, tuple[Target, ...]] = {}
        self._asked_for: dict[str, tuple[Target, ...]] = {}
        self._withdrawn = WithdrawnAddresses(paths)
        self.departures = Departures(
            paths, self._held, self._owners, targets=self._targets_of, on_lost=self._lost, log=log
        )
        self._unsupported = tcp_repair.unsupported()
        self._refused = ""
        self._settings: MovedSessions | None = None
        self._contexts: tuple[ssl.SSLContext, ssl.SSLContext] | None = None
        self._listen_at = float("-inf")
        self._board = BoardFollower(paths.vrrp_board, vrrp_board.decode)
        self._lively_until = 0.0
        self._news = Event()
        self._on_fault = on_fault
        self._looks = gevent.spawn(self._look_when_due)
        self._looks.link_exception(lambda ended: on_fault(ended.exception))

    @property
    def trouble(self) -> str:
        """Return why no session can move, empty if they can."""
        return self._unsupported or self._refused

    def apply(self, snapshot: Snapshot) -> None:
        """Change to the virtual IPs and the settings of a snapshot."""
        self.log = self.departures.log = logs.obey(MIGRATE, snapshot.log)
        settings = snapshot.linger.sessions if snapshot.linger else None
        self.snapshot = snapshot
        if settings != self._settings:
            self._stop_listening()
        self._settings = settings
        self._listen_at = float("-inf")
        self._contexts = None  # the files may have changed
        self._lively_until = time.monotonic() + _LIVELY
        self._news.set()

    def close(self) -> None:
        """Finish the batches under way, and stop."""
        self._looks.kill()
        self.departures.finish()
        self._stop_listening()
        self._held.close()
        self._owners.close()
        self._board.close()

    def _look_when_due(self) -> None:
        while True:
            self._news.wait(_LOOK)
            self._news.clear()
            self._look(time.monotonic())
            self._owners.given.keep()

    def _look(self, now: float) -> None:
        if self._unsupported or self._settings is None:
            return
        if now >= self._listen_at:
            self._listen(self._settings, now)
        if self._board.changed() is not None:
            self._lively_until = now + _LIVELY
        self._withdrawn.look(self.snapshot, now)
        quiet = now >= self._lively_until and not self._withdrawn.addresses and not self.reports
        if self._contexts is None or quiet:
            return
        status = status_of(self._paths.control(LINGER), LingerStatus, timeout=_ANSWERED)
        if status is None:
            return
        shared = {each: self._sharing(status, each) for each in self._withdrawn.addresses}
        left = {**self._left(status), **{each: found for each, found in shared.items() if found}}
        self._targets.clear()
        self._targets.update(left)
        for address in self.reports.keys() - left.keys():
            del self.reports[address]
            self._left_because.pop(address, None)
        if left:
            self._lively_until = max(self._lively_until, now + _LIVELY)
            for address, targets in left.items():
                self._depart(address, targets)

    def _listen(self, settings: MovedSessions, now: float) -> None:
        """Read the certificate, and listen for other nodes; a failure is tried again later."""
        if self._contexts is not None and self.arrivals is not None:
            return
        try:
            self._contexts = link.context(settings, server=True), link.context(settings, server=False)
            self._stop_listening()
            self.arrivals = Arrivals(
                self._paths,
                self._held,
                self._owners,
                port=settings.port,
                tls=self._contexts[0],
                refusal=self._refusal,
                on_taken=self._count_taken,
                on_lost=self._lost,
                log=self.log,
            )
        except LinkError as error:
            self._note(str(error))
        except OSError as error:
            self._note(f"port {settings.port}: {error.strerror or error}")
        else:
            self._note("")
            self.arrivals.link_fault(self._on_fault)
        self._listen_at = now + _RETRY

    def _stop_listening(self) -> None:
        arrivals, self.arrivals = self.arrivals, None
        if arrivals is not None:
            arrivals.close()

    def _targets_of(self, address: str) -> tuple[Target, ...]:
        return self._asked_for.get(address) or self._targets.get(address, ())

    def _refusal(self, address: str) -> str:
        if address in self._withdrawn.addresses:  # it may take part again since a moment ago
            self._withdrawn.look(self.snapshot, time.monotonic(), at_once=True)
        return "the other node leaves the address, too" if address in self._withdrawn.addresses else ""

    def _sharing(self, status: LingerStatus, address: str) -> tuple[Target, ...]:
        """Return the other nodes of a shared address."""
        if self._settings is None or self._contexts is None:
            return ()
        settings, tls = self._settings, self._contexts[1]
        return tuple(
            Target(node=node, interface="", port=settings.port, tls=tls, shared=True)
            for each in status.shared
            if each.address == address
            for node in each.nodes
        )

    def _left(self, status: LingerStatus) -> dict[str, tuple[Target, ...]]:
        """Return the addresses that this node has left, each with the node that serves it."""
        if self.snapshot is None or self._settings is None or self._contexts is None:
            return {}
        serving = {each.address: each.node for each in status.others if each.active}
        interfaces = interfaces_of(self.snapshot)
        settled = time.time() - _SETTLED
        return {
            each.address: (
                Target(
                    node=serving[each.address],
                    interface=interfaces[each.address],
                    port=self._settings.port,
                    tls=self._contexts[1],
                ),
            )
            for each in status.addresses
            if not each.active
            and each.left_at is not None
            and each.left_at < settled
            and each.address in serving
            and each.address in interfaces
        }

    def rebalance(self, node: str, share: float) -> list[DepartureStatus]:
        """Give a node this share of the sessions of each shared address; return what became of them.

        Raises ControlError if that node cannot have any.
        """
        if self.trouble:
            raise ControlError(self.trouble)
        status = status_of(self._paths.control(LINGER), LingerStatus, timeout=_ANSWERED)
        if status is None:
            raise ControlError("`linger` does not answer")
        named = {node}.union(
            *(each.addresses for each in status.nodes if node in (each.name, *each.addresses))
        )
        targets = {each.address: self._sharing(status, each.address) for each in status.shared}
        found = {
            address: each
            for address, others in targets.items()
            if (each := tuple(one for one in others if one.node in named))
        }
        if not found:
            # A node reports its name every few seconds, its addresses at once.
            names = {at: f"{at} ({each.name})" for each in status.nodes if each.name for at in each.addresses}
            known = sorted({names.get(one.node, one.node) for others in targets.values() for one in others})
            raise ControlError(f"{node} has no shared address; known are: {', '.join(known) or 'none'}")
        if self._asked_for:
            raise ControlError("another rebalance is under way")
        self._asked_for.update(found)
        try:
            return [self._move(address, each, share=share) for address, each in found.items()]
        finally:
            self._asked_for.clear()

    def _depart(self, address: str, targets: Sequence[Target]) -> None:
        report = self._move(address, targets)
        former = self.reports.get(address)
        report = replace(report, moved=report.moved + (former.moved if former else 0))
        self.reports[address] = report
        self._report_left(report, former)
        if report.trouble and (former is None or former.trouble != report.trouble):
            self.log.warning("sessions-stay", address=address, reason=report.trouble)

    def _move(self, address: str, targets: Sequence[Target], *, share: float = 1.0) -> DepartureStatus:
        """Have all workers move their sessions of an address, one after the other: one batch is under way."""
        begun, before = time.monotonic(), self.departures.given[address]
        self.departures.pauses.pop(address, None)
        stay: Counter[str] = Counter()
        troubles = list[str]()
        for each in worker_boards(self._paths.runtime):
            reasons, trouble = self._ask(each, address, share) if each.sessions else ({}, "")
            stay.update(reasons)
            troubles += [trouble] if trouble else []
        moved, nodes = self.departures.given[address] - before, ", ".join(each.node for each in targets)
        if moved:
            seconds = round(time.monotonic() - begun, 3)
            self.log.info(
                "sessions-moved-to-node",
                address=address,
                node=nodes,
                sessions=moved,
                seconds=seconds,
                longest_pause=round(self.departures.pauses.get(address, 0.0), 4),
            )
            self._report(EventKind.SESSIONS_MOVED, address, f"{moved} in {seconds:g} s to {nodes}")
        trouble = "; ".join(dict.fromkeys(troubles))
        return DepartureStatus(address=address, node=nodes, moved=moved, stay=dict(stay), trouble=trouble)

    def _report_left(self, report: DepartureStatus, former: DepartureStatus | None) -> None:
        """Report sessions that stay, once for the same reasons, if these are no matter of the moment."""
        address, why = report.address, frozenset(report.stay)
        if (
            why
            and former is not None
            and why == frozenset(former.stay)
            and self._left_because.get(address) != why
        ):
            self._left_because[address] = why
            reasons = "; ".join(f"{count}: {each}" for each, count in report.stay.items())
            self._report(EventKind.SESSIONS_LEFT, address, reasons)

    def _ask(self, board: WorkerBoard, address: str, share: float) -> tuple[Mapping[str, int], str]:
        """Have one worker move its sessions; return why how many stay, and what went wrong."""
        path = self._paths.worker_control(board.program, board.generation, board.index)
        try:
            answer = ask(
                path,
                Question(command="emigrate", values={"address": address, "share": share}),
                timeout=_MOVED + _ANSWERED,
            )
        except ControlUnavailable:
            return {}, ""  # it has ended since; its board stays for its master
        stay = answer.values.get("stay")
        reasons = (
            {str(why): count for why, count in stay.items() if isinstance(count, int)}
            if isinstance(stay, dict)
            else {}
        )
        return reasons, str(answer.values.get("trouble") or answer.reason)

    def _report(self, kind: EventKind, address: str, detail: str) -> None:
        self._publish(OperatorEvent(when=time.time(), kind=kind, subject=address, detail=detail))

    def _count_taken(self, sessions: int) -> None:
        self.taken += sessions

    def count_lost(self, sessions: int) -> None:
        """Count sessions that a worker has reported as lost."""
        self.lost += sessions

    def _lost(self, address: str, sessions: int, reason: str) -> None:
        self.lost += sessions
        self._report(EventKind.SESSIONS_LOST, address, f"{sessions}: {reason}")

    def _note(self, refused: str) -> None:
        before, self._refused = self._refused, refused
        if refused and refused != before:
            self.log.error("sessions-cannot-move", reason=refused)
