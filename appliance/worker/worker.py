"""The worker: its phases from ready to drained, and its tick, on which everything that waits is examined."""

import os
import time
from collections.abc import Callable
from errno import EADDRINUSE
from typing import Final

from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.model.end_reasons import EndReason
from appliance.model.operator_events import EventKind, OperatorEvent
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.board_writer import BoardWriter
from appliance.net.boards.heartbeats import Heartbeat
from appliance.net.events.event_board import EventBoard
from appliance.net.logging import log
from appliance.net.loop.turns import Turns
from appliance.wire.boards import worker_board
from appliance.wire.boards.worker_board import WorkerBoard
from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.worker.connection_log import ConnectionLog
from appliance.worker.draining import Draining
from appliance.worker.health_follower import HealthFollower
from appliance.worker.live_settings import LiveSettings
from appliance.worker.relay import tcp
from appliance.worker.relay.acceptors import Acceptors
from appliance.worker.relay.all_sessions import Traffic, descriptor_limit
from appliance.worker.relay.connect_failure_sender import ConnectFailureSender
from appliance.worker.relay.raw_io import COMPILED
from appliance.worker.session_batches import SessionBatches
from appliance.worker.session_ids import SessionIds
from appliance.worker.sessions_to_newer_workers import DepartingSessions
from appliance.worker.sessions_to_other_nodes import EmigratingSessions

_PUBLISH_TICKS: Final = 4

_SHORTAGE_OVER: Final = 1.0
"""Seconds without a shortage of descriptors after which the next shortage is logged again."""

_SOURCE_FAILED_EVERY: Final = 60.0
"""Seconds between two log lines that servers were not connected from a virtual IP."""


class Worker:
    """One worker. Its master controls it through `commands`."""

    def __init__(
        self, arguments: WorkerArguments, snapshot: Snapshot, *, paths: Paths, logger: FilteringBoundLogger
    ) -> None:
        self.arguments, self.paths, self.log = arguments, paths, logger
        self.snapshot = snapshot
        self.phase = WorkerPhase.READY
        self.started_at = time.time()
        self.draining = Draining()
        self.done = Event()
        self.traffic = Traffic(
            descriptors=descriptor_limit(), fault=self._fault, accept_failed=self._accept_failed
        )
        self.turns = Turns(self.traffic.rest)
        self.settings = LiveSettings(arguments, self.traffic, source_failed=self._source_failed)
        self.ids = SessionIds(arguments)
        batches = SessionBatches(self.traffic)
        self.departing = DepartingSessions(
            paths, arguments, self.traffic, self.ids, batches, on_empty=self._end_when_drained, log=logger
        )
        names = arguments.program, arguments.generation, arguments.index
        self._publish_event = EventBoard(paths.worker_events(*names), arguments.program)
        self.emigrating = EmigratingSessions(
            paths, arguments, self.traffic, self.ids, batches, publish=self._publish_event, log=logger
        )
        backends = self.settings.backends
        self.acceptors = Acceptors(
            self.traffic,
            frontends=self.settings.frontends,
            backends=backends,
        )
        self.health = HealthFollower(
            paths.health_board, self.traffic, backends, leaves=self.departing.may_leave, fault=self._fault
        )
        self._connect_failures = ConnectFailureSender(paths.health_connect_failures)
        self._ticks = 0
        self._short_at = 0.0
        self._source_failed_at = float("-inf")
        self._source_failures = 0
        self._full: frozenset[str] = frozenset()
        self._board = BoardWriter(paths.worker_board(*names))
        self._board_trouble = ""
        self._heartbeat = Heartbeat(paths.worker_heartbeat(*names))
        if self._heartbeat.trouble:
            self.log.warning("heartbeat-unseen", reason=self._heartbeat.trouble)
        for complaint in self.settings.refused_options(snapshot):
            self.log.error("option-refused", option=complaint)
        self._obey(snapshot)
        self.acceptors.inherit(arguments.listeners)
        self.publish()

    def run(self) -> None:
        """Move connections until this worker has drained."""
        self.traffic.run_until(self.done.is_set, on_tick=self._tick, ends_doze=lambda: self._ends_doze)

    @property
    def _ends_doze(self) -> Callable[[], bool] | None:
        """Return what to look at twenty times a second while nothing happens: the queues of others, verdicts.

        Without sessions a verdict changes nothing before the next event.
        """
        elsewhere, health = self.acceptors.waits_elsewhere, self.health
        if not self.traffic.live:
            return elsewhere
        return lambda: health.has_news or (elsewhere is not None and elsewhere())

    def apply(self, snapshot: Snapshot) -> None:
        """Apply a snapshot: limits, times, pools and servers. What it no longer has stays as it was.

        Raises tcp.OptionsRefused, and then nothing has changed.
        """
        self.check(snapshot)
        self._obey(snapshot)

    def check(self, snapshot: Snapshot) -> None:
        """Raise tcp.OptionsRefused if the kernel refuses a socket option of the snapshot."""
        if complaints := self.settings.refused_options(snapshot):
            raise tcp.OptionsRefused("; ".join(complaints))

    def accept(self) -> None:
        """Start to accept."""
        if self.phase is not WorkerPhase.READY:
            return
        self.phase = WorkerPhase.ACCEPTING
        self.acceptors.start()
        self.publish()

    def drain(
        self, deadline: float, *, late: frozenset[tuple[str, int]] = frozenset(), late_s: float = 0.0
    ) -> None:
        """Accept no more, and end with the last session or at the deadline (Unix seconds, as of now).

        On listeners at the addresses in `late`, which are closed with this worker, it accepts for `late_s`
        seconds more: a client whose handshake is under way would be reset.
        """
        stays = self.phase is not WorkerPhase.READY and late_s > 0
        self.phase = WorkerPhase.DRAINING
        self.traffic.hub_ticks = 1  # greenlets move the sessions, and wait for them
        self.draining.begin(deadline, late=late_s, now=time.monotonic(), wall=time.time())
        self.acceptors.close(keep=late if stays else frozenset())
        self.publish()
        self._end_when_drained()

    def accept_late(self, seconds: float) -> None:
        """Close the listeners that were still accepted on after the drain began, within `seconds`."""
        self.draining.accept_for(seconds, now=time.monotonic())
        self._end_when_drained()

    @property
    def accepts_late(self) -> float:
        """Return how many seconds it still accepts while it drains."""
        return self.draining.accepts_late(time.monotonic()) if self.acceptors.descriptors else 0.0

    def leave(self, patience: float) -> None:
        """Drain, unless another master adopts this worker within `patience` seconds."""
        self.draining.leave(patience, now=time.monotonic())

    def stop(self) -> None:
        """End at once."""
        self.drain(0.0)

    def close(self) -> None:
        """End the remaining sessions, and remove the heartbeat, and a board that counts nothing."""
        self.departing.close()
        self.traffic.end_all(EndReason.KILLED)
        self.acceptors.close()
        self.traffic.close()
        self._connect_failures.close()
        self.publish()
        # The file stays for the master, which adds its counts to the totals.
        self._board.close(unlink=not any(self.traffic.reasons.values()))
        self._heartbeat.close(unlink=True)

    def publish(self) -> None:
        """Write the board."""
        self.traffic.changed = False
        try:
            self._board.publish(worker_board.encode(self._board_payload()))
        except OSError as error:  # traffic has priority: `status` lacks what this worker does
            self._note_board_trouble(f"{error.filename}: {error.strerror}")
        else:
            self._note_board_trouble("")

    def _board_payload(self) -> WorkerBoard:
        return WorkerBoard(
            program=self.arguments.program,
            generation=self.arguments.generation,
            index=self.arguments.index,
            pid=os.getpid(),
            phase=self.phase,
            snapshot=self.snapshot.number,
            started_at=self.started_at,
            written_at=time.time(),
            drain_deadline=self.draining.deadline,
            sessions=len(self.traffic.live),
            compiled=COMPILED,
            frontends=tuple(each.counters() for each in self.settings.frontends.values()),
            servers=tuple(
                member.counters()
                for backend in self.settings.backends.values()
                for member in backend.pool.counted
                if member.is_counted
            ),
            reasons=self.traffic.reasons,
            pools=tuple(backend.times() for backend in self.settings.backends.values()),
        )

    def _note_board_trouble(self, reason: str) -> None:
        """Log a change only: publishing retries a full disk each time."""
        if reason == self._board_trouble:
            return
        self._board_trouble = reason
        write = self.log.error if reason else self.log.info
        write("board-not-written" if reason else "board-written", board=str(self._board.path), reason=reason)

    def _obey(self, snapshot: Snapshot) -> None:
        if snapshot.log != self.snapshot.log:
            self.log = worker_log(self.arguments, snapshot)
        self.settings.apply_frontends(snapshot)
        self.acceptors.set_options()
        if self.settings.apply_pools(snapshot):
            self.health.forget()
        self.health.look()
        self.traffic.report = ConnectionLog(self.log) if snapshot.log.connections else None
        self.acceptors.resume()
        self.snapshot = snapshot

    def _tick(self) -> None:
        try:
            self._ticks += 1
            self.traffic.tick()
            self._heartbeat.beat(self.traffic.now)
            self.health.look()
            self._connect_failures.send(self.traffic.failing_servers)
            if self.traffic.paused:
                self.acceptors.resume()
            self.acceptors.help_others()
            if self._ticks % _PUBLISH_TICKS == 0 and (self.traffic.changed or self._board.is_gone()):
                self._log_full_frontends()
                self.publish()
            self._leave_without_master()
            if self.phase is WorkerPhase.DRAINING:
                self._end_when_drained()
        except Exception as error:  # noqa: BLE001  # the boundary: the next tick comes nevertheless
            self._fault(error)

    def _log_full_frontends(self) -> None:
        """Log which frontends have reached their limit: further connections wait in the backlog."""
        full = {each.name: each.limit for each in self.settings.frontends.values() if each.is_full()}
        for name in full.keys() - self._full:
            self.log.warning("frontend-full", frontend=name, connections=full[name])
            self._publish_room(EventKind.FRONTEND_FULL, name, f"{full[name]} connections")
        for name in self._full - full.keys():
            self.log.info("frontend-has-room", frontend=name)
            self._publish_room(EventKind.FRONTEND_HAS_ROOM, name, "")
        self._full = frozenset(full)

    def _publish_room(self, kind: EventKind, frontend: str, connections: str) -> None:
        place = f"worker {self.arguments.generation}.{self.arguments.index}"
        detail = ", ".join(filter(None, (connections, place)))
        self._publish_event(OperatorEvent(when=time.time(), kind=kind, subject=frontend, detail=detail))

    def _leave_without_master(self) -> None:
        if self.draining.leaves(self.traffic.now) and self.phase is not WorkerPhase.DRAINING:
            self.draining.stay()
            self.drain(time.time() + self.snapshot.drain)

    def _end_when_drained(self) -> None:
        if self.traffic.live and self.draining.is_over(time.monotonic()):
            self.log.warning("drain-cut", sessions=len(self.traffic.live))
            self.traffic.end_all(EndReason.DRAIN_CUT)
        if self.acceptors.descriptors and not self.accepts_late:
            self.acceptors.close()
        if not self.traffic.live and not self.acceptors.descriptors:
            self.done.set()

    def _fault(self, error: Exception) -> None:
        self.log.error("internal-error", exc_info=error)

    def _accept_failed(self, code: int) -> None:
        """Log the first of several failures: a shortage of descriptors causes one every tenth of a second."""
        now = self.traffic.now
        if now - self._short_at > _SHORTAGE_OVER:
            self.log.error("accept-paused", error=os.strerror(code), sessions=len(self.traffic.live))
        self._short_at = now

    def _source_failed(self, address: str, code: int) -> None:
        """Count connects that come from the node instead of a virtual IP; log once a minute."""
        self._source_failures += 1
        now = self.traffic.now
        if now - self._source_failed_at > _SOURCE_FAILED_EVERY:
            reason = "no free port" if code == EADDRINUSE else "not on this machine"
            self.log.warning(
                "source-unavailable", virtual_ip=address, reason=reason, connections=self._source_failures
            )
            self._source_failed_at, self._source_failures = now, 0


def worker_log(arguments: WorkerArguments, snapshot: Snapshot) -> FilteringBoundLogger:
    """Return the logger of a worker, at the level and in the form that a snapshot sets."""
    program = log.obey(arguments.program, snapshot.log)
    return program.bind(generation=arguments.generation, worker=arguments.index)
