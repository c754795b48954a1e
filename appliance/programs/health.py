"""The program `health`: checks every server, and writes the results to the health board.

It is shared by all generations of all proxies and outlives their reloads. Checks in the workers, as in
HAProxy, would start from scratch with each reload, and a draining generation would not learn of a server's
death. After a kill and restart it continues from the existing board, so no server changes state.
"""

import gc
import sys
from typing import Final

from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.health.checks import HealthChecks
from appliance.health.commands import HealthCommands
from appliance.health.kept_by_operator import KeptByOperator
from appliance.health.reports import HealthReports
from appliance.model.paths import Paths
from appliance.model.program_names import HEALTH
from appliance.net.boards.board_content import content
from appliance.net.control.control_server import ControlServer
from appliance.net.events.event_board import EventBoard
from appliance.net.files import snapshots
from appliance.net.probing.connect_failure_receiver import ConnectFailureSocket
from appliance.net.starting import hub_start
from appliance.wire.boards.health_board import HealthBoard, decode

_COLLECT: Final = (20_000, 20, 20)  # checks create no reference cycles, so frequent collections are useless


class HealthProgram:
    """The checks of the snapshot accepted last, with their sockets.

    `last` is what an earlier process published last. `stop` is set, and `crashed` true, if the program cannot
    continue.
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
            for_readers=("status",),
        )
        socket = paths.health_connect_failures
        self._connect_failures = ConnectFailureSocket(
            socket,
            self._checks.connect_failed,
            on_trouble=lambda reason: reports.connect_failures_trouble(str(socket), reason),
        )

    def close(self) -> None:
        """Stop checking and answering; the published state stays readable."""
        self._control.close()
        self._connect_failures.close()
        self._checks.close()

    def _publishing_ended(self, error: BaseException | None) -> None:
        """End the program: it is useless without its board, and the next one continues from that board."""
        self._reports.log.error("publishing-crashed", exc_info=error)
        self.crashed = True
        self._stop.set()


def main() -> int:
    """Run until TERM or INT; return 1 after a crash, or if another `health` has this runtime directory."""
    begun = hub_start.begin(HEALTH)
    if begun is None:
        return 1
    paths, log, stop = begun.paths, begun.log, begun.stop
    program = HealthProgram(paths, log, last=content(paths.health_board, decode, log), stop=stop)
    # Present objects stay: frozen, they are not scanned again at every collection.
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
