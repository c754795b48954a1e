"""The program `health`: checks every server, and writes what it knows on the health board.

It is shared by all generations of all proxies and outlives their reloads. Checks in the workers, where
HAProxy has them, would begin anew with each reload, and a draining generation would not hear of a server that
dies. Killed and started again, it goes on from the board that it finds, so that no server changes state by
it.
"""

import gc
import sys
from typing import Final

from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.health.checks import HealthChecks
from appliance.health.commands import FOR_READERS, HealthCommands
from appliance.health.kept_by_operator import KeptByOperator
from appliance.health.reports import HealthReports
from appliance.model.paths import Paths
from appliance.model.program_names import HEALTH
from appliance.net.boards.board_content import content
from appliance.net.control.control_server import ControlServer
from appliance.net.events.event_board import EventBoard
from appliance.net.files import snapshots
from appliance.net.probing.connect_failures import ConnectFailureSocket
from appliance.net.starting import hub_start
from appliance.wire.boards.health_board import HealthBoard, decode

_COLLECT: Final = (20_000, 20, 20)  # checks leave no cycles behind, so looking for them often is for nothing


class HealthProgram:
    """The checks of the snapshot that was accepted last, with the sockets on which others reach them.

    `last` is what an earlier process published last. `stop` is set, and `crashed` true, when the program
    is of no use any more.
    """

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        last: HealthBoard | None,
        stop: Event,
    ) -> None:
        records = last.servers if last else ()
        self.crashed = False
        self._stop = stop
        self._reports = reports = HealthReports(log, EventBoard(paths.event_board(HEALTH), HEALTH))
        kept = KeptByOperator(paths, reports)
        self._checks = HealthChecks(
            paths,
            reports,
            admins=kept.states.load(records),
            weights=kept.weights.load(records),
            pools=last.pools if last else (),
            on_fault=self._publishing_ended,
        )
        commands = HealthCommands(paths, self._checks, kept, reports)
        accepted = snapshots.accepted(paths, reports.log)
        if accepted is not None:
            self._checks.apply(accepted, records)
        self._control = ControlServer(
            paths.control(HEALTH),
            commands.handlers(),
            on_error=reports.command_failed,
            for_readers=FOR_READERS,
        )
        socket = paths.health_connect_failures
        self._connect_failures = ConnectFailureSocket(
            socket,
            self._checks.connect_failed,
            on_trouble=lambda reason: reports.connect_failures_trouble(str(socket), reason),
        )

    def close(self) -> None:
        """Stop checking and answering; what was published stays readable."""
        self._control.close()
        self._connect_failures.close()
        self._checks.close()

    def _publishing_ended(self, error: BaseException | None) -> None:
        """End the program: without its board it is of no use, and the next one goes on from that board."""
        self._reports.log.error("publishing-crashed", exc_info=error)
        self.crashed = True
        self._stop.set()


def main() -> int:
    """Run until TERM or INT; 1 after a crash, or when another health program has this runtime directory."""
    begun = hub_start.begin(HEALTH)
    if begun is None:
        return 1
    paths, log, stop = begun.paths, begun.log, begun.stop
    program = HealthProgram(paths, log, last=content(paths.health_board, decode, log), stop=stop)
    # What is there now stays: frozen, it is not looked through again at every collection.
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_COLLECT)
    stop.wait()
    if program.crashed:
        return 1
    program.close()
    begun.heartbeat.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
