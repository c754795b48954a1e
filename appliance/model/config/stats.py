"""The section `stats`, as in `model.config.configuration`: where one sees what is going on, and who."""

from typing import Literal

from pydantic import Field

from appliance.model.config.section import Section
from appliance.model.config.values.addresses import endpoint
from appliance.model.config.values.field_types import (
    Address,
    Addresses,
    FilePath,
    HttpPath,
    HttpPaths,
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
    also_bind: Addresses = Field(default=(), examples=[["10.0.0.2:9000"]])
    """Further addresses to listen on, for the same clients."""
    uri: HttpPaths = Field(default=(), examples=[["/haproxy?stats"]])
    """Where the page is beside /haproxy_stats: what begins with one of these (HAProxy's stats uri)."""
    respond: HttpPath | None = Field(default=None, examples=["/healthz"])
    """Path that is answered with 200 without a password while workers accept (HAProxy's monitor-uri)."""
    needs: str | None = Field(default=None, examples=["masters"])
    """Pool without which `respond` answers 503: one server up is enough (HAProxy's monitor fail)."""
    auth: StatsAuthSection | None = None
    """Who may see it; everybody who can connect if nothing is said."""
    tls: StatsTlsSection | None = None
    """TLS instead of plain HTTP."""
    allow: Networks = Field(default=(), examples=[["127.0.0.0/8", "::1", "10.0.0.0/24"]])
    """Networks that may connect; none given is everybody. A reload holds for open connections, too."""
    deny: Networks = Field(default=(), examples=[["10.0.0.66"]])
    """Networks that may not connect, even where `allow` has them."""
    socket: SocketPath | None = Field(default=None, examples=["/var/lib/haproxy/run/haproxy.sock"])
    """Unix socket that takes HAProxy's commands, for its owner alone: show stat, set server, and others."""
    admin: Literal["on", "off"] = Field(default="off")
    """Whether servers can be drained and set ready, and virtual IPs be moved, over HTTP. On needs `auth`."""
