"""State changes of our programs, as supervisord notifies us: logged and reported, and each start counted."""

import contextlib
import time
from typing import Final

from structlog.typing import FilteringBoundLogger
from supervisor import events
from supervisor.process import Subprocess

from appliance.model.operator_events import EventKind, OperatorEvent, Publish, publish_nowhere
from appliance.model.paths import Paths
from appliance.net.files.kept_counts import KeptCounts
from appliance.net.logging.journal import SyslogSeverity, levelled
from appliance.net.logging.output import STDOUT, output
from appliance.supervisor.running_programs import OURS
from appliance.supervisor.succession.standing_by import StandingBy
from appliance.supervisor.supervisord_options import Options
from appliance.supervisor.watchdog import HeartbeatWatch

_FIRST_PAUSE: Final = 0.25  # seconds before the second start of a program that does not stay up
_LONGEST_PAUSE: Final = 10.0  # seconds between two starts of a program that does not stay up
_LONGEST_REASON: Final = 300  # characters of a program's last line that its status repeats
EVENTS: Final = {
    events.ProcessStateStartingEvent: "program-starting",
    events.ProcessStateRunningEvent: "program-running",
    events.ProcessStateExitedEvent: "program-exited",
    events.ProcessStateBackoffEvent: "program-failing",
    events.ProcessStateFatalEvent: "program-given-up",
    events.ProcessStateStoppingEvent: "program-stopping",
    events.ProcessStateStoppedEvent: "program-stopped",
}
_TOLD: Final = {
    events.ProcessStateRunningEvent: EventKind.PROGRAM_RUNNING,
    events.ProcessStateExitedEvent: EventKind.PROGRAM_EXITED,
    events.ProcessStateBackoffEvent: EventKind.PROGRAM_FAILING,
    events.ProcessStateStoppedEvent: EventKind.PROGRAM_STOPPED,
}
TROUBLE: Final = (
    events.ProcessStateExitedEvent,
    events.ProcessStateBackoffEvent,
    events.ProcessStateFatalEvent,
)


class ProgramEvents:
    """Logs the state changes of programs, and remembers the last line that each wrote, as the reason.

    A program that does not start has only its standard error: supervisord reads that, and its last line
    becomes the reason in the log and in `status`.
    """

    def __init__(self, log: FilteringBoundLogger, publish: Publish = publish_nowhere) -> None:
        self._log = log
        self._publish = publish
        self._last_lines: dict[str, str] = {}

    def hung(self, name: str, seconds: float) -> None:
        """Note that a program is killed because it gave no sign of life for so long."""
        self._last_lines[name] = f"it hung: no sign of life for {seconds:.0f} s"

    def complained(self, event: events.ProcessLogStderrEvent) -> None:
        """Pass what a program wrote to standard error on, and keep its last line."""
        text = event.data.decode(errors="replace")
        with contextlib.suppress(OSError):
            output(STDOUT).write(levelled(text, SyslogSeverity.WARNING, STDOUT).encode())
        if words := [line.strip() for line in text.split("\n") if line.strip()]:
            self._last_lines[event.process.config.name] = words[-1][:_LONGEST_REASON]

    def state_changed(self, event: events.ProcessStateEvent, ended: str) -> None:
        """Log a change; `ended` is how the last reaped process ended.

        A program that does not stay up is restarted after a pause of ours: supervisord's pause grows by a
        second with each attempt and is bounded only by the number of attempts.
        """
        kind, process = type(event), event.process
        if kind is events.ProcessStateStartingEvent:
            self._last_lines.pop(process.config.name, None)
        if kind is events.ProcessStateBackoffEvent:
            process.spawnerr = self._reason(process, ended)
            pause = min(_FIRST_PAUSE * 2 ** min(process.backoff - 1, 10), _LONGEST_PAUSE)
            process.delay = time.time() + pause
        if kind is events.ProcessStateExitedEvent:
            process.spawnerr = self._reason(process, ended)
        if kind in EVENTS:
            fields = {"pid": process.pid or None, "reason": process.spawnerr if kind in TROUBLE else None}
            write = self._log.warning if kind in TROUBLE else self._log.info
            given = {key: value for key, value in fields.items() if value}
            write(EVENTS[kind], name=process.config.name, **given)
        if kind in _TOLD:
            self._publish(
                OperatorEvent(
                    when=time.time(),
                    kind=_TOLD[kind],
                    subject=process.config.name,
                    detail=process.spawnerr or "" if kind in TROUBLE else "",
                )
            )

    def _reason(self, process: Subprocess, ended: str) -> str:
        """Return how the process ended and its last line, or why none could be started."""
        if not process.pid:
            return str(process.spawnerr)
        words = self._last_lines.get(process.config.name)
        return f"{ended}: {words}" if words else ended


class ProgramChanges:
    """The changes of one supervisord's programs; while it stands by, the other supervisord reports them."""

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        options: Options,
        publish: Publish,
        standing_by: StandingBy,
    ) -> None:
        self._log, self._options, self._standing_by = log, options, standing_by
        self._events = ProgramEvents(log, publish)
        self._watch = HeartbeatWatch(paths, log)
        self._starts, self._uncounted = KeptCounts(paths.program_starts), False

    def subscribe(self) -> None:
        """Subscribe to supervisord's events; call it before the first program starts."""
        events.subscribe(events.ProcessStateEvent, self._changed)
        events.subscribe(events.ProcessLogStderrEvent, self._events.complained)

    def look(self, watched: dict[str, int], now: float) -> None:
        """Kill those of the programs `watched`, by name and process id, that hang, and report it."""
        for each in self._watch.look(watched, now):
            self._events.hung(each.name, each.silent)

    def _changed(self, event: events.ProcessStateEvent) -> None:
        name = event.process.config.name
        if self._standing_by.active:  # the board of events is the other supervisord's
            self._log.info("program-left", name=name, pid=event.process.pid or None)
            return
        if type(event) is events.ProcessStateStartingEvent and name in OURS:
            self._watch.prepare(name)
            self._count_start(name)
        self._events.state_changed(event, str(self._options.ended))

    def _count_start(self, program: str) -> None:
        try:
            self._starts.count(program)
        except OSError as error:
            if not self._uncounted:
                self._log.warning("starts-not-counted", reason=error.strerror)
            self._uncounted = True
        else:
            self._uncounted = False
