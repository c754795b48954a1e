"""The start of a program on gevent's hub: its log, signals, lock, heartbeat and control socket."""

import os
import signal
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import gevent
from gevent.event import Event
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.control.control_server import ControlServer, Handler
from appliance.net.files import lock_files, snapshots
from appliance.net.logging.line_limiter import limiter
from appliance.net.privileges import capabilities
from appliance.net.process.signals import survive
from appliance.net.starting.accepted_log import AcceptedLog


class Applying(Protocol):
    """What makes a snapshot real."""

    def apply(self, snapshot: Snapshot) -> None:
        """Apply a snapshot in place of any other."""


class Commands(Protocol):
    """What answers on the control socket."""

    def handlers(self) -> Mapping[str, Handler]:
        """Return the commands by their names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HubStart:
    """The resources of a started program. `stop` is set by TERM, INT, and the first of `faults`."""

    program: str
    paths: Paths
    log: FilteringBoundLogger
    stop: Event
    heartbeat: HubHeartbeat
    faults: list[BaseException | None] = field(default_factory=list)

    def ends_after(
        self, report: Callable[[BaseException | None], None]
    ) -> Callable[[BaseException | None], None]:
        """Return what ends the program after a bug in one of its loops, once `report` has logged it."""

        def end(fault: BaseException | None) -> None:
            report(fault)
            self.faults.append(fault)
            self.stop.set()

        return end

    def apply_accepted(self, program: Applying) -> None:
        """Apply the accepted snapshot, if there is one."""
        accepted = snapshots.accepted(self.paths, self.log)
        if accepted is not None:
            program.apply(accepted)

    def answer(self, commands: Commands, *, for_readers: Collection[str] = ("status",)) -> ControlServer:
        """Answer on the control socket; `for_readers` are what members of `group:` may use, too."""
        return ControlServer(
            self.paths.control(self.program),
            commands.handlers(),
            on_error=lambda command, error: self.log.error("command-failed", command=command, exc_info=error),
            for_readers=for_readers,
        )

    def end(self) -> int:
        """Stop the heartbeat; return the exit status: 1 after a fault."""
        self.heartbeat.close()
        return 1 if self.faults else 0


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
