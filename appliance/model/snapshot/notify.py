"""The part of a snapshot that says who is told what happens."""

from dataclasses import dataclass
from enum import StrEnum

from appliance.model.operator_events import Severity


class Form(StrEnum):
    """What a webhook gets."""

    JSON = "json"
    ALERTMANAGER = "alertmanager"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyTarget:
    """One who is told. Exactly one of `command`, `webhook`, `webhook_file` and `syslog` is there.

    `syslog` is udp://HOST:PORT, tcp://HOST:PORT or a path; `timeout` is seconds.
    """

    name: str
    severity: Severity
    timeout: float
    form: Form = Form.JSON
    command: tuple[str, ...] = ()
    webhook: str | None = None
    webhook_file: str | None = None
    token_file: str | None = None
    syslog: str | None = None
