"""The start of a program on gevent's hub: its log, signals, lock, heartbeat and control socket."""

import os
import signal
from collections.abc import Collection, Mapping
from dataclasses import dataclass

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.control.control_server import ControlServer, Handler
from appliance.net.files import lock_files
from appliance.net.logging.line_limiter import limiter
from appliance.net.privileges import capabilities
from appliance.net.process.signals import survive
from appliance.net.starting.accepted_log import AcceptedLog


@dataclass(frozen=True, slots=True, kw_only=True)
class HubStart:
    """The resources of a started program. `stop` is set by TERM and INT."""

    program: str
    paths: Paths
    log: FilteringBoundLogger
    stop: Event
    heartbeat: HubHeartbeat

    def answer(self, handlers: Mapping[str, Handler], *, for_readers: Collection[str]) -> ControlServer:
        """Answer on the control socket; `for_readers` are the commands that change nothing."""
        return ControlServer(
            self.paths.control(self.program),
            handlers,
            on_error=lambda command, error: self.log.error("command-failed", command=command, exc_info=error),
            for_readers=for_readers,
        )


def begin(program: str) -> HubStart | None:
    """Return the resources if this process is the only `program` in the runtime directory; else log why not.

    The lock is held until the process ends.
    """
    capabilities.keep_from_children()
    paths = Paths.from_environment(os.environ)
    log = AcceptedLog(program, paths).logger
    gevent.spawn(limiter().follow, gevent.sleep)
    stop = Event()
    survive(signal.SIGUSR1, signal.SIGUSR2)
    for number in (signal.SIGTERM, signal.SIGINT):
        gevent.signal_handler(number, stop.set)
    lock = paths.runtime / f"{program}.lock"
    try:
        held = lock_files.hold(lock)
    except OSError as error:
        log.error("cannot-start", path=str(lock), reason=error.strerror or str(error))  # noqa: TRY400  # no bug
        return None
    if held is None:
        log.error("already-running", lock=str(lock))
        return None
    heartbeat = HubHeartbeat(paths.heartbeat(program), log)
    return HubStart(program=program, paths=paths, log=log, stop=stop, heartbeat=heartbeat)
