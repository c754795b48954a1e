"""The log of `health`: each change of a server once, and its own problems when they begin and end."""

import time
from typing import Final

from structlog.typing import FilteringBoundLogger

from appliance.core.checks.checked_servers import CheckedServer, CheckedServers, Key
from appliance.core.checks.server_health import HealthEvent
from appliance.core.events.pool_counts import PoolCounts
from appliance.model.operator_events import EventKind, OperatorEvent, Publish, publish_nowhere
from appliance.model.program_names import HEALTH
from appliance.model.server_states import AdminState, ServerState
from appliance.model.snapshot.snapshot import Log
from appliance.net.logging import log as logs

_STEPS: Final = {HealthEvent.UP: 1, HealthEvent.DOWN: -1}
_BY_CHECKS: Final = frozenset(
    {HealthEvent.UP, HealthEvent.DOWN, HealthEvent.UNREACHABLE, HealthEvent.ANSWERS}
)
_OPERATOR: Final = "operator"


class HealthEvents:
    """Publishes events of servers and pools."""

    def __init__(self, publish: Publish) -> None:
        self._publish = publish
        self._states: dict[Key, ServerState] = {}
        self._counts = PoolCounts()

    def happened(self, checked: CheckedServer, event: HealthEvent, among: CheckedServers) -> None:
        """Publish an event of a server, then its effect on the pool."""
        health = checked.health
        up, count = among.up(checked.pool)
        by_checks = event in _BY_CHECKS
        last = health.last
        said = " ".join(filter(None, (str(last.status or ""), last.detail))) if by_checks else ""
        now, state = time.time(), health.state
        self._publish(
            OperatorEvent(
                when=now,
                kind=EventKind(event.value),
                subject="/".join(checked.key),
                before=self._states.get(checked.key, ""),
                after=state,
                cause=last.result.value if by_checks else _OPERATOR,
                detail=f"{said}; {up} of {count} up".removeprefix("; "),
            )
        )
        self._states[checked.key] = state
        step, unchecked = _STEPS.get(event, 0), among.unchecked(checked.pool)
        meaning = self._counts.changed(checked.pool, up=up, servers=count, step=step, unchecked=unchecked)
        if meaning is not None:
            cause = f"{event.value} {checked.server.name}"
            words = f"{up} of {count} up"
            self._publish(
                OperatorEvent(when=now, kind=meaning, subject=checked.pool, cause=cause, detail=words)
            )


WARNINGS: Final = frozenset({HealthEvent.DOWN, HealthEvent.UNREACHABLE})
"""The events that need an operator's attention."""


class HealthReports:
    """The log, as configured by the accepted snapshot, and the events of servers and pools.

    `not_kept` are the files that cannot be written now, with the reasons: `status` shows them, too.
    """

    def __init__(self, log: FilteringBoundLogger, publish: Publish = publish_nowhere) -> None:
        self.log = log
        self._events = HealthEvents(publish)
        self.not_kept: dict[str, str] = {}
        self._verbose = False
        self._impossible: dict[Key, str] = {}

    def obey(self, settings: Log) -> None:
        """Use the log settings of a configuration from now on."""
        self.log = logs.obey(HEALTH, settings)
        self._verbose = settings.level == "debug"

    def event(self, checked: CheckedServer, event: HealthEvent, *, among: CheckedServers) -> None:
        """Log an event of a server, and how many servers of its pool are up now."""
        write = self.log.warning if event in WARNINGS else self.log.info
        write(event.value, **_facts(checked, among))
        self._events.happened(checked, event, among)

    def check_ended(
        self, checked: CheckedServer, event: HealthEvent | None, *, among: CheckedServers
    ) -> None:
        """Log a check: its change, or at level debug that there was none."""
        self._impossible.pop(checked.key, None)
        if event is not None:
            self.event(checked, event, among=among)
        elif self._verbose:
            self.log.debug("check", **_facts(checked, among))

    def check_impossible(self, checked: CheckedServer, reason: str) -> None:
        """Log why this machine cannot make a check; each reason once for all servers."""
        if reason not in self._impossible.values():
            self.log.error("check-impossible", pool=checked.pool, server=checked.server.name, reason=reason)
        self._impossible[checked.key] = reason

    def check_crashed(self, checked: CheckedServer) -> None:
        """Log a bug in a check, with its traceback."""
        self.log.exception("check-crashed", pool=checked.pool, server=checked.server.name)

    def checks_end(self, key: Key) -> None:
        """Forget why checks of a server were impossible, when its greenlet ends."""
        self._impossible.pop(key, None)

    def operator_state_kept(self, checked: CheckedServer) -> None:
        """Log an operator's state or weight from before the restart or reload: it explains an idle server."""
        if checked.weight is not None:
            self.log.warning(
                "operator-weight-kept",
                pool=checked.pool,
                server=checked.server.name,
                weight=str(checked.weight),
            )
        if checked.health.admin is not AdminState.READY:
            state = checked.health.admin.name.lower()
            self.log.warning(
                "operator-state-kept", pool=checked.pool, server=checked.server.name, state=state
            )

    def weight_given(self, checked: CheckedServer) -> None:
        """Log a weight given by an operator, or that the configured one applies again."""
        self.log.info(
            "server-weight",
            pool=checked.pool,
            server=checked.server.name,
            weight=str(checked.weight or checked.server.weight),
            configured=checked.server.weight,
        )

    def host_changed(self, checked: CheckedServer, *, before: str) -> None:
        """Log a new address of a server's name, "" for none."""
        self.log.info(
            "server-address",
            pool=checked.pool,
            server=checked.server.name,
            name=checked.server.host,
            address=checked.host,
            before=before,
        )

    def board_trouble(self, board: str, reason: str) -> None:
        """Log that the board cannot be written, or with reason "" that it can again."""
        if reason:
            self.not_kept[board] = reason
            self.log.error("board-not-written", board=board, reason=reason)
        else:
            self.not_kept.pop(board, None)
            self.log.info("board-written", board=board)

    def ca_file_trouble(self, file: str, reason: str) -> None:
        """Log that a CA file's last version stays in use, or with reason "" that it can be read again."""
        if reason:
            self.log.error("ca-file-kept", file=file, reason=reason)
        else:
            self.log.info("ca-file-readable", file=file)

    def connect_failures_trouble(self, path: str, reason: str) -> None:
        """Log that the socket for workers cannot be created, or with reason "" that it exists."""
        if reason:
            self.log.warning("doubts-not-heard", path=path, reason=reason)
        else:
            self.log.debug("doubts-heard", path=path)

    def command_failed(self, command: str, error: Exception) -> None:
        """Log a bug in a command, with its traceback."""
        self.log.error("command-failed", command=command, exc_info=error)


def _facts(checked: CheckedServer, among: CheckedServers) -> dict[str, object]:
    health = checked.health
    up, count = among.up(checked.pool)
    return {
        "pool": checked.pool,
        "server": checked.server.name,
        "result": health.last.result.value,
        "status": health.last.status,
        "duration": round(health.last.duration, 6),
        "detail": health.last.detail,
        "reused": health.last.reused,
        "streak": health.streak,
        "up": up,
        "servers": count,
    }
