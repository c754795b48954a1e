"""supervisord's class with our differences, each in an overridden method; the parts are in this package."""

import contextlib
import signal
import time
from typing import Final

from structlog.typing import FilteringBoundLogger
from supervisor import events, supervisord
from supervisor.medusa import asyncore_25 as asyncore
from supervisor.process import ProcessGroup
from supervisor.states import SupervisorStates

from appliance.model.operator_events import Publish
from appliance.model.paths import Paths
from appliance.model.program_names import VRRP
from appliance.net.files.lock_files import KeptLock
from appliance.net.process import leftovers
from appliance.net.process.leftovers import Leftovers
from appliance.net.starting.accepted_log import AcceptedLog
from appliance.supervisor.ending import Ending
from appliance.supervisor.program_changes import ProgramChanges
from appliance.supervisor.release_starter import ReleaseStarter
from appliance.supervisor.running_programs import Programs
from appliance.supervisor.service_manager import ServiceManager
from appliance.supervisor.succession.reports import SuccessionReports
from appliance.supervisor.succession.standing_by import StandingBy
from appliance.supervisor.succession.succession import Succession
from appliance.supervisor.supervisord_options import EXIT_SIGNALS, Options
from appliance.wire.lines.succession import Predecessor


class KeptNames:
    """The socket and the lock in the runtime directory, which a clean-up may remove."""

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        options: Options,
        supervisor: "Supervisor",
        lock: KeptLock,
    ) -> None:
        self._paths, self._log = paths, log
        self._options, self._supervisor = options, supervisor
        self._lock, self._locked = lock, True

    def keep(self) -> None:
        """Restore what is gone; called at each turn of the loop."""
        self._listen_again()
        self._keep_lock()

    def _listen_again(self) -> None:
        """Listen again if our socket was removed: a client that restarts a program must find us."""
        if self._options.mood >= SupervisorStates.RUNNING and not self._paths.supervisor_socket.exists():
            with contextlib.suppress(OSError):  # the directory cannot be created yet
                self._log.warning("socket-gone", path=str(self._paths.supervisor_socket))
                self._paths.runtime.mkdir(mode=0o700, exist_ok=True)
                self._options.close_httpservers()
                self._options.httpservers = self._options.make_http_servers(self._supervisor)

    def _keep_lock(self) -> None:
        """Lock the directory again if the lock was removed: otherwise a second `run` would start."""
        locked = self._lock.keep()
        if self._locked and not locked:
            self._log.error("runtime-directory-taken", path=str(self._paths.runtime))
        self._locked = locked


_LONGEST_START: Final = 10.0
"""Seconds after which systemd is notified that the start is complete, even if programs still try."""


class Supervisor(supervisord.Supervisor):  # type: ignore[misc]  # supervisor has no types
    """supervisord with the differences that programs/supervisor names."""

    stop_groups: list[ProcessGroup] | None = None

    def __init__(  # what it connects
        self,
        options: Options,
        accepted: AcceptedLog,
        paths: Paths,
        *,
        manager: ServiceManager,
        publish: Publish,
        lock: KeptLock,
        predecessor: Predecessor | None,
    ) -> None:
        super().__init__(options)
        options.poller.unsettled = self._unsettled
        self._accepted_log = accepted
        self._log = log = accepted.logger
        self._manager = manager
        self._programs = programs = Programs(self)
        self._leftovers = left = Leftovers(paths, log)
        self._standing_by = StandingBy(
            paths, log, options=options, supervisor=self, programs=programs, left=left
        )
        self._succession = Succession(
            paths,
            reports=SuccessionReports(paths, log, publish),
            lock=lock,
            supervised=self._standing_by,
            socket_map=asyncore.socket_map,
            starter=ReleaseStarter(options, manager),
            predecessor=predecessor,
        )
        self._ending = Ending(paths, log, options=options, programs=programs, left=left, manager=manager)
        self._names = KeptNames(paths, log, options=options, supervisor=self, lock=lock)
        self._changes = ProgramChanges(
            paths, log, options=options, publish=publish, standing_by=self._standing_by
        )
        self._begun_at = time.monotonic()

    @property
    def succession(self) -> Succession:
        """Our part in a take-over; exists from the first turn of the loop."""
        return self._succession

    @property
    def forced(self) -> bool:
        """Return whether programs were killed on request."""
        return self._ending.forced

    def add_process_group(self, config: object) -> bool:
        """Subscribe before the first program starts: `run` has just cleared all subscriptions."""
        if not self.process_groups:
            self._changes.subscribe()
            events.subscribe(events.SupervisorStoppingEvent, self._ending.begin)
            events.subscribe(events.SupervisorRunningEvent, self._running)
        added: bool = super().add_process_group(config)
        return added

    def reap(self, once: bool = False, recursionguard: int = 0) -> None:  # noqa: FBT001, FBT002  # supervisor's signature
        """Reap, and restart at once what must run: the original would sleep first."""
        super().reap(once, recursionguard)
        if recursionguard == 0 and not self._standing_by.active:  # it calls itself for each child that ended
            for group in sorted(self.process_groups.values()):
                group.transition()

    def tick(self, now: float | None = None) -> None:
        """Do our part of each round of supervisord's loop: names, log, heartbeats, systemd's watchdog."""
        super().tick(now)
        at = time.monotonic()
        if self._succession.tick(at):
            raise asyncore.ExitNow
        if not self._standing_by.active:
            self._look_after(at)
        if self._succession.in_charge:
            self._notify(at)

    def _look_after(self, now: float) -> None:
        self._standing_by.end_others()
        self._names.keep()
        self._accepted_log.follow()
        self._changes.look(self._programs.watched(), now)

    def _notify(self, now: float) -> None:
        self._manager.alive(now)
        if now > self._begun_at + _LONGEST_START or not self._programs.coming_up():
            self._manager.ready()

    def handle_signal(self) -> None:
        """Handle every pending signal; the original handles one in each round of its loop."""
        while number := self.options.get_signal():
            if number in EXIT_SIGNALS:
                self._exit_requested(signal.Signals(number))
            elif number == signal.SIGHUP:
                self._forward_hangup()
            elif number == signal.SIGUSR2:
                self._succession.upgrade()

    def ordered_stop_groups_phase_1(self) -> None:
        """Stop the groups of the highest remaining priority number; one that never ran costs no round."""
        self._forget_stopped()
        for group in self._stopping_now():
            group.stop_all()

    def ordered_stop_groups_phase_2(self) -> None:
        """Drop the groups that have stopped from the list of those to stop."""
        self._forget_stopped()

    def shutdown_report(self) -> list[object]:
        """Return what must end before we may: our programs, then the leftovers of an earlier supervisord."""
        unstopped: list[object] = super().shutdown_report()
        return unstopped or self._ending.end_leftovers()

    def _forget_stopped(self) -> None:
        self.stop_groups = [group for group in self.stop_groups or () if group.get_unstopped_processes()]

    def _stopping_now(self) -> list[ProcessGroup]:
        if not self.stop_groups:
            return []
        priority = max(group.config.priority for group in self.stop_groups)
        return [group for group in self.stop_groups if group.config.priority == priority]

    def _unsettled(self) -> bool:
        changing = self._standing_by.active or self._succession.busy
        return changing or self._ending.waits or self._programs.unsettled()

    def _exit_requested(self, number: signal.Signals) -> None:
        if self._succession.told_to_end():
            self._log.info("stopping", signal=number.name)
            return
        self._ending.requested(number)

    def _forward_hangup(self) -> None:
        for process in self._programs.all():
            if process.config.name == "reload" and process.pid:
                process.signal(signal.SIGHUP)

    def _running(self, _: object) -> None:
        """Begin to supervise, if another supervisord was in our place.

        End the programs of a killed supervisord; masters hand their workers over to ours. The program of the
        virtual IPs continues until ours has taken over: ended now, it would give them away.
        """
        self._succession.begin(time.monotonic())
        self.handle_signal()  # stopped before the first program was started: there is none to end
        starts = self.options.mood >= SupervisorStates.RUNNING and self._programs.will_start(VRRP)
        self._leftovers.end_programs(spared=leftovers.OF_VRRP if starts else ())
