"""How a program starts that works in gevent's hub: its signals, its lock, its heartbeat."""

import signal
from dataclasses import dataclass

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.files import lock_files
from appliance.net.logging.line_limiter import limiter
from appliance.net.process.signals import survive


@dataclass(frozen=True, slots=True, kw_only=True)
class HubStart:
    """What a started program has. `stop` is set by TERM and INT."""

    stop: Event
    heartbeat: HubHeartbeat


def begin(program: str, paths: Paths, log: FilteringBoundLogger) -> HubStart | None:
    """Return it once this process is the only one of `program` in the runtime directory; else say why not.

    The lock is held until the process ends.
    """
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
    return HubStart(stop=stop, heartbeat=HubHeartbeat(paths.heartbeat(program), log))
