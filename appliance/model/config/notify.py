"""The section `notify`, as in `model.config.configuration`: notifications about the appliance."""

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
    """A target of notifications: exactly one of `command`, `webhook`, `webhook_file` and `syslog`."""

    command: Command | None = Field(default=None, examples=["/usr/local/bin/page"])
    """Run for each event with the arguments KIND SEVERITY SUBJECT TEXT appended; one at a time."""
    webhook: WebhookUrl | None = Field(default=None, examples=["https://alerts.example.com/api/v2/alerts"])
    """URL that events are posted to as JSON; an http or https URL without a user or password."""
    webhook_file: FilePath | None = Field(default=None, examples=["/etc/appliance/webhook.url"])
    """File that holds the URL, if the URL is a secret."""
    token_file: FilePath | None = Field(default=None, examples=["/etc/appliance/webhook.token"])
    """File that holds a token for the webhook, sent as `Authorization: Bearer`."""
    form: WebhookForm = Field(default=Form.JSON)
    """Format of the posted data: json, or alertmanager for alerts of Alertmanager's API, version 2."""
    syslog: SyslogAddress | None = Field(default=None, examples=["udp://10.0.0.9:514"])
    """Destination of RFC 5424 messages: udp://HOST:PORT, tcp://..., tls://..., or a socket: /dev/log."""
    ca: FilePath | None = Field(default=None, examples=["/etc/appliance/log-server-ca.pem"])
    """File of CA certificates for a tls:// or https:// server; by default the machine's."""
    severity: WorstFirst = Field(default=EventSeverity.INFO)
    """Lowest severity that is sent: info, warning or critical."""
    events: EventKinds = Field(default=(), examples=[["vip-active", "split-brain"]])
    """Events that are sent, of those that are severe enough; by default all."""
    timeout: Duration = written("10s", duration)
    """Timeout of one message; it is retried later, but a command is killed."""
