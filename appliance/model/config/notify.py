"""The section `notify`, as in `model.config.configuration`: who is told what happens to the appliance."""

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import (
    Command,
    Duration,
    EventKinds,
    FilePath,
    SyslogAddress,
    WebhookForm,
    WebhookUrl,
    WorstFirst,
    written,
)
from appliance.model.config.values.units import duration
from appliance.model.operator_events import EventSeverity
from appliance.model.snapshot.notify import Form


class NotifyTargetSection(Section):
    """Somebody who is told: exactly one of `command`, `webhook`, `webhook_file` and `syslog`."""

    command: Command | None = Field(default=None, examples=["/usr/local/bin/page"])
    """Run for each event with the words KIND SEVERITY SUBJECT TEXT behind its own; one at a time."""
    webhook: WebhookUrl | None = Field(default=None, examples=["https://alerts.example.com/api/v2/alerts"])
    """URL that events are posted to as JSON; an http or https URL without a user or password."""
    webhook_file: FilePath | None = Field(default=None, examples=["/etc/appliance/webhook.url"])
    """File that holds the URL, where it is a secret itself."""
    token_file: FilePath | None = Field(default=None, examples=["/etc/appliance/webhook.token"])
    """File that holds a token for the webhook, sent as `Authorization: Bearer`."""
    form: WebhookForm = Field(default=Form.JSON)
    """What is posted: json, or alertmanager for the alerts of Alertmanager's API, version 2."""
    syslog: SyslogAddress | None = Field(default=None, examples=["udp://10.0.0.9:514"])
    """Where RFC 5424 messages go: udp://HOST:PORT, tcp://..., tls://..., or a socket: /dev/log."""
    ca: FilePath | None = Field(default=None, examples=["/etc/appliance/log-server-ca.pem"])
    """File of authorities that judge a tls:// or https:// server; by default those of the machine."""
    severity: WorstFirst = Field(default=EventSeverity.INFO)
    """Least severity that is told: info, warning or critical."""
    events: EventKinds = Field(default=(), examples=[["vip-active", "split-brain"]])
    """Events that are told, of those that are severe enough; none given is all of them."""
    timeout: Duration = written("10s", duration)
    """Time that one message may take; it is tried again later, but a command is killed."""
