"""State changes of our programs, as supervisord notifies us: logged and reported, and each start counted."""

from structlog.typing import FilteringBoundLogger
from supervisor import events

from appliance.model.operator_events import Tell
from appliance.model.paths import Paths
from appliance.net.files.kept_counts import KeptCounts
from appliance.supervisor.program_events import ProgramEvents
from appliance.supervisor.programs import OURS
from appliance.supervisor.succession.standing_by import StandingBy
from appliance.supervisor.supervisord import Options
from appliance.supervisor.watchdog import HeartbeatWatch


class ProgramChanges:
    """The changes of one supervisord's programs; while it stands by, the other supervisord reports them."""

    def __init__(
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        options: Options,
        tell: Tell,
        standing_by: StandingBy,
    ) -> None:
        self._log, self._options, self._standing_by = log, options, standing_by
        self._events = ProgramEvents(log, tell)
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
