"""The section `stats`, as in `model.config.configuration`: the page and the metrics, and their users."""

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
    """Access for one user, with a password."""

    user: StatsUser = Field(examples=["admin"])
    """Name of the user."""
    password_file: FilePath | None = Field(default=None, examples=["/etc/appliance/stats.pass"])
    """File that holds the password; the programs' user must be able to read it."""
    password: StatsPassword | None = Field(default=None, examples=["s3cret"])
    """The password itself, as in HAProxy's `stats auth`, instead of a file."""


class StatsTlsSection(Section):
    """TLS for the page and the metrics."""

    certificate: FilePath = Field(examples=["/etc/appliance/stats.crt"])
    """File with the certificate and its intermediate certificates, as PEM."""
    key: FilePath = Field(examples=["/etc/appliance/stats.key"])
    """File with its private key, as PEM."""


class StatsSection(Section):
    """The program stats: Prometheus' metrics, HAProxy's statistics, and the status as JSON."""

    bind: Address = written("localhost:29445", endpoint)
    """Address to listen on, as OpenShift's HAProxy does: /metrics, /haproxy_stats, /api/v1/status."""
    also_bind: Addresses = Field(default=(), examples=[["10.0.0.2:9000"]])
    """Further addresses to listen on, for the same clients."""
    uri: HttpPaths = Field(default=(), examples=[["/haproxy?stats"]])
    """Further URIs of the page besides /haproxy_stats, as prefixes (HAProxy's stats uri)."""
    respond: HttpPath | None = Field(default=None, examples=["/healthz"])
    """Path that is answered with 200, without a password, while workers accept (HAProxy's monitor-uri)."""
    needs: str | None = Field(default=None, examples=["masters"])
    """Pool that needs a server up, else `respond` answers 503 (HAProxy's monitor fail)."""
    auth: StatsAuthSection | None = None
    """User and password; without them, everybody who can connect has access."""
    tls: StatsTlsSection | None = None
    """TLS instead of plain HTTP."""
    allow: Networks = Field(default=(), examples=[["127.0.0.0/8", "::1", "10.0.0.0/24"]])
    """Networks that may connect, by default all. A reload applies to open connections, too."""
    deny: Networks = Field(default=(), examples=[["10.0.0.66"]])
    """Networks that may not connect, even if `allow` includes them."""
    socket: SocketPath | None = Field(default=None, examples=["/var/lib/haproxy/run/haproxy.sock"])
    """Unix socket for HAProxy's commands (show stat, set server and others), for its owner only."""
    admin: Literal["on", "off"] = Field(default="off")
    """Whether servers can be drained and set ready, and virtual IPs moved, over HTTP. `on` needs `auth`."""
