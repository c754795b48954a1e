"""The operator's configuration, key by key.

The descriptions here are the documentation: the JSON Schema carries them, and a test holds the comments of
`config/appliance.example.yaml` to them. Field names are the keys. None is a key that is not given: what
holds then is filled in by `model.snapshot.defaults`. Durations are seconds here, text with a unit there.
"""

from typing import Literal

from pydantic import ConfigDict, Field, model_validator

from appliance.model.config.addresses import endpoint
from appliance.model.config.field_types import (
    MOST_CONNECTIONS,
    MOST_PROBES,
    MOST_WEIGHT,
    Address,
    Addresses,
    Algorithm,
    DnsName,
    Duration,
    DurationOrOff,
    ExpectedStatuses,
    FilePath,
    GroupName,
    HashParts,
    HostHeader,
    HttpMethod,
    HttpPath,
    Init,
    KeepAliveTime,
    LifetimeOrOff,
    Name,
    Networks,
    Percentage,
    ProxyHeader,
    ServerAddress,
    ServerHost,
    SocketPaths,
    UserTimeoutOrOff,
    Verify,
    WatchdogTime,
    WhenDown,
    Workers,
    not_empty,
    or_false,
    or_off,
    written,
)
from appliance.model.config.http_values import statuses
from appliance.model.config.section import Section
from appliance.model.config.units import (
    duration,
    duration_or_off,
    keepalive_time,
    lifetime_or_off,
    percentage,
    user_timeout_or_off,
    watchdog,
)
from appliance.model.config.virtual_ips import VirtualIpSection
from appliance.model.snapshot.pools import Balance, CheckInit, OnDown, SendProxy


class ClusterSection(Section):
    """The cluster that is served."""

    name: DnsName | None = Field(default=None, examples=["ocp4"])
    """Name of the cluster; the router ids of its virtual IPs derive from it, as in OpenShift."""
    domain: DnsName | None = Field(default=None, examples=["example.com"])
    """Base domain of the cluster: api.NAME.DOMAIN is its API."""


class KeepAliveSection(Section):
    """TCP keepalive of idle connections, which finds peers that are gone; `off` is short for `count: 0`."""

    idle: KeepAliveTime = written("60s", keepalive_time)
    """Idle time before the first probe, 1s to 32767s (HAProxy's tcpka-idle)."""
    interval: KeepAliveTime = written("10s", keepalive_time)
    """Time between probes, 1s to 32767s (HAProxy's tcpka-intvl)."""
    count: int = Field(default=3, ge=0, le=MOST_PROBES)
    """Unanswered probes that end a connection (HAProxy's tcpka-cnt); 0 sends none."""

    @model_validator(mode="before")
    @classmethod
    def _off(cls, value: object) -> object:
        return {"count": 0} if value == "off" else value


class FrontendTimeoutsSection(Section):
    """Timeouts towards clients."""

    client: Duration | None = Field(default=None, examples=["24h"])
    """Longest silence of a client (HAProxy's timeout client)."""
    client_fin: Duration | None = Field(default=None, examples=["1s"])
    """Longest silence of a client after one side has closed (HAProxy's timeout client-fin)."""


class FrontendSection(Section):
    """Where clients come in. Either `pool` or `respond` says what they get."""

    # Required, but by a rule of `crossrefs`: a frontend with a bad bind is still judged for the rest.
    model_config = ConfigDict(json_schema_extra={"required": ["bind"]})

    bind: Addresses = Field(
        default=(), examples=[["[::]:9445", "192.0.2.10:6443"]], json_schema_extra=not_empty
    )
    """Addresses to listen on; `[::]` takes IPv4 too. A port below 1024 needs the privilege for it."""
    pool: str | None = Field(default=None, examples=["masters"])
    """Pool that serves the clients."""
    respond: HttpPath | None = Field(default=None, examples=["/haproxy_ready"])
    """Path that the workers answer themselves with 200 (HAProxy's monitor-uri); instead of a pool."""
    needs: str | None = Field(default=None, examples=["masters"])
    """Pool without which `respond` answers 503: one server up is enough (HAProxy's monitor fail)."""
    allow: Networks = Field(default=(), examples=[["10.0.0.0/24", "2001:db8::/64"]])
    """Networks that may connect; none given is everybody. Others are closed before anything is read."""
    deny: Networks = Field(default=(), examples=[["10.0.0.66"]])
    """Networks that may not connect, even where `allow` has them."""
    max_connections: int | None = Field(default=None, ge=1, le=MOST_CONNECTIONS, examples=[20000])
    """Connections at a time, over all workers (HAProxy's maxconn); more wait in the kernel's queue."""
    timeouts: FrontendTimeoutsSection = Field(default_factory=FrontendTimeoutsSection)
    """Timeouts towards clients, where they differ from `defaults`."""
    max_age: LifetimeOrOff = written("off", lifetime_or_off, example="12h")
    """Longest life of a connection, so that clients spread again over the servers: 1s or more, or `off`."""
    max_age_jitter: Percentage = written("10%", percentage)
    """How far a connection's life may differ from `max_age`, so that they do not all end at once."""
    keepalive: KeepAliveSection | None = Field(default=None, json_schema_extra=or_off)
    """TCP keepalive towards clients (HAProxy's clitcpka); `off`, or how."""
    tcp_user_timeout: UserTimeoutOrOff | None = Field(default=None, examples=["off"])
    """As in `defaults`, towards clients (HAProxy's tcp-ut on bind)."""


class ProxyGroupSection(Section):
    """The frontends of one proxy program, which has its own processes."""

    workers: Workers = Field(default=None, json_schema_extra={"default": "auto"})
    """Worker processes: a number, or `auto` for one on each processor that the program may use."""
    frontends: dict[Name, FrontendSection] = Field(default_factory=dict)
    """The frontends by name. A group without any is not started."""


class CheckSection(Section):
    """A health check. In a server it is laid over the pool's: only what differs is said there."""

    type: Literal["none", "tcp", "tls", "http", "https"] = Field(default="tcp", examples=["https"])
    """What is checked: tcp connects, tls shakes hands, http and https ask; none checks nothing: always up."""
    method: HttpMethod = Field(default="GET")
    """Method of the request (http and https)."""
    path: HttpPath = Field(default="/", examples=["/readyz"])
    """Path of the request (http and https)."""
    host: HostHeader | None = Field(default=None, examples=["api.ocp4.example.com"])
    """Host header of the request (http and https); the checked address by default."""
    expect: ExpectedStatuses = written("200-399", statuses)
    """Statuses of a healthy server (http and https): one, a range or a list; HAProxy's are 200-399."""
    sni: DnsName | None = Field(default=None, examples=["api.ocp4.example.com"])
    """Server name in the TLS handshake (tls and https; HAProxy's check-sni); none is sent by default."""
    verify: Verify = Field(default=None, json_schema_extra={"default": "none"})
    """File of CA certificates (tls and https), or none: any certificate will do, as in OpenShift."""
    address: ServerHost | None = Field(default=None, examples=["10.0.0.34"])
    """Where the check goes, if not to the server's own address (HAProxy's addr)."""
    port: int | None = Field(default=None, ge=1, le=65535, examples=[1936])
    """Port the check goes to, if not the server's own (HAProxy's port)."""
    interval: Duration = written("5s", duration)
    """Time between checks (HAProxy's inter). 5s as in OpenShift; HAProxy's own default is 2s."""
    fast_interval: Duration | None = Field(default=None, examples=["2s"])
    """Time between checks while a server is neither up nor down for good (fastinter); else `interval`."""
    down_interval: Duration | None = Field(default=None, examples=["5s"])
    """Time between checks of a server that is down (HAProxy's downinter); else `interval`."""
    timeout: Duration = written("10s", duration)
    """Time a check may take; connecting only min(timeouts.connect, interval) of it, as in HAProxy."""
    rise: int = Field(default=2, ge=1, le=1000, examples=[3])
    """Good checks in a row that bring a server up. 2 as in HAProxy."""
    fall: int = Field(default=3, ge=1, le=1000, examples=[2])
    """Bad checks in a row that take a server down. 3 as in HAProxy."""
    error_limit: int = Field(default=1, ge=0, le=1000, examples=[1])
    """Failed connects of clients in a row that have a server checked at once (error-limit); 0 is never."""
    init: Init = Field(default=CheckInit.CHECK)
    """State until the first check ends, which alone decides then: check (waits), up or down (init-state)."""
    send_proxy: ProxyHeader | None = Field(default=None, examples=["none"])
    """PROXY header: none, v1, v2. Else the pool's, but none with an own address or port, as in HAProxy."""

    @model_validator(mode="before")
    @classmethod
    def _false(cls, value: object) -> object:
        return {"type": "none"} if value is False else value


class ServerSection(Section):
    """One member of a pool."""

    address: ServerAddress = Field(examples=["10.0.0.34:6443"])
    """Address or DNS name, and port."""
    weight: int = Field(default=1, ge=0, le=MOST_WEIGHT)
    """Share of new connections, relative to the others, 0 to 256; 0 takes no new ones."""
    backup: bool = Field(default=False)
    """Used only while no other server of the pool is up."""
    max_connections: int = Field(default=0, ge=0, le=MOST_CONNECTIONS)
    """Connections at a time, over all workers (HAProxy's maxconn); more wait in the queue. 0 is no limit."""
    check: CheckSection | None = Field(default=None, json_schema_extra=or_false)
    """What differs from the pool's check; false for a server that is always up."""


class PoolTimeoutsSection(Section):
    """Timeouts towards servers."""

    connect: Duration | None = Field(default=None, examples=["10s"])
    """Time to connect to a server, for each try (HAProxy's timeout connect)."""
    queue: Duration | None = Field(default=None, examples=["1m"])
    """Time a connection waits for a server (HAProxy's timeout queue)."""
    server: Duration | None = Field(default=None, examples=["24h"])
    """Longest silence of a server (HAProxy's timeout server)."""
    server_fin: Duration | None = Field(default=None, examples=["1s"])
    """Longest silence of a server after one side has closed (HAProxy's timeout server-fin)."""


class PoolSection(Section):
    """Servers that serve the same thing."""

    balance: Algorithm = Field(default=Balance.ROUNDROBIN)
    """How a server is chosen: roundrobin, leastconn, source, hash, or random (the less busy of two)."""
    hash_on: HashParts = Field(default=("source",), min_length=1, examples=[["source", "destination-port"]])
    """What `balance: hash` hashes: source, source-port, destination, destination-port."""
    check: CheckSection | None = Field(default=None, json_schema_extra=or_false)
    """How servers are checked: by a TCP connection if nothing is said; false for never."""
    slow_start: DurationOrOff = written("off", duration_or_off, example="60s")
    """Time over which a server back from down or maint gets its share (HAProxy's slowstart); default off."""
    on_down: WhenDown = Field(default=OnDown.AUTO)
    """Sessions of a server that is down: keep, close-sessions, or auto (keep if it answers, but badly)."""
    panic: Percentage = written("0%", percentage)
    """With fewer servers up than this, all are used: the checks may be at fault. 0% is never."""
    send_proxy: ProxyHeader = Field(default=SendProxy.NONE)
    """PROXY protocol header to the servers, which must expect it: none, v1 or v2."""
    retries: int | None = Field(default=None, ge=0, le=100, examples=[3])
    """Further tries to connect, each to another server if there is one (HAProxy's retries, redispatch)."""
    max_queue: int = Field(default=0, ge=0, le=MOST_CONNECTIONS)
    """Connections that may wait for a server (HAProxy's maxqueue); more are refused. 0 is no bound."""
    timeouts: PoolTimeoutsSection = Field(default_factory=PoolTimeoutsSection)
    """Timeouts towards servers, where they differ from `defaults`."""
    keepalive: KeepAliveSection | None = Field(default=None, json_schema_extra=or_off)
    """TCP keepalive towards servers (HAProxy's srvtcpka); `off`, or how."""
    tcp_user_timeout: UserTimeoutOrOff | None = Field(default=None, examples=["off"])
    """As in `defaults`, towards servers (HAProxy's tcp-ut)."""
    servers: dict[Name, ServerSection] = Field(default_factory=dict)
    """The servers by name."""


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


class ReloadSection(Section):
    """The reload handler."""

    sockets: SocketPaths = Field(default=(), examples=[["/var/run/haproxy/haproxy-master.sock"]])
    """Further sockets that take the line `reload`, beside reload.sock in the runtime directory."""
    max_draining: int = Field(default=10, ge=1, le=1000)
    """Old generations of a proxy that may drain at a time; of more, the oldest is ended."""
    watch: DurationOrOff = written("3s", duration_or_off)
    """Time that a changed file must rest to be obeyed though no reload was asked for, or `off`."""


class StatsAuthSection(Section):
    """Who may read the status page."""

    user: str = Field(min_length=1, examples=["admin"])
    """Name of the one user."""
    password_file: FilePath = Field(examples=["/etc/appliance/stats.pass"])
    """File that holds the password."""


class StatsSection(Section):
    """The status page (of a later version)."""

    # Nothing reads it yet. It is accepted, with a warning, so that files written for the next version load.

    bind: Address = written("localhost:29445", endpoint)
    """Address to listen on."""
    auth: StatsAuthSection | None = None
    """Who may read it; everybody if nothing is said."""


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
    virtual_ips: dict[Name, VirtualIpSection] = Field(default_factory=dict)
    """Virtual IPs by name: addresses that one appliance of several holds, by VRRP, as keepalived does."""
    reload: ReloadSection = Field(default_factory=ReloadSection)
    """The reload handler."""
    stats: StatsSection | None = None
    """The status page. This version does not serve it yet, and says so."""
    watchdog: WatchdogTime = written("10s", watchdog)
    """A program that shows no sign of life for so long is ended, and started again."""
    log: LogSection = Field(default_factory=LogSection)
    """What the programs log, on standard output or in a file."""
    group: GroupName | None = Field(default=None, examples=["monitoring"])
    """Group that may look: `status`, `sessions` and `vip status` without root, from the next start on."""
