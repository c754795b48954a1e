"""The part of a snapshot that says who is told what happens."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from appliance.model.operator_events import EventKind, EventSeverity

_RANK: Final = {EventSeverity.INFO: 0, EventSeverity.WARNING: 1, EventSeverity.CRITICAL: 2}


class Form(StrEnum):
    """What a webhook gets."""

    JSON = "json"
    ALERTMANAGER = "alertmanager"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyTarget:
    """One who is told. Exactly one of `command`, `webhook`, `webhook_file` and `syslog` is there.

    `syslog` is udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or a path; `timeout` is seconds. `ca` is a
    file of authorities for TLS, None for those of the machine. `events` are the kinds that are told, none is
    all.
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
        """Say whether this one is told of such events."""
        return _RANK[kind.severity] >= _RANK[self.severity] and (not self.events or kind in self.events)
