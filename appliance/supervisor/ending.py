"""The end of everything: who requests it, how long each program has, and what is killed after that.

The first TERM, INT or QUIT stops in order, the second kills. USR1 is HAProxy's soft stop: without deadlines,
until a TERM sets them. Processes that an earlier supervisord left running in our runtime directory end with
this one.
"""

import contextlib
import os
import signal
import time
from typing import Final

from structlog.typing import FilteringBoundLogger
from supervisor.states import ProcessStates, SupervisorStates

from appliance.core.program_table import STOP_MARGIN, stop_seconds
from appliance.core.rollout.timing import NO_DEADLINE
from appliance.model.paths import Paths
from appliance.model.program_names import PROXIES
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.files import snapshots
from appliance.net.process.leftovers import Leftovers
from appliance.supervisor.running_programs import Programs
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.supervisord_options import Options

_SAME_REQUEST: Final = 0.2  # seconds; wrappers such as timeout(1) signal a process and then its group


class Ending:
    """How one supervisord ends. `forced` after a second signal."""

    def __init__(  # what it connects
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        options: Options,
        programs: Programs,
        left: Leftovers,
        manager: ServiceManager,
    ) -> None:
        self.forced = False
        self._paths, self._log, self._options = paths, log, options
        self._programs, self._leftovers, self._manager = programs, left, manager
        self._asked_at: float | None = None  # by a signal
        self._soft = False
        self._unended: dict[int, str] = {}
        self._drained_at = 0.0

    @property
    def waits(self) -> bool:
        """Return whether processes that an earlier supervisord left are still waited for."""
        return bool(self._unended)

    def requested(self, number: signal.Signals) -> None:
        """Handle a signal that ends everything."""
        if number == signal.SIGUSR1:
            self._stop_softly()
            return
        if self._asked_at is None:  # `supervisorctl shutdown` is no signal: the first after it kills nothing
            self._log.info("stopping", signal=number.name)
            self._asked_at = time.monotonic()
            if self._soft:
                self._give_soft_stop_deadlines()
            self._options.mood = SupervisorStates.SHUTDOWN
            return
        if time.monotonic() < self._asked_at + _SAME_REQUEST:
            return
        self._log.warning("killing", signal=number.name)
        self.forced = True
        for pid in self._programs.processes().values():
            # The group first, as a program may have children. supervisord's child calls setpgrp(2) itself
            # after the fork, so a very young one is not in a group of its own yet.
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)

    def begin(self, _: object) -> None:
        """Set every program's deadline; called once, by supervisord's event, before the first is stopped."""
        self._set_deadlines()
        if self._soft:
            # Masters use USR1 for the soft stop; TERM would make them cut sessions at the drain time.
            self._drained_at = time.time() + NO_DEADLINE
            for process in self._programs.all():
                if process.config.name in PROXIES:
                    process.config.stopsignal, process.config.stopwaitsecs = signal.SIGUSR1, NO_DEADLINE

    def end_leftovers(self) -> list[object]:
        """Let workers without a master drain as ours did, then kill leftovers; return those still alive."""
        self._unended = self._leftovers.find()
        if self.forced or time.time() > self._drained_at + STOP_MARGIN:
            self._leftovers.kill()
        elif self._unended:
            self._leftovers.end_programs()
            self._leftovers.drain_workers(self._drained_at)
        return list(self._unended)

    def _stop_softly(self) -> None:
        """Stop without a deadline; a stop that is under way continues unchanged."""
        if self._options.mood >= SupervisorStates.RUNNING:
            self._log.info("stopping", signal=signal.SIGUSR1.name)
            self._soft = True
            self._options.mood = SupervisorStates.SHUTDOWN

    def _give_soft_stop_deadlines(self) -> None:
        """Turn a soft stop into an ordinary one, whose deadlines count from now on."""
        self._soft = False
        self._set_deadlines()
        for process in self._programs.all():
            if process.config.name in PROXIES:
                process.config.stopsignal = signal.SIGTERM
                if process.get_state() == ProcessStates.STOPPING:
                    process.delay = time.time() + process.config.stopwaitsecs
                    process.signal(signal.SIGTERM)

    def _set_deadlines(self) -> None:
        """Use the deadlines of the configuration that is accepted now, not at the start."""
        if self._options.mood < SupervisorStates.RESTARTING and not self._soft:
            self._manager.stopping()  # not on a soft stop: systemd would cut it after TimeoutStopSec=
        self._drained_at = time.time()
        accepted = None
        with contextlib.suppress(SnapshotError):
            accepted = snapshots.read(self._paths.accepted)
        if accepted is None:
            return
        self._drained_at += accepted.drain
        for process in self._programs.all():
            seconds = stop_seconds(accepted, process.config.name)
            if seconds is not None:
                process.config.stopwaitsecs = seconds
