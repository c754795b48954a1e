"""The operator's configuration, key by key.

The descriptions here are the documentation: the JSON Schema carries them, and a test holds the comments of
`config/appliance.example.yaml` to them. Field names are the keys. None is a key that is not given: what
holds then is filled in by `model.loading.defaults`. Durations are seconds here, text with a unit there.
"""

from typing import Literal

from pydantic import Field

from appliance.model.config.frontends import ProxyGroupSection
from appliance.model.config.keepalive import KeepAliveSection
from appliance.model.config.kubernetes import KubernetesSection
from appliance.model.config.linger import LingerSection
from appliance.model.config.notify import NotifyTargetSection
from appliance.model.config.pools import PoolSection
from appliance.model.config.section import Section
from appliance.model.config.stats import StatsSection
from appliance.model.config.values.field_types import (
    MOST_CONNECTIONS,
    DnsName,
    Duration,
    DurationOrOff,
    FilePath,
    GroupName,
    Name,
    SocketPaths,
    UserTimeoutOrOff,
    WatchdogTime,
    or_off,
    written,
)
from appliance.model.config.values.units import (
    duration,
    duration_or_off,
    user_timeout_or_off,
    watchdog,
)
from appliance.model.config.virtual_ips import VirtualIpSection


class ClusterSection(Section):
    """The cluster that is served."""

    name: DnsName | None = Field(default=None, examples=["ocp4"])
    """Name of the cluster; the router ids of its virtual IPs derive from it, as in OpenShift."""
    domain: DnsName | None = Field(default=None, examples=["example.com"])
    """Base domain of the cluster: api.NAME.DOMAIN is its API."""


class DefaultTimeoutsSection(Section):
    """Timeouts of every frontend and pool that does not say its own."""

    connect: Duration = written("10s", duration)
    """Time to connect to a server, for each try (HAProxy's timeout connect)."""
    queue: Duration = written("1m", duration)
    """Time a connection waits for a server (HAProxy's timeout queue)."""
    client: Duration = written("24h", duration)
    """Longest silence of a client (HAProxy's timeout client)."""
    server: Duration = written("24h", duration)
    """Longest silence of a server (HAProxy's timeout server)."""
    client_fin: Duration = written("1s", duration)
    """Longest silence of a client after one side has closed (HAProxy's timeout client-fin)."""
    server_fin: Duration = written("1s", duration)
    """Longest silence of a server after one side has closed (HAProxy's timeout server-fin)."""


class DefaultsSection(Section):
    """What holds for every frontend and pool that does not say its own."""

    max_connections: int = Field(default=40000, ge=1, le=MOST_CONNECTIONS)
    """Connections at a time of each frontend, over all its workers. 40000 as in OpenShift."""
    timeouts: DefaultTimeoutsSection = Field(default_factory=DefaultTimeoutsSection)
    """Timeouts, as OpenShift sets them."""
    retries: int = Field(default=3, ge=0, le=100)
    """Further tries to connect to a server."""
    tcp_user_timeout: UserTimeoutOrOff = written("off", user_timeout_or_off)
    """How long sent bytes may stay unacknowledged. Linux counts a peer that lives and does not read:
    one that is paused for longer (`oc logs | less`) is reset. `off`: keepalive finds the idle dead, and
    the kernel (tcp_retries2, a quarter of an hour) those that owe an acknowledgement."""
    keepalive: KeepAliveSection = Field(default_factory=KeepAliveSection, json_schema_extra=or_off)
    """TCP keepalive on both sides: on, a peer that is gone is found after 90s; or `off`."""
    drain: Duration = written("120s", duration)
    """Time an old generation has to finish. OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT (seconds) set outside wins."""


class SourceSection(Section):
    """Files of HAProxy and keepalived that are obeyed beside this one, read again at every reload.

    What they say must not be said here too; what they cannot say (log, stats, drain ...) is said here.
    """

    haproxy: FilePath | None = Field(default=None, examples=["/etc/haproxy/haproxy.cfg"])
    """HAProxy's file, or a directory of its files. APPLIANCE_HAPROXY or --haproxy set outside wins."""
    keepalived: FilePath | None = Field(default=None, examples=["/etc/keepalived/keepalived.conf"])
    """File of keepalived: its virtual IPs. APPLIANCE_KEEPALIVED or --keepalived set outside wins."""
    http: Literal["refuse", "skip"] = Field(default="refuse")
    """HAProxy's sections that read HTTP: `refuse` makes each an error, `skip` leaves them to HAProxy: the
    rest is obeyed, and `status` and `check` name the addresses that need HAProxy."""


class ReloadSection(Section):
    """The reload handler."""

    sockets: SocketPaths = Field(default=(), examples=[["/var/run/haproxy/haproxy-master.sock"]])
    """Further sockets for the lines `reload` and `stop`, beside reload.sock in the runtime directory."""
    max_draining: int = Field(default=10, ge=1, le=1000)
    """Old generations of a proxy that may drain at a time; of more, the oldest is ended."""
    sessions: Literal["move", "drain"] = Field(default="move")
    """What becomes of open connections when a reload brings new workers: `move` hands them to these, and none
    ends; with `drain` they stay, until they or the time to drain has ended."""
    watch: DurationOrOff = written("3s", duration_or_off)
    """Time that a changed file must rest to be obeyed though no reload was asked for, or `off`."""


class LogSection(Section):
    """What the programs log, on standard output or in a file."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info")
    """Least severity that is logged: debug, info, warning or error."""
    format: Literal["json", "console"] = Field(default="json")
    """json for machines, one object a line; console for people."""
    connections: bool = Field(default=False)
    """One line for each connection, when it ends."""
    file: FilePath | None = Field(default=None, examples=["/var/log/appliance/appliance.log"])
    """Where lines are appended, not standard output; the directory must be there. logrotate may rename it."""


class Config(Section):
    """Configuration of the load-balancer appliance."""

    cluster: ClusterSection = Field(default_factory=ClusterSection)
    """The cluster that is served."""
    api: ProxyGroupSection | None = None
    """Frontends of the program proxy-api."""
    ingress: ProxyGroupSection | None = None
    """Frontends of the program proxy-ingress: its own processes, so that neither can starve the other."""
    pools: dict[Name, PoolSection] = Field(default_factory=dict)
    """Servers that serve the same thing, by the name that frontends use."""
    defaults: DefaultsSection = Field(default_factory=DefaultsSection)
    """What holds for every frontend and pool that does not say its own."""
    kubernetes: KubernetesSection | None = None
    """The cluster's API, for pools whose servers are discovered."""
    virtual_ips: dict[Name, VirtualIpSection] = Field(default_factory=dict)
    """Virtual IPs by name: addresses that one appliance of several holds, by VRRP, as keepalived does."""
    linger: LingerSection | None = None
    """Planned moves of virtual IPs end no connection, where all nodes have this section and the same key."""
    source: SourceSection = Field(default_factory=SourceSection)
    """Files of HAProxy and keepalived that are obeyed beside this one."""
    reload: ReloadSection = Field(default_factory=ReloadSection)
    """The reload handler."""
    stats: StatsSection | None = None
    """The program stats: metrics, HAProxy's statistics, status as JSON. It runs where this section is."""
    notify: dict[Name, NotifyTargetSection] = Field(default_factory=dict)
    """Who is told what happens to the whole appliance, by name: commands, webhooks, syslog."""
    watchdog: WatchdogTime = written("10s", watchdog)
    """A program that shows no sign of life for so long is ended, and started again."""
    log: LogSection = Field(default_factory=LogSection)
    """What the programs log, on standard output or in a file."""
    group: GroupName | None = Field(default=None, examples=["monitoring"])
    """Group that may look: `status`, `sessions` and `vip status` without root, from the next start on."""
