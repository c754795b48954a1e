"""The section `pools`, as in `model.config.configuration`: servers, and how they are checked."""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import ConfigDict, Field, model_validator

from appliance.model.config.frontends import KeepAliveSection
from appliance.model.config.section import Section
from appliance.model.config.values.field_types import (
    MOST_CONNECTIONS,
    Algorithm,
    BodyDigest,
    BodyText,
    CheckSteps,
    Command,
    ConnectFrom,
    DiscoveredPort,
    DnsName,
    Duration,
    DurationOrOff,
    ExpectedStatuses,
    HashParts,
    HostHeader,
    HttpMethod,
    HttpPath,
    Init,
    LabelSelector,
    Name,
    Percentage,
    PortRange,
    ProxyHeader,
    ServerAddressToCome,
    ServerHost,
    UserTimeoutOrOff,
    Verify,
    WhenDown,
    WhenUp,
    named,
    or_false,
    or_masters,
    or_off,
    written,
)
from appliance.model.config.values.http import statuses
from appliance.model.config.values.units import (
    duration,
    duration_or_off,
    percentage,
)
from appliance.model.server_weights import MOST_WEIGHT
from appliance.model.snapshot.pools import Balance, CheckInit, OnDown, OnUp, SendProxy, SourceAddress

MOST_FURTHER_CHECKS: Final = 16


class FurtherCheckSection(Section):
    """A further check of the same server, over its own connection.

    It has the first check's `type`, `verify`, `address` and `port`, unless it sets its own; what it requests,
    sends and expects is its own only.
    """

    type: Literal["tcp", "tls", "http", "https"] | None = Field(default=None, examples=["https"])
    """What is checked, if not what the first check does."""
    method: HttpMethod = Field(default="GET")
    """Method of the request (http and https)."""
    path: HttpPath = Field(default="/", examples=["/login"])
    """Path of the request (http and https)."""
    host: HostHeader | None = Field(default=None, examples=["api.ocp4.example.com"])
    """Host header of the request (http and https); by default the checked address."""
    expect: ExpectedStatuses = written("200-399", statuses)
    """Statuses of a healthy server (http and https)."""
    expect_body: BodyText | None = Field(default=None, examples=["ok"])
    """Text that the body must contain, as in `check`."""
    expect_digest: BodyDigest | None = Field(default=None, examples=["444bcb3a3fcf8389296c49467f27e1d6"])
    """MD5 digest of the body, as in `check`."""
    steps: CheckSteps | None = Field(default=None, examples=[[{"send": "PING\r\n", "expect": "+PONG"}]])
    """Data to send and expect (tcp and tls), as in `check`."""
    sni: DnsName | None = Field(default=None, examples=["api.ocp4.example.com"])
    """Server name in the TLS handshake (tls and https)."""
    verify: Verify = Field(default=None, json_schema_extra={"default": "none"})
    """File of CA certificates (tls and https), or none to accept any certificate."""
    address: ServerHost | None = Field(default=None, examples=["10.0.0.34"])
    """Address to check."""
    port: int | None = Field(default=None, ge=1, le=65535, examples=[80])
    """Port to check."""
    send_proxy: ProxyHeader | None = Field(default=None, examples=["v2"])
    """PROXY header: none, v1, v2. Default: the first check's, or none with an own `address` or `port`."""


class CheckSection(Section):
    """A health check. A server's check overrides single keys of the pool's."""

    type: Literal["none", "tcp", "tls", "http", "https", "command"] = Field(default="tcp", examples=["https"])
    """tcp checks a connect, tls a handshake, http and https a request, command its exit; none: always up."""
    method: HttpMethod = Field(default="GET")
    """Method of the request (http and https)."""
    path: HttpPath = Field(default="/", examples=["/readyz"])
    """Path of the request (http and https)."""
    host: HostHeader | None = Field(default=None, examples=["api.ocp4.example.com"])
    """Host header of the request (http and https); by default the checked address."""
    expect: ExpectedStatuses = written("200-399", statuses)
    """Statuses of a healthy server (http and https): one, a range or a list; HAProxy's are 200-399."""
    expect_body: BodyText | None = Field(default=None, examples=["ok"])
    """Text that the body's first 16384 bytes must contain (http-check expect string); by default unread."""
    expect_digest: BodyDigest | None = Field(default=None, examples=["444bcb3a3fcf8389296c49467f27e1d6"])
    """MD5 digest of the body of at most 98304 bytes (http and https; keepalived's digest, by genhash)."""
    steps: CheckSteps | None = Field(default=None, examples=[[{"send": "PING\r\n", "expect": "+PONG"}]])
    """Data to send and expect, step by step (tcp and tls): `- {send: ..., expect: ...}` (tcp-check)."""
    command: Command | None = Field(default=None, examples=[["/usr/local/bin/clustercheck"]])
    """Command that must exit with 0 (command); the server's address and port follow as two words."""
    sni: DnsName | None = Field(default=None, examples=["api.ocp4.example.com"])
    """Server name in the TLS handshake (tls and https; HAProxy's check-sni); by default none is sent."""
    verify: Verify = Field(default=None, json_schema_extra={"default": "none"})
    """File of CA certificates (tls and https), or none to accept any certificate, as in OpenShift."""
    address: ServerHost | None = Field(default=None, examples=["10.0.0.34"])
    """Address to check, if not the server's own (HAProxy's addr)."""
    port: int | None = Field(default=None, ge=1, le=65535, examples=[1936])
    """Port to check, if not the server's own (HAProxy's port)."""
    interval: Duration = written("5s", duration)
    """Time between checks (HAProxy's inter). 5s as in OpenShift; HAProxy's own default is 2s."""
    fast_interval: Duration | None = Field(default=None, examples=["2s"])
    """Time between checks while a server's state is in transition (fastinter); by default `interval`."""
    down_interval: Duration | None = Field(default=None, examples=["5s"])
    """Time between checks of a server that is down (HAProxy's downinter); by default `interval`."""
    timeout: Duration = written("10s", duration)
    """Time that a check may take; its connect only min(timeouts.connect, interval), as in HAProxy."""
    rise: int = Field(default=2, ge=1, le=1000, examples=[3])
    """Good checks in a row that bring a server up. 2 as in HAProxy."""
    fall: int = Field(default=3, ge=1, le=1000, examples=[2])
    """Bad checks in a row that take a server down. 3 as in HAProxy."""
    error_limit: int = Field(default=1, ge=0, le=1000, examples=[1])
    """Failed client connects in a row after which a server is checked at once (error-limit); 0: never."""
    init: Init = Field(default=CheckInit.CHECK)
    """State until the first check, which alone decides: check (wait for it), up or down (init-state)."""
    reuse: bool = Field(default=False)
    """Reuse the connection for up to 10 checks or 30s (http and https), which saves handshakes."""
    send_proxy: ProxyHeader | None = Field(default=None, examples=["none"])
    """PROXY header: none, v1, v2. Default: the pool's, or none with `address` or `port`, as in HAProxy."""
    also: dict[Name, FurtherCheckSection] = Field(default_factory=dict, max_length=MOST_FURTHER_CHECKS)
    """Further checks, each time in this order: all must pass (several `url`, several `tcp-check connect`)."""

    @model_validator(mode="before")
    @classmethod
    def _false(cls, value: object) -> object:
        return {"type": "none"} if value is False else value


class ServerSection(Section):
    """One member of a pool."""

    address: ServerAddressToCome = Field(examples=["10.0.0.34:6443"])
    """Address or DNS name, and port (only a port: skipped). Servers of one name have different addresses."""
    weight: int = Field(default=1, ge=0, le=MOST_WEIGHT)
    """Share of new connections, relative to the others, 0 to 256; 0 gets no new ones."""
    backup: bool = Field(default=False)
    """Used only while no other server is up; of several, the first that is up, or all with `all_backups`."""
    max_connections: int = Field(default=0, ge=0, le=MOST_CONNECTIONS)
    """Concurrent connections, over all workers (HAProxy's maxconn); more wait in the queue. 0: no limit."""
    check: CheckSection | None = Field(default=None, json_schema_extra=or_false)
    """Differences from the pool's check; false for a server that is always up."""


class DiscoverSection(Section):
    """Servers that the program `discover` finds in the cluster; `masters` is short for `nodes: masters`.

    Exactly one of `nodes` and `routers` is required. A server has the name of its Node.
    """

    nodes: LabelSelector | None = Field(default=None, examples=["node-role.kubernetes.io/infra="])
    """Nodes with these labels, as for `kubectl get nodes -l`; `masters` is short for OpenShift's masters."""
    routers: DnsName | None = Field(default=None, examples=["default"])
    """Nodes on which routers of this OpenShift IngressController run and are ready."""
    port: DiscoveredPort | None = Field(default=None, examples=[30443])
    """Port of the servers: 6443 for masters; http or https (default) for the IngressController's port."""

    @model_validator(mode="before")
    @classmethod
    def _masters(cls, value: object) -> object:
        return {"nodes": value} if value == "masters" else value


class ServersSection(Section):
    """The servers of a pool by name, and discovered servers."""

    model_config = ConfigDict(extra="allow", json_schema_extra=named)
    __pydantic_extra__: dict[Name, ServerSection]

    discover: DiscoverSection | None = Field(default=None, examples=["masters"], json_schema_extra=or_masters)
    """Servers to discover and keep up to date (section kubernetes); no server can have this name."""

    @property
    def by_name(self) -> Mapping[str, ServerSection]:
        """The servers that the file lists."""
        return self.__pydantic_extra__


class PoolTimeoutsSection(Section):
    """Timeouts towards servers."""

    connect: Duration | None = Field(default=None, examples=["10s"])
    """Time to connect to a server, per attempt (HAProxy's timeout connect)."""
    queue: Duration | None = Field(default=None, examples=["1m"])
    """Time a connection waits for a server (HAProxy's timeout queue)."""
    server: Duration | None = Field(default=None, examples=["24h"])
    """Inactivity timeout of a server (HAProxy's timeout server)."""
    server_fin: Duration | None = Field(default=None, examples=["1s"])
    """Inactivity timeout of a server after one side has closed (HAProxy's timeout server-fin)."""


class PoolSection(Section):
    """Servers that serve the same thing."""

    balance: Algorithm = Field(default=Balance.ROUNDROBIN)
    """How a server is chosen: roundrobin, leastconn, source, hash, first, or random (less busy of two)."""
    hash_on: HashParts = Field(default=("source",), min_length=1, examples=[["source", "destination-port"]])
    """Parts that `balance: hash` hashes: source, source-port, destination, destination-port."""
    check: CheckSection | None = Field(default=None, json_schema_extra=or_false)
    """How servers are checked, by default with a TCP connect; false: never."""
    slow_start: DurationOrOff = written("off", duration_or_off, example="60s")
    """Time for a server to regain its share after down or maint (HAProxy's slowstart); default off."""
    on_down: WhenDown = Field(default=OnDown.AUTO)
    """Sessions of a server that is down: keep, close-sessions, or auto (keep if it answers, but badly)."""
    on_up: WhenUp = Field(default=OnUp.KEEP)
    """Sessions of backups when another server comes up: keep, or close-backup-sessions."""
    all_backups: bool = Field(default=False)
    """Use all backups that are up (option allbackups), not only the first in the file's order."""
    panic: Percentage = written("0%", percentage)
    """If a smaller share of the servers is up, all are used: the checks may be wrong. 0%: never."""
    send_proxy: ProxyHeader = Field(default=SendProxy.NONE)
    """PROXY protocol header to the servers, which must expect it: none, v1 or v2."""
    source: ConnectFrom = Field(default=SourceAddress.NODE)
    """Address that servers see: node, or virtual-ip if the client came by one of `virtual_ips`."""
    source_ports: PortRange | None = Field(default=None, examples=["20000-39999"])
    """Ports of connections from virtual IPs, others at each node; by default this node's part, by `nodes`."""
    retries: int | None = Field(default=None, ge=0, le=100, examples=[3])
    """Further attempts to connect, to another server if possible (HAProxy's retries, redispatch)."""
    max_queue: int = Field(default=0, ge=0, le=MOST_CONNECTIONS)
    """Connections that may wait for a server (HAProxy's maxqueue); more are refused. 0: no limit."""
    timeouts: PoolTimeoutsSection = Field(default_factory=PoolTimeoutsSection)
    """Timeouts towards servers that differ from `defaults`."""
    keepalive: KeepAliveSection | None = Field(default=None, json_schema_extra=or_off)
    """TCP keepalive towards servers (HAProxy's srvtcpka), or `off`."""
    tcp_user_timeout: UserTimeoutOrOff | None = Field(default=None, examples=["off"])
    """As in `defaults`, towards servers (HAProxy's tcp-ut)."""
    servers: ServersSection = Field(default_factory=lambda: ServersSection.model_validate({}))
    """The servers by name."""

    @property
    def usable(self) -> dict[str, ServerSection]:
        """The servers that have an address."""
        return {name: server for name, server in self.servers.by_name.items() if server.address.host}
