"""The part of a snapshot with the recipients of events."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.model.operator_events import EventKind, EventSeverity

_RANK: Final = {EventSeverity.INFO: 0, EventSeverity.WARNING: 1, EventSeverity.CRITICAL: 2}


class Form(StrEnum):
    """What a webhook receives."""

    JSON = "json"
    ALERTMANAGER = "alertmanager"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyTarget:
    """One recipient. Exactly one of `command`, `webhook`, `webhook_file` and `syslog` is set.

    `syslog` is udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or a path; `timeout` is seconds. `ca` is a
    file of authorities for TLS, None for those of the machine. `events` are the kinds to send, empty for all.
    """

    name: str
    severity: EventSeverity
    timeout: float
    form: Form = Form.JSON
    command: tuple[str, ...] = ()
    webhook: str | None = None
    webhook_file: str | None = None
    token_file: str | None = None
    syslog: str | None = None
    ca: str | None = None
    events: tuple[EventKind, ...] = ()

    def wants(self, kind: EventKind) -> bool:
        """Return whether this one receives such events."""
        return _RANK[kind.severity] >= _RANK[self.severity] and (not self.events or kind in self.events)
