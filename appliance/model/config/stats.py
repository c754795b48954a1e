"""The section `stats`, as in `model.config.configuration`: where one sees what is going on, and who."""

from typing import Literal

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.addresses import endpoint
from appliance.model.config.values.field_types import (
    Address,
    FilePath,
    Networks,
    SocketPath,
    StatsPassword,
    StatsUser,
    written,
)


class StatsAuthSection(Section):
    """Who may see it: one user, with a password."""

    user: StatsUser = Field(examples=["admin"])
    """Name of the one user."""
    password_file: FilePath | None = Field(default=None, examples=["/etc/appliance/stats.pass"])
    """File that holds the password; the user of the programs must be able to read it."""
    password: StatsPassword | None = Field(default=None, examples=["s3cret"])
    """The password itself, as in HAProxy's `stats auth`, where no file is given."""


class StatsTlsSection(Section):
    """TLS for the page and the metrics."""

    certificate: FilePath = Field(examples=["/etc/appliance/stats.crt"])
    """File with the certificate, and those that lead to its authority, as PEM."""
    key: FilePath = Field(examples=["/etc/appliance/stats.key"])
    """File with its private key, as PEM."""


class StatsSection(Section):
    """The program stats: Prometheus' metrics, HAProxy's statistics, and the status as JSON."""

    bind: Address = written("localhost:29445", endpoint)
    """Address to listen on, as OpenShift's HAProxy does: /metrics, /haproxy_stats, /api/v1/status."""
    auth: StatsAuthSection | None = None
    """Who may see it; everybody who can connect if nothing is said."""
    tls: StatsTlsSection | None = None
    """TLS instead of plain HTTP."""
    allow: Networks = Field(default=(), examples=[["127.0.0.0/8", "::1", "10.0.0.0/24"]])
    """Networks that may connect; none given is everybody. A reload holds for open connections, too."""
    socket: SocketPath | None = Field(default=None, examples=["/var/lib/haproxy/run/haproxy.sock"])
    """Unix socket that takes HAProxy's commands, for its owner alone: show stat, set server, and others."""
    admin: Literal["on", "off"] = Field(default="off")
    """Whether servers can be drained and set ready, and virtual IPs be moved, over HTTP. On needs `auth`."""
