"""The program `reload`: takes the line `reload`, and makes all programs apply the operator's file, or none.

The line `stop` leaves the virtual IPs to others until the next `reload`.

Requests come from the reload sockets, from SIGHUP and from this program's control socket. They are processed
one at a time in order of arrival, and each is answered after its own turn. One may be lost, for example while
this program is restarted: so the file is periodically compared with the applied configuration, and applied.
"""

import os
import signal
import sys
import time
from pathlib import Path
from typing import Final, assert_never

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

import appliance
from appliance.model.capability import Capability
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.control.control_server import Call, ControlServer
from appliance.net.events.event_board import EventBoard
from appliance.net.events.event_keeper import EventKeeper
from appliance.net.files import lock_files, snapshots
from appliance.net.files.degraded import read_degraded
from appliance.net.files.kept_counts import KeptCounts
from appliance.net.logging.line_limiter import limiter
from appliance.net.logging.log import configure, obey
from appliance.net.privileges import capabilities
from appliance.net.process.signals import survive
from appliance.reload import reload_events
from appliance.reload.notifying.notifier import Notifier
from appliance.reload.participation import Participation
from appliance.reload.program_clients import ProgramClients, ProgramTimeouts
from appliance.reload.reload_queue import DISCOVER, RESULTS, ReloadQueue
from appliance.reload.reload_socket import ReloadSockets
from appliance.reload.reload_transaction import ReloadTransaction
from appliance.wire.lines.control import Answer, AnswerProblem, as_values, bad, good
from appliance.wire.lines.reload_line import RehearsalLine, ReloadLine, SocketLine, StopLine, UnknownLine

_PREDECESSOR: Final = 10.0  # seconds for an earlier one to end
_LOOK_AGAIN: Final = 0.1


class ReloadProgram:
    """The reload sockets, the queue behind them, and what follows the accepted configuration."""

    def __init__(self, paths: Paths, accepted: Snapshot, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._log = log
        self._started_at = time.time()
        clients = ProgramClients(paths, timeouts=ProgramTimeouts())
        self._notifier = Notifier(log)
        self._notifier.obey(accepted.notify)
        publish = EventBoard(paths.event_board("reload"), "reload")
        self._transaction = ReloadTransaction(paths, accepted, clients, log, publish)
        self._sockets = ReloadSockets(self._respond, log)
        participation = Participation(paths, clients, log)
        self._queue = ReloadQueue(
            self._transaction,
            log,
            participation=participation,
            counts=KeptCounts(paths.reload_counts, names=RESULTS),
            after=self._follow,
        )
        degraded = read_degraded(paths)
        # While the first configuration is awaited, nothing was refused: `status` shows what is awaited.
        self._queue.refused = degraded.problems if degraded and not accepted.awaited else ()
        if degraded and not accepted.awaited:
            publish(reload_events.last_good(degraded))
        self._keeper = EventKeeper(paths, log, self._notifier.notify)
        self._control = ControlServer(
            paths.control("reload"),
            {
                "status": self._status,
                "reload": lambda _: self._queue.ask("control"),
                "discovered": lambda _: self._queue.ask(DISCOVER),
            },
            on_error=lambda command, error: log.error("command-failed", command=command, exc_info=error),
            for_readers={"status"},
        )

    def run(self) -> None:
        """Serve until TERM or INT."""
        end = Event()
        survive(signal.SIGUSR1, signal.SIGUSR2)
        gevent.signal_handler(signal.SIGHUP, self._queue.hang_up)
        for number in (signal.SIGTERM, signal.SIGINT):
            gevent.signal_handler(number, end.set)
        gevent.spawn(limiter().follow, gevent.sleep)
        heartbeat = HubHeartbeat(self._paths.heartbeat("reload"), self._log)
        self._follow()
        self._log.info("started", configuration=self._transaction.accepted.number)
        end.wait()
        self._sockets.close()
        self._queue.close()
        self._control.close()
        self._keeper.close()
        self._notifier.close()
        heartbeat.close()
        self._log.info("stopped")

    def _follow(self) -> list[AnswerProblem]:
        """Apply the accepted configuration to this program; return what failed."""
        accepted = self._transaction.accepted
        obey("reload", accepted.log)
        self._notifier.obey(accepted.notify)
        further = (*self._paths.reload_sockets, *map(Path, accepted.reload.sockets))
        self._sockets.follow([self._paths.reload_socket, *further])
        failures = self._sockets.failures
        return [AnswerProblem(message=f"reload socket {path}: {why}") for path, why in failures.items()]

    def _respond(self, line: SocketLine) -> Answer:
        match line:
            case ReloadLine(forced=forced):
                return self._queue.ask("socket", forced=forced)
            case RehearsalLine():
                return self._queue.ask_to_rehearse("socket")
            case StopLine():
                return self._queue.ask_to_stop("socket")
            case UnknownLine(reason=reason):
                self._log.warning("reload-line-unknown", reason=reason)
                return bad(reason)
            case _:
                assert_never(line)

    def _status(self, _: Call) -> Answer:
        degraded = read_degraded(self._paths)
        return good(
            program="reload",
            pid=os.getpid(),
            started_at=self._started_at,
            version=appliance.__version__,
            snapshot=self._transaction.accepted.number,
            digest=self._transaction.digest,
            common=self._transaction.common,
            node=self._transaction.node,
            busy=self._queue.busy,
            reloads=self._queue.counts,
            last=self._queue.last,
            refused=as_values(self._queue.refused),
            again_in=self._transaction.again_in,
            degraded=as_values(degraded.problems) if degraded else None,
            socket_failures=self._sockets.failures,
            not_kept=self._not_kept(),
        )

    def _not_kept(self) -> dict[str, str]:
        events = {str(self._paths.events): self._keeper.trouble} if self._keeper.trouble else {}
        return {**self._transaction.not_kept, **events}


def main() -> None:
    """Run the program; without a usable configuration it exits with the reasons on standard error."""
    capabilities.keep_from_children()
    # Its own user can write the names of other files: the accepted configuration has those of secrets.
    capabilities.set_down(Capability.CAP_DAC_READ_SEARCH)
    paths = Paths.from_environment(os.environ)
    _wait_for_predecessor(paths.runtime / "reload.lock")
    try:
        accepted = snapshots.read(paths.accepted) or _chosen(paths)
    except SnapshotError:
        accepted = _chosen(paths)
    log = obey("reload", accepted.log)
    ReloadProgram(paths, accepted, log).run()


def _wait_for_predecessor(path: Path) -> None:
    """Wait for an instance left by a killed supervisord: the change that it completes is accepted after all.

    The wait is limited to the time that this may take; without a lock we continue as well.
    """
    deadline, log = time.monotonic() + _PREDECESSOR, configure("reload", level="info", form="json")
    try:
        while lock_files.hold(path) is None:  # held until this process ends
            if time.monotonic() > deadline:
                log.warning("predecessor-runs", path=str(path))
                return
            log.info("predecessor-awaited", path=str(path))
            gevent.sleep(_LOOK_AGAIN)
    except OSError as error:
        log.warning("lock-not-made", path=str(path), reason=error.strerror)


def _chosen(paths: Paths) -> Snapshot:
    """Return the snapshot that a start of the appliance would use if the accepted one is unreadable."""
    from appliance.reload import boot  # noqa: PLC0415  # the validator, for this case only

    log = configure("reload", level="info", form="json")
    try:
        start = boot.choose(paths)
        not_kept = boot.write(paths, start)
    except boot.BootError as error:
        sys.exit(f"{paths.accepted}: nothing to use; `appliance run` writes it: {error}")
    for each in (*start.damaged, *not_kept):
        log.error("state-damaged", reason=each.message)
    return start.snapshot


if __name__ == "__main__":
    main()
