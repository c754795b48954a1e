"""A worker of a proxy program: accepts on inherited listeners and relays until it is told to go.

Started by its master as `python -m appliance.programs.worker '<arguments>'` (`worker_arguments`). It has
a control socket and a board of its own, outlives its master, and obeys the health board in every generation.
"""

import gc
import os
import signal
import sys
import time
from collections.abc import Iterator
from random import Random

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.core.balancing.frontend_state import FrontendState
from appliance.core.balancing.pool_state import LostMembers, PoolState
from appliance.model.end_reasons import EndReason
from appliance.model.paths import Paths
from appliance.model.snapshot.frontends import Frontend
from appliance.model.snapshot.pools import Pool
from appliance.model.snapshot.snapshot import Snapshot
from appliance.model.worker_phases import WorkerPhase
from appliance.net.boards.boards import BoardError, BoardReader, BoardWriter
from appliance.net.boards.heartbeats import Heartbeat
from appliance.net.control.sockets import ControlServer
from appliance.net.data import tcp
from appliance.net.data.accept import Acceptor
from appliance.net.data.backend import Backend
from appliance.net.data.connect_failures import ConnectFailureSender
from appliance.net.data.relay import OPEN, Session
from appliance.net.data.respond import Responder
from appliance.net.data.traffic import TICK, Traffic, descriptor_limit
from appliance.net.files import snapshots
from appliance.net.logging import log
from appliance.net.process.signals import survive
from appliance.programs.connection_log import ConnectionLog
from appliance.programs.worker_commands import commands
from appliance.programs.worker_figures import figures
from appliance.wire.boards import health_board, worker_board
from appliance.wire.boards.health_board import BoardFormatError
from appliance.wire.lines import worker_arguments
from appliance.wire.lines.control import ControlError
from appliance.wire.lines.worker_arguments import WorkerArguments

_PUBLISH_TICKS = 4
_FOLLOW_TICKS = 20
"""Ticks between looks at whether the health board was removed and made anew."""

_UNSEEN = -1
_EPISODE = 1.0
"""Seconds without a shortage of descriptors after which the next one is logged again."""


class Worker:
    """The state of one worker; the master's view of it is in `worker_commands`."""

    def __init__(
        self, orders: WorkerArguments, snapshot: Snapshot, *, paths: Paths, logger: FilteringBoundLogger
    ) -> None:
        self.orders, self.paths, self.log = orders, paths, logger
        self.snapshot = snapshot
        self.phase = WorkerPhase.READY
        self.started_at = time.time()
        self.drain_deadline = 0.0
        self._cut_at = 0.0
        self._linger_until = 0.0
        self.leave_at = 0.0
        self.done = Event()
        self.traffic = Traffic(
            descriptors=descriptor_limit(), fault=self._fault, scarce=self._scarce, make_room=self._room
        )
        self.frontends: dict[str, FrontendState] = {}
        self.backends: dict[str, Backend] = {}
        self.acceptors: list[Acceptor] = []
        self._random = Random()  # noqa: S311  # spreads load, protects nothing
        self._doubts = ConnectFailureSender(paths.health_connect_failures)
        self._health: BoardReader | None = None
        self._health_changes = _UNSEEN
        self._ticks = 0
        self._scarce_at = 0.0
        self._full: frozenset[str] = frozenset()
        path = paths.worker_board(orders.program, orders.generation, orders.index)
        self._board = BoardWriter(path)
        self._troubled = ""
        self._heartbeat = Heartbeat(paths.worker_heartbeat(orders.program, orders.generation, orders.index))
        if self._heartbeat.trouble:
            self.log.warning("heartbeat-unseen", reason=self._heartbeat.trouble)
        for complaint in self._refused_options(snapshot):
            self.log.error("option-refused", option=complaint)
        self._obey(snapshot)
        self._make_acceptors()
        self.publish()
        self._timer = gevent.get_hub().loop.timer(TICK, TICK)
        self._timer.start(self._tick)

    def apply(self, snapshot: Snapshot) -> None:
        """Obey a snapshot: limits, times, pools and servers. What it no longer has stays as it was.

        Raises tcp.OptionsRefused, and then nothing has changed.
        """
        self.check(snapshot)
        self._obey(snapshot)

    def check(self, snapshot: Snapshot) -> None:
        """Raise tcp.OptionsRefused where a snapshot cannot be obeyed."""
        if complaints := self._refused_options(snapshot):
            raise tcp.OptionsRefused("; ".join(complaints))

    def accept(self) -> None:
        """Start to accept."""
        if self.phase is not WorkerPhase.READY:
            return
        self.phase = WorkerPhase.ACCEPTING
        self._set_options()  # not before: they hold for whoever else accepts there
        for acceptor in self.acceptors:
            acceptor.start()
        self.publish()

    def drain(
        self, deadline: float, *, linger: frozenset[tuple[str, int]] = frozenset(), linger_s: float = 0.0
    ) -> None:
        """Accept no more, and end with the last session or at the deadline (Unix seconds, as of now).

        A wall clock that is set later neither cuts sessions early nor keeps them. On listeners at `linger`,
        which are closed with this worker, it goes on to accept for `linger_s` seconds: a client whose
        handshake is under way would be reset.
        """
        self.drain_deadline = deadline
        self._cut_at = time.monotonic() + (deadline - time.time())
        stays = self.phase is not WorkerPhase.READY and linger_s > 0
        self.phase = WorkerPhase.DRAINING
        self._linger_until = time.monotonic() + linger_s
        self._close_acceptors(keep=linger if stays else frozenset())
        self.publish()
        self._drained()

    def let_go(self) -> None:
        """Close the listeners that were accepted on after the drain began."""
        self._close_acceptors(keep=frozenset())

    @property
    def lingers(self) -> float:
        """Return for how many seconds it still accepts while it drains."""
        return max(0.0, self._linger_until - time.monotonic()) if self.acceptors else 0.0

    def _close_acceptors(self, *, keep: frozenset[tuple[str, int]]) -> None:
        staying = [each for each in self.acceptors if each.place in keep]
        for acceptor in self.acceptors:
            if acceptor not in staying:
                acceptor.close()
        self.acceptors = staying

    def leave(self, patience: float) -> None:
        """Drain as well, unless another master adopts this worker within `patience` seconds."""
        self.leave_at = time.monotonic() + patience

    def stop(self) -> None:
        """End at once."""
        self.drain(0.0)

    def close(self) -> None:
        """End what is left, and remove the board."""
        self._timer.close()
        self.traffic.end_all(EndReason.KILLED)
        for acceptor in self.acceptors:
            acceptor.close()
        self.traffic.close()
        self._doubts.close()
        self._board.close(unlink=True)
        self._heartbeat.close(unlink=True)

    def publish(self) -> None:
        """Write the board."""
        self.traffic.changed = False
        try:
            self._board.publish(worker_board.encode(figures(self)))
        except OSError as error:  # traffic has priority: `status` lacks what this worker does
            self._board_trouble(f"{error.filename}: {error.strerror}")
        else:
            self._board_trouble("")

    def _board_trouble(self, reason: str) -> None:
        if reason != self._troubled:
            self._troubled = reason
            say = self.log.error if reason else self.log.info
            say(
                "board-not-written" if reason else "board-written", board=str(self._board.path), reason=reason
            )

    def _obey(self, snapshot: Snapshot) -> None:
        if snapshot.log != self.snapshot.log:
            self.log = worker_log(self.orders, snapshot)
        for frontend in self._mine(snapshot):
            self._apply_frontend(frontend)
        self._set_options()
        for name in {name for each in self.frontends.values() for name in _pools(each.config)}:
            self._apply_pool(snapshot.pool(name))
        self._health_changes = _UNSEEN
        self._look_at_health()
        self.traffic.report = ConnectionLog(self.log) if snapshot.log.connections else None
        self._room()
        self.snapshot = snapshot

    def _mine(self, snapshot: Snapshot) -> Iterator[Frontend]:
        """Yield what a snapshot says of the frontends that this worker has."""
        group = snapshot.group(self.orders.group)
        mine = {listener.frontend for listener in self.orders.listeners}
        return (frontend for frontend in (group.frontends if group else ()) if frontend.name in mine)

    def _refused_options(self, snapshot: Snapshot) -> list[str]:
        """Return what the kernel says against socket options of a snapshot, by frontend or pool."""
        frontends = tuple(self._mine(snapshot))
        pools = {name: snapshot.pool(name) for each in frontends for name in _pools(each)}
        return [
            f"{kind} {each.name}: socket option {option}: {why}"
            for kind, given in (("frontend", frontends), ("pool", pools.values()))
            for each in given
            if each is not None
            for option, why in tcp.refused(tcp.options(each.keepalive, each.tcp_user_timeout)).items()
        ]

    def _apply_frontend(self, config: Frontend) -> None:
        known = self.frontends.get(config.name)
        workers, index = self.orders.workers, self.orders.index
        if known is None:
            self.frontends[config.name] = FrontendState(config, workers=workers, index=index)
            return
        known.apply(config, workers=workers, index=index)

    def _apply_pool(self, config: Pool | None) -> None:
        if config is None:
            return
        known = self.backends.get(config.name)
        if known is not None:
            self._close_sessions(known, known.apply(config))
            self._release(known)
            return
        state: PoolState[Session] = PoolState(
            config, workers=self.orders.workers, index=self.orders.index, random=self._random
        )
        self.backends[config.name] = Backend(state)

    def _make_acceptors(self) -> None:
        for listener in self.orders.listeners:
            os.set_inheritable(listener.fd, False)  # noqa: FBT003  # the standard library's signature
            os.set_blocking(listener.fd, False)  # the same
            frontend = self.frontends[listener.frontend]
            opening = self._relay if frontend.config.respond is None else self._respond
            acceptor = Acceptor(self.traffic, frontend, listener.fd, open_session=opening)
            acceptor.place = (listener.host, listener.port)
            self.acceptors.append(acceptor)

    def _set_options(self) -> None:
        """Set the listeners' options, which everything inherits that is accepted from now on."""
        for acceptor in self.acceptors:
            config = acceptor.frontend.config
            wanted = tcp.options(config.keepalive, config.tcp_user_timeout)
            tcp.set_options(acceptor.descriptor, tcp.NO_OPTIONS + tcp.accepted(wanted))

    def _relay(self, frontend: FrontendState, fd: int, address: bytes) -> None:
        backend = self.backends[frontend.config.pool or ""]
        Session(self.traffic, frontend, backend, fd, address).begin()

    def _respond(self, frontend: FrontendState, fd: int, address: bytes) -> None:
        needs = frontend.config.needs
        Responder(self.traffic, frontend, self.backends[needs].pool if needs else None, fd, address)

    def _tick(self) -> None:
        try:
            self._ticks += 1
            self.traffic.tick()
            self._heartbeat.beat(self.traffic.now)
            self._look_at_health()
            self._doubts.tell(self.traffic.doubted)
            if self.traffic.paused:
                self._room()
            if self._ticks % _PUBLISH_TICKS == 0 and (self.traffic.changed or self._board.is_gone()):
                self._say_full()
                self.publish()
            self._leave()
            if self.phase is WorkerPhase.DRAINING:
                self._drained()
        except Exception as error:  # noqa: BLE001  # the boundary: the next tick comes all the same
            self._fault(error)

    def _say_full(self) -> None:
        """Log which frontends have as many connections as they may: the next ones wait in the backlog."""
        full = {each.name: each.limit for each in self.frontends.values() if each.full}
        for name in full.keys() - self._full:
            self.log.warning("frontend-full", frontend=name, connections=full[name])
        for name in self._full - full.keys():
            self.log.info("frontend-has-room", frontend=name)
        self._full = frozenset(full)

    def _leave(self) -> None:
        if 0.0 < self.leave_at <= self.traffic.now and self.phase is not WorkerPhase.DRAINING:
            self.leave_at = 0.0
            self.drain(time.time() + self.snapshot.drain)

    def _drained(self) -> None:
        if self.traffic.live and time.monotonic() >= self._cut_at:
            self.log.warning("drain-cut", sessions=len(self.traffic.live))
            self.traffic.end_all(EndReason.DRAIN_CUT)
        if self.acceptors and not self.lingers:
            self.let_go()
        if not self.traffic.live and not self.acceptors:
            self.done.set()

    def _room(self) -> None:
        """Accept again where a limit or a shortage of descriptors has stopped it."""
        paused = [acceptor for acceptor in self.acceptors if acceptor.resume()]
        self.traffic.paused = bool(paused)

    def _look_at_health(self) -> None:
        try:
            if self._health is None:
                self._health = BoardReader(self.paths.health_board)
            elif self._ticks % _FOLLOW_TICKS == 0:
                self._health.follow()
            if self._health.changes == self._health_changes:
                return
            payload, changes = self._health.published()
            board = health_board.decode(payload)
        except (BoardError, BoardFormatError):
            return  # not there yet: servers stay as they are, `health` publishes as soon as it can
        known = {(server.pool, server.server): server for server in board.servers}
        for backend in self.backends.values():
            self._observe(backend, known)
        self._health_changes = changes

    def _observe(
        self, backend: Backend, known: dict[tuple[str, str], health_board.ServerHealthRecord]
    ) -> None:
        try:
            self._close_sessions(backend, backend.pool.observe(known))
            self._release(backend)
        except Exception as error:  # noqa: BLE001  # the boundary: a bug in one pool costs no other its news
            self._fault(error)

    def _close_sessions(self, backend: Backend, losses: LostMembers) -> None:
        """Obey on_down; who has no connection to the server yet connects elsewhere in any case."""
        if not losses.down and not losses.closing:
            return
        pending = {*losses.down, *losses.closing}
        for session in tuple(self.traffic.live):
            if not isinstance(session, Session) or session.backend is not backend:
                continue
            if session.member in (losses.closing if session.phase == OPEN else pending):
                session.server_down()

    def _release(self, backend: Backend) -> None:
        for session in backend.pool.released():
            session.hand_over()

    def _fault(self, error: Exception) -> None:
        self.log.error("internal-error", exc_info=error)

    def _scarce(self, code: int) -> None:
        now = self.traffic.now
        if now - self._scarce_at > _EPISODE:
            self.log.error("accept-paused", error=os.strerror(code), sessions=len(self.traffic.live))
        self._scarce_at = now


def worker_log(orders: WorkerArguments, snapshot: Snapshot) -> FilteringBoundLogger:
    """Return the logger of a worker, at the level and in the form that a snapshot asks for."""
    program = log.obey(orders.program, snapshot.log)
    return program.bind(generation=orders.generation, worker=orders.index)


def _pools(frontend: Frontend) -> list[str]:
    return [name for name in (frontend.pool, frontend.needs) if name is not None]


def main(arguments: list[str]) -> int:
    """Run a worker until it has drained; return the exit status."""
    survive(signal.SIGUSR1, signal.SIGUSR2)
    paths = Paths.from_environment(os.environ)
    orders = worker_arguments.decode(arguments[0])
    try:
        snapshot = snapshots.proposed(paths, orders.snapshot)
    except ControlError as error:  # lost in all its copies: they are written again before the next try
        sys.exit(str(error))
    logger = worker_log(orders, snapshot)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the terminal's Ctrl-C is for the master, which tells us
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    worker = Worker(orders, snapshot, paths=paths, logger=logger)
    gevent.signal_handler(signal.SIGTERM, worker.stop)
    control = ControlServer(
        paths.worker_control(orders.program, orders.generation, orders.index),
        commands(worker),
        on_error=lambda command, error: worker.log.error("control-error", command=command, exc_info=error),
        for_readers={"status", "sessions"},
    )
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
    _say_ready(worker)
    gevent.spawn(log.limiter().follow, gevent.sleep)
    worker.done.wait()
    control.close()
    worker.close()
    return 0


def _say_ready(worker: Worker) -> None:
    """Write the ready byte; without a master to read it nobody would ever tell the worker to accept."""
    try:
        os.write(worker.orders.ready_fd, b"R")
    except BrokenPipeError:
        worker.log.warning("master-gone")
        worker.stop()
    os.close(worker.orders.ready_fd)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
