"""The program `stats`: shows what the appliance does, to Prometheus, to HAProxy's clients, and to people.

It reads boards and asks the other programs, and nobody waits for it: killed, hanging or besieged it costs
nobody a connection. It changes nothing by itself; what an operator asks for goes to the program whose
business it is.
"""

import os
import signal
import sys
import time

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.core.rollout.needed_programs import STATS
from appliance.model.paths import Paths
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.control.control_server import ControlServer
from appliance.net.files import lock_files, program_failures, snapshots
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.logging.line_limiter import limiter
from appliance.net.process.signals import survive
from appliance.programs.accepted_log import AcceptedLog
from appliance.stats.commands import FOR_READERS, StatsCommands
from appliance.stats.service import StatsRefused, StatsService


def main() -> int:
    """Run until TERM or INT; 1 where the accepted configuration cannot be served: supervisord tries again."""
    paths = Paths.from_environment(os.environ)
    log = AcceptedLog(STATS, paths).logger
    gevent.spawn(limiter().follow, gevent.sleep)
    stop = Event()
    survive(signal.SIGUSR1, signal.SIGUSR2)
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stop.set)
    lock = paths.runtime / f"{STATS}.lock"
    try:
        held = lock_files.hold(lock)
    except OSError as error:
        log.error("cannot-start", path=str(lock), reason=error.strerror or str(error))  # noqa: TRY400  # no bug
        return 1
    if held is None:
        log.error("already-running", lock=str(lock))
        return 1
    heartbeat = HubHeartbeat(paths.heartbeat(STATS), log)
    service = StatsService(paths, log)
    if not _serve_accepted(paths, service, log):
        return 1
    control = ControlServer(
        paths.control(STATS),
        StatsCommands(paths, service).handlers(),
        on_error=lambda command, error: log.error("control-failed", command=command, exc_info=error),
        for_readers=FOR_READERS,
    )
    stop.wait()
    control.close()
    service.close()
    heartbeat.close()
    return 0


def _serve_accepted(paths: Paths, service: StatsService, log: FilteringBoundLogger) -> bool:
    """Serve as the accepted snapshot says; where that cannot be, leave the reason for `status`."""
    accepted = snapshots.accepted(paths, log)
    if accepted is None:
        return True
    try:
        service.commit(service.prepare(accepted))
    except StatsRefused as error:
        log.error("start-failed", reason=str(error))  # noqa: TRY400  # the reason is the operator's, not ours
        program_failures.write(paths, STATS, ProgramFailure(since=time.time(), problems=tuple(error.reasons)))
        return False
    program_failures.remove(paths, STATS)
    log.info("started", configuration=accepted.number)
    return True


if __name__ == "__main__":
    sys.exit(main())
