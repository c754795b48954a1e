"""supervisord, as the appliance runs it: `python -m appliance.programs.supervisor -n -c supervisord.conf`.

Differences from the original (supervisor):

- a signal ends its poll at once, so a crashed program is restarted in milliseconds;
- programs of the same priority stop together; a second TERM, INT or QUIT kills everything at once;
- USR1 is HAProxy's soft stop: everything stops in order, and sessions end on their own, without a deadline;
- USR2 is an upgrade in place: the now installed release takes over (the log file needs no signal);
- HUP goes to the program `reload`, because supervisord's own reaction would end all traffic;
- programs write directly to our standard output, which may be a socket of journald, and a reader that stops
  reading cannot block supervisord. Their standard error passes through here, because its last line is the
  reason why a program does not start;
- it logs as the programs do;
- each program gets those of our capabilities that it uses, and supervisord itself uses none;
- a program that hangs is killed, and then restarted like any other (supervisor/watchdog);
- systemd is notified of the end of the start, of turns of the loop, and of the beginning of the stop;
- orphans (workers whose master died) become its children, and are terminated when everything ends;
- programs that an earlier supervisord left running in our runtime directory end with this one, whenever it is
  asked to end: signals are held from the first line on until they can be handled;
- another one can take its place while it runs, and vice versa (supervisor/succession).
"""

import contextlib
import os
import signal
import sys
from enum import Enum, auto
from typing import Final

from structlog.typing import FilteringBoundLogger
from supervisor import supervisord
from supervisor.medusa import asyncore_25 as asyncore
from supervisor.states import SupervisorStates

from appliance.model.paths import Paths
from appliance.net.events.event_board import EventBoard
from appliance.net.files.lock_files import KeptLock
from appliance.net.privileges import capabilities
from appliance.net.process import subreaper
from appliance.net.starting.accepted_log import AcceptedLog
from appliance.supervisor.program_forks import ProgramForks
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.supervisor import Supervisor
from appliance.supervisor.supervisord_options import EXIT_SIGNALS, Options, Wakeup
from appliance.wire.lines.succession import (
    LOCK,
    OTHER_GOES_ON,
    PREDECESSOR,
    Predecessor,
    SuccessionError,
    decode_predecessor,
)

SUPERVISOR: Final = "supervisor"
"""supervisord's name in logs and events."""

_ORPHAN_PATIENCE: Final = 3.0  # seconds for orphans to end, after TERM and again after KILL


class _End(Enum):
    """How a supervisord ends: on request, by force, or in favour of another."""

    STOPPED = auto()
    FORCED = auto()
    RELIEVED = auto()
    GAVE_WAY = auto()


def main() -> None:
    """Run until everything has stopped; exit status 0, or 1 if programs had to be killed on request.

    If another one takes over, it leaves running programs to that one, and exits with 0; one that could not
    take over, with 3.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_SIGNALS)
    paths = Paths.from_environment(os.environ)
    accepted = AcceptedLog(SUPERVISOR, paths)
    log = accepted.logger
    subreaper.become_subreaper()
    capabilities.carry()
    ended = _run(accepted, paths, ServiceManager(os.environ))
    if ended not in (_End.RELIEVED, _End.GAVE_WAY):
        patience = 0 if ended is _End.FORCED else _ORPHAN_PATIENCE
        subreaper.end_children(patience=patience, last_patience=_ORPHAN_PATIENCE)
        _forget_shared_addresses(paths, log)
    log.info("stopped", forced=ended is _End.FORCED)
    sys.exit({_End.FORCED: 1, _End.GAVE_WAY: OTHER_GOES_ON}.get(ended, 0))


def _forget_shared_addresses(paths: Paths, log: FilteringBoundLogger) -> None:
    """Remove the addresses that `announce` left for proxies that drained, and what a killed one left."""
    if paths.announce_lock.exists():
        from appliance.announce import announce_leftovers  # noqa: PLC0415  # netlink, for this case only

        with capabilities.in_effect():
            announce_leftovers.remove_all(paths, log)


def _run(accepted: AcceptedLog, paths: Paths, manager: ServiceManager) -> _End:
    """Supervise, again after `supervisorctl reload`; return how it ended."""
    first, wakeup = True, Wakeup()
    forks = ProgramForks()
    forks.load()
    publish = EventBoard(paths.event_board(SUPERVISOR), SUPERVISOR, mapped=False)
    lock = KeptLock(paths.lock, _held_lock())
    predecessor = _predecessor(accepted)
    while True:
        options = Options(accepted.logger)
        options.forks = forks
        options.realize(sys.argv[1:], doc=supervisord.__doc__)
        options.first, options.test = first, False
        supervisor = Supervisor(
            options, accepted, paths, manager=manager, publish=publish, lock=lock, predecessor=predecessor
        )
        asyncore.socket_map[wakeup.descriptor] = wakeup
        with contextlib.suppress(asyncore.ExitNow):
            supervisor.main()
        signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_SIGNALS)
        succession = supervisor.succession
        if succession.relieved:
            return _End.GAVE_WAY if succession.failed else _End.RELIEVED
        supervisor.handle_signal()  # a TERM may have come when a restart was nearly done
        succession.close()
        options.close_httpservers()
        options.close_logger()
        if options.mood < SupervisorStates.RESTARTING:
            return _End.FORCED if supervisor.forced else _End.STOPPED
        first, predecessor = False, None


def _held_lock() -> int | None:
    """Return the descriptor that holds the runtime directory; our programs do not inherit it."""
    held = os.environ.pop(LOCK, "")
    if not held.isdigit():
        return None
    os.set_inheritable(int(held), False)  # noqa: FBT003  # its only parameter
    return int(held)


def _predecessor(accepted: AcceptedLog) -> Predecessor | None:
    """Return the one that stands by for us, if `run` found one."""
    left = os.environ.pop(PREDECESSOR, "")
    try:
        return decode_predecessor(left) if left else None
    except SuccessionError as error:
        accepted.logger.error("predecessor-unknown", reason=str(error))  # noqa: TRY400  # no bug of ours
        return None


if __name__ == "__main__":
    main()
