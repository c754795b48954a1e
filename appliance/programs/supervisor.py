"""supervisord, as the appliance runs it: `python -m appliance.programs.supervisor -n -c supervisord.conf`.

What differs from the original, each by overriding one of its methods:

- a signal ends its poll at once, so that a crashed program is started again in milliseconds;
- programs of the same priority stop together; a second TERM, INT or QUIT kills everything at once;
- USR1 is HAProxy's soft stop: everything stops in order, and sessions end by themselves, without a deadline;
- USR2 has the log file reopened, as in the original;
- HUP is for the program `reload`, because supervisord's own meaning of it would end all traffic;
- programs write to our standard output themselves: nothing stands between them and a socket of journald,
  and a reader that has stopped reading cannot stop supervisord. Their standard error comes through here,
  because its last line is the reason why a program does not start;
- it logs as the programs do;
- of the capabilities that it was given each program gets those that it uses, and it uses none itself;
- a program that hangs is killed, and then started again as any other (programs/watchdog);
- systemd is told when the start is over, that the loop goes round, and that the end has begun;
- orphans (workers whose master died) become its children, and are ended when everything ends;
- what an earlier supervisord left running in our runtime directory ends with us, at whatever moment we are
  told to end: from its first line on signals wait until they can be obeyed.
"""

import contextlib
import os
import signal
import sys
import time
from enum import Enum, auto
from typing import Final

from supervisor import events, supervisord
from supervisor.medusa import asyncore_25 as asyncore
from supervisor.process import ProcessGroup, Subprocess
from supervisor.states import ProcessStates, SupervisorStates

from appliance.core.rollout.needed_programs import PROGRAMS, PROXIES, STOP_MARGIN, VRRP, stop_seconds
from appliance.core.rollout.timing import NO_DEADLINE
from appliance.model.operator_events import Tell
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import SnapshotError
from appliance.net.events.event_board import EventBoard, Mapped
from appliance.net.files import snapshots
from appliance.net.files.kept_counts import KeptCounts
from appliance.net.files.lock_files import KeptLock
from appliance.net.logging.log_sink import lines
from appliance.net.privileges import capabilities
from appliance.net.process import leftovers, subreaper
from appliance.net.process.leftovers import Leftovers
from appliance.net.supervision.program_events import ProgramEvents
from appliance.net.supervision.service_manager import ServiceManager
from appliance.net.supervision.supervisord import EXIT_SIGNALS, Options, Wakeup
from appliance.programs.accepted_log import AcceptedLog
from appliance.programs.succession.standing_by import StandingBy
from appliance.programs.succession.succession import Phase, Succession
from appliance.programs.watchdog import HeartbeatWatch
from appliance.wire.lines.succession import (
    LOCK,
    PREDECESSOR,
    Predecessor,
    SuccessionError,
    decode_predecessor,
)

_UNSETTLED: Final = (ProcessStates.STARTING, ProcessStates.BACKOFF, ProcessStates.STOPPING)
_SAME_REQUEST: Final = 0.2  # seconds; wrappers such as timeout(1) signal a process and then its group
_LONGEST_START: Final = (
    10.0  # seconds after which systemd is told that the start is over, whoever still tries
)
SUPERVISOR: Final = "supervisor"
"""The name by which supervisord logs, and tells events."""

_OURS: Final = frozenset({"reload", *PROGRAMS})
_ORPHAN_PATIENCE: Final = 3.0  # seconds for orphans to end, after TERM and again after KILL


class _End(Enum):
    """How a supervisord ends: told to, by force, or in favour of another one."""

    STOPPED = auto()
    FORCED = auto()
    RELIEVED = auto()
    GAVE_WAY = auto()


class Supervisor(supervisord.Supervisor):  # type: ignore[misc]  # supervisor has no types
    """supervisord with the differences that the module names."""

    stop_groups: list[ProcessGroup] | None = None

    def __init__(  # what it connects
        self,
        options: Options,
        accepted: AcceptedLog,
        paths: Paths,
        *,
        manager: ServiceManager,
        tell: Tell,
        lock: KeptLock,
        predecessor: Predecessor | None,
    ) -> None:
        super().__init__(options)
        options.poller.unsettled = self._unsettled
        self.forced = False
        self._asked_at: float | None = None  # by a signal
        self._soft = False
        self._program_events = ProgramEvents(accepted.logger, tell)
        self._accepted_log = accepted
        self._log = log = accepted.logger
        self._paths = paths
        self._leftovers = Leftovers(paths, log)
        self._standing_by = StandingBy(paths, log, options=options, supervisor=self, left=self._leftovers)
        self._succession = Succession(
            paths,
            log,
            tell=tell,
            lock=lock,
            supervised=self._standing_by,
            socket_map=asyncore.socket_map,
            predecessor=predecessor,
        )
        self._watch = HeartbeatWatch(paths, log)
        self._starts, self._uncounted = KeptCounts(paths.program_starts), False
        self._lock = lock
        self._locked = True
        self._manager = manager
        self._begun_at = time.monotonic()
        self._unended: dict[int, str] = {}
        self._drained_at = 0.0

    def add_process_group(self, config: object) -> bool:
        """Subscribe before the first program starts: `run` has just cleared all subscriptions."""
        if not self.process_groups:
            events.subscribe(events.ProcessStateEvent, self._state_changed)
            events.subscribe(events.ProcessLogStderrEvent, self._program_events.complained)
            events.subscribe(events.SupervisorStoppingEvent, self._stopping)
            events.subscribe(events.SupervisorRunningEvent, self._running)
        added: bool = super().add_process_group(config)
        return added

    @property
    def succession(self) -> Succession:
        """Our part in a take-over; there from the first turn of the loop."""
        return self._succession

    def reap(self, once: bool = False, recursionguard: int = 0) -> None:  # noqa: FBT001, FBT002  # supervisor's signature
        """Reap, and start again at once what has to be: the original would sleep first."""
        super().reap(once, recursionguard)
        if (
            recursionguard == 0 and not self._standing_by.active
        ):  # it calls itself for each child that has ended
            for group in sorted(self.process_groups.values()):
                group.transition()

    def tick(self, now: float | None = None) -> None:
        """Do our part of each round of supervisord's loop: sockets, lock, heartbeats, systemd's watchdog."""
        super().tick(now)
        at = time.monotonic()
        if self._succession.tick(at):
            raise asyncore.ExitNow
        if self._standing_by.active:
            self._manager.alive(at)
            return
        self._standing_by.end_others()
        self._listen_again()
        self._keep_lock()
        self._accepted_log.follow()
        for each in self._watch.look(self._watched(), at):
            self._program_events.hung(each.name, each.silent)
        self._manager.alive(at)
        if at > self._begun_at + _LONGEST_START or not self._coming_up():
            self._manager.ready()

    def _watched(self) -> dict[str, int]:
        """Return the process ids of our programs that run; one that stops has a time of its own."""
        running = (ProcessStates.STARTING, ProcessStates.RUNNING)
        return {
            each.config.name: each.pid
            for each in self._processes()
            if each.config.name in _OURS and each.get_state() in running and each.pid
        }

    def _coming_up(self) -> bool:
        return any(
            each.config.autostart and each.get_state() != ProcessStates.RUNNING for each in self._processes()
        )

    def handle_signal(self) -> None:
        """Handle every signal that has come; the original handles one in each round of its loop."""
        while number := self.options.get_signal():
            if number in EXIT_SIGNALS:
                self._exit_requested(signal.Signals(number))
            elif number == signal.SIGHUP:
                self._forward_hangup()
            elif number == signal.SIGUSR2:
                lines().reopen()  # the others find by themselves what is at the path
                self._log.info("log-reopened")

    def _listen_again(self) -> None:
        """Listen anew where somebody has removed our socket: who restarts a program must find us."""
        if self.options.mood >= SupervisorStates.RUNNING and not self._paths.supervisor_socket.exists():
            with contextlib.suppress(OSError):  # the directory cannot be made yet
                self._log.warning("socket-gone", path=str(self._paths.supervisor_socket))
                self._paths.runtime.mkdir(mode=0o700, exist_ok=True)
                self.options.close_httpservers()
                self.options.httpservers = self.options.make_http_servers(self)

    def _keep_lock(self) -> None:
        """Lock the directory anew where somebody has removed the lock: a second `run` would go ahead."""
        locked = self._lock.keep()
        if self._locked and not locked:
            self._log.error("runtime-directory-taken", path=str(self._paths.runtime))
        self._locked = locked

    def ordered_stop_groups_phase_1(self) -> None:
        """Stop the groups of the highest priority number that is left; one that never ran costs no round."""
        self._forget_stopped()
        for group in self._stopping_now():
            group.stop_all()

    def ordered_stop_groups_phase_2(self) -> None:
        """Drop the groups that have stopped from the list of those that are to."""
        self._forget_stopped()

    def _forget_stopped(self) -> None:
        self.stop_groups = [group for group in self.stop_groups or () if group.get_unstopped_processes()]

    def shutdown_report(self) -> list[object]:
        """Return what has to end before we may: our programs, then what is left of an earlier supervisord."""
        unstopped: list[object] = super().shutdown_report()
        return unstopped or self._end_leftovers()

    def _end_leftovers(self) -> list[object]:
        """Let workers without a master drain as those of ours did, and kill what is there after that."""
        self._unended = self._leftovers.find()
        if self.forced or time.time() > self._drained_at + STOP_MARGIN:
            self._leftovers.kill()
        elif self._unended:
            self._leftovers.end_programs()
            self._leftovers.drain_workers(self._drained_at)
        return list(self._unended)

    def _stopping_now(self) -> list[ProcessGroup]:
        if not self.stop_groups:
            return []
        priority = max(group.config.priority for group in self.stop_groups)
        return [group for group in self.stop_groups if group.config.priority == priority]

    def _processes(self) -> list[Subprocess]:
        return [each for group in self.process_groups.values() for each in group.processes.values()]

    def _unsettled(self) -> bool:
        if self._standing_by.active or self._succession.busy:
            return True
        return bool(self._unended) or any(
            process.get_state() in _UNSETTLED or (process.config.autostart and not process.laststart)
            for process in self._processes()
        )

    def _exit_requested(self, number: signal.Signals) -> None:
        if self._succession.told_to_end():
            self._log.info("stopping", signal=number.name)
            return
        if number == signal.SIGUSR1:
            self._soft_stop()
            return
        if self._asked_at is None:  # `supervisorctl shutdown` is no signal: the first after it kills nothing
            self._log.info("stopping", signal=number.name)
            self._asked_at = time.monotonic()
            if self._soft:
                self._give_soft_stop_deadlines()
            self.options.mood = SupervisorStates.SHUTDOWN
            return
        if time.monotonic() < self._asked_at + _SAME_REQUEST:
            return
        self._log.warning("killing", signal=number.name)
        self.forced = True
        for pid in (process.pid for process in self._processes() if process.pid):
            # The group first, as a program may have children. supervisord's child calls setpgrp(2) itself
            # after the fork, so a very young one has no group of its own yet.
            for kill in (os.killpg, os.kill):
                with contextlib.suppress(ProcessLookupError):
                    kill(pid, signal.SIGKILL)

    def _soft_stop(self) -> None:
        """Stop without a deadline; a stop that is under way goes on as it is."""
        if self.options.mood >= SupervisorStates.RUNNING:
            self._log.info("stopping", signal=signal.SIGUSR1.name)
            self._soft = True
            self.options.mood = SupervisorStates.SHUTDOWN

    def _give_soft_stop_deadlines(self) -> None:
        """Turn a soft stop into an ordinary one, whose deadlines count from now on."""
        self._soft = False
        self._set_deadlines()
        for process in self._processes():
            if process.config.name in PROXIES:
                process.config.stopsignal = signal.SIGTERM
                if process.get_state() == ProcessStates.STOPPING:
                    process.delay = time.time() + process.config.stopwaitsecs
                    process.signal(signal.SIGTERM)

    def _will_start(self, program: str) -> bool:
        return any(each.config.name == program and each.config.autostart for each in self._processes())

    def _forward_hangup(self) -> None:
        for process in self._processes():
            if process.config.name == "reload" and process.pid:
                process.signal(signal.SIGHUP)

    def _running(self, _: object) -> None:
        """Begin to supervise, where there was another one in its place.

        End the programs of a supervisord that was killed; masters hand their workers over to ours.

        The program of the virtual IPs goes on until ours has taken over: told to end, it gives them away.
        """
        self._succession.begin(time.monotonic())
        self.handle_signal()  # told to end before the first program was started: none has to be
        starts = self.options.mood >= SupervisorStates.RUNNING and self._will_start(VRRP)
        self._leftovers.end_programs(spared=leftovers.VRRP if starts else ())

    def _stopping(self, _: object) -> None:
        self._set_deadlines()
        if self._soft:
            # Masters know USR1 as the soft stop; TERM would have them cut sessions at the drain time.
            self._drained_at = time.time() + NO_DEADLINE
            for process in self._processes():
                if process.config.name in PROXIES:
                    process.config.stopsignal, process.config.stopwaitsecs = signal.SIGUSR1, NO_DEADLINE

    def _state_changed(self, event: events.ProcessStateEvent) -> None:
        if self._standing_by.active:  # the board of events is the other one's
            self._log.info("program-left", name=event.process.config.name, pid=event.process.pid or None)
            return
        name = event.process.config.name
        if type(event) is events.ProcessStateStartingEvent and name in _OURS:
            self._watch.prepare(name)
            self._count_start(name)
        self._program_events.state_changed(event, str(self.options.ended))

    def _count_start(self, program: str) -> None:
        try:
            self._starts.count(program)
        except OSError as error:
            if not self._uncounted:
                self._log.warning("starts-not-counted", reason=error.strerror)
            self._uncounted = True
        else:
            self._uncounted = False

    def _set_deadlines(self) -> None:
        """Give programs the time of the configuration that is accepted now, not at the start."""
        if self.options.mood < SupervisorStates.RESTARTING and not self._soft:
            self._manager.stopping()  # not of a soft stop: systemd would cut it after TimeoutStopSec=
        self._drained_at = time.time()
        accepted = None
        with contextlib.suppress(SnapshotError):
            accepted = snapshots.read(self._paths.accepted)
        if accepted is None:
            return
        self._drained_at += accepted.drain
        for process in self._processes():
            seconds = stop_seconds(accepted, process.config.name)
            if seconds is not None:
                process.config.stopwaitsecs = seconds


def main() -> None:
    """Run until everything has stopped; exit status 0, or 1 where programs had to be killed on request.

    One that another one has relieved leaves what still runs to that one, and ends with 0; one that could not
    take over, with 1.
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
    log.info("stopped", forced=ended is _End.FORCED)
    sys.exit(1 if ended in (_End.FORCED, _End.GAVE_WAY) else 0)


def _run(accepted: AcceptedLog, paths: Paths, manager: ServiceManager) -> _End:
    """Supervise, again after `supervisorctl reload`; return how it has ended."""
    first, wakeup = True, Wakeup()
    tell = EventBoard(paths.event_board(SUPERVISOR), SUPERVISOR, mapped=Mapped.WHILE_TELLING)
    held = os.environ.pop(LOCK, "")
    lock = KeptLock(paths.lock, int(held) if held.isdigit() else None)
    predecessor = _predecessor(accepted)
    while True:
        options = Options(accepted.logger)
        options.realize(sys.argv[1:], doc=supervisord.__doc__)
        options.first, options.test = first, False
        supervisor = Supervisor(
            options, accepted, paths, manager=manager, tell=tell, lock=lock, predecessor=predecessor
        )
        asyncore.socket_map[wakeup.descriptor] = wakeup
        with contextlib.suppress(asyncore.ExitNow):
            supervisor.main()
        signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_SIGNALS)
        succession = supervisor.succession
        if succession.phase is Phase.RELIEVED:
            return _End.GAVE_WAY if succession.failed else _End.RELIEVED
        supervisor.handle_signal()  # a TERM may have come when a restart was as good as done
        succession.close()
        options.close_httpservers()
        options.close_logger()
        if options.mood < SupervisorStates.RESTARTING:
            return _End.FORCED if supervisor.forced else _End.STOPPED
        first, predecessor = False, None


def _predecessor(accepted: AcceptedLog) -> Predecessor | None:
    """Return the one that stands by for us, where `run` has found one."""
    left = os.environ.pop(PREDECESSOR, "")
    try:
        return decode_predecessor(left) if left else None
    except SuccessionError as error:
        accepted.logger.error("predecessor-unknown", reason=str(error))  # noqa: TRY400  # no bug of ours
        return None


if __name__ == "__main__":
    main()
