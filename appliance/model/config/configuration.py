"""The operator's configuration, key by key.

The descriptions here are the documentation: the JSON Schema contains them, and a test compares them with
the comments of `config/appliance.example.yaml`. Field names are the keys. None stands for a missing key:
`model.loading.defaults` fills in its value. Durations are seconds here, text with a unit in the file.
"""

from typing import Literal

from pydantic import Field

from appliance.model.config.bgp import BgpSection
from appliance.model.config.frontends import KeepAliveSection, ProxyGroupSection
from appliance.model.config.linger import LingerSection
from appliance.model.config.pools import PoolSection
from appliance.model.config.section import Section
from appliance.model.config.stats import StatsSection
from appliance.model.config.values.field_types import (
    MOST_CONNECTIONS,
    Command,
    Communities,
    DnsName,
    Duration,
    DurationOrOff,
    EventKinds,
    FilePath,
    GroupName,
    Name,
    Names,
    RouterAddress,
    ServerAddresses,
    SharedAddresses,
    SocketPaths,
    SyslogAddress,
    UserTimeoutOrOff,
    WatchdogTime,
    WebhookForm,
    WebhookUrl,
    WhenUnhealthy,
    WorstFirst,
    or_off,
    written,
)
from appliance.model.config.values.units import duration, duration_or_off, user_timeout_or_off, watchdog
from appliance.model.config.virtual_ips import TrackSection, VirtualIpSection
from appliance.model.operator_events import EventSeverity
from appliance.model.snapshot.shared_ip import Unhealthy
from appliance.model.snapshot.snapshot import Form


class SharedIpSection(Section):
    """Addresses that all nodes serve at a time; routers spread connections over the nodes (ECMP)."""

    addresses: SharedAddresses = Field(min_length=1, examples=[["198.51.100.10/32", "2001:db8:10::10/128"]])
    """Addresses of one host each, `/32` or `/128`, of both families if wanted, outside all local networks."""
    track: dict[Name, TrackSection] = Field(default_factory=dict)
    """Tracks by name, as in `virtual_ips`, without `weight`: the addresses are served while all are up."""
    unhealthy: WhenUnhealthy = Field(default=Unhealthy.LAST_RESORT)
    """While a track is down: `last-resort` announces the addresses as drained, so that routers use this node
    only if no other serves; `withdraw` announces them no more."""
    communities: Communities = Field(default=(), examples=[["64512:100"]])
    """Communities of the announced routes (RFC 1997)."""
    drain: Duration = written("5s", duration)
    """Time that the addresses are announced as drained before they are withdrawn."""
    neighbors: Names = Field(default=(), examples=[["tor-a"]])
    """Neighbours of `bgp` that get the routes; with [], all."""


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


class KubernetesSection(Section):
    """The cluster's API, which the program `discover` watches, with a kubeconfig, or token_file, ca and api.

    Other keys override the kubeconfig's values. All files are read again when they change.
    """

    kubeconfig: FilePath | None = Field(default=None, examples=["/etc/appliance/kubeconfig"])
    """Kubeconfig whose current context has the CA and a token or certificate; it runs no program (exec)."""
    token_file: FilePath | None = Field(default=None, examples=["/etc/appliance/token"])
    """File with a service account's token."""
    ca: FilePath | None = Field(default=None, examples=["/etc/appliance/ca.crt"])
    """File with the CA certificates for the API servers."""
    api: ServerAddresses = Field(default=(), examples=[["10.0.0.34:6443"]])
    """API servers to use, in addition to the kubeconfig's and the discovered masters."""
    server_name: DnsName | None = Field(default=None, examples=["api-int.ocp4.example.com"])
    """Name in the API's certificate. Default: the kubeconfig's, else kubernetes.default.svc."""
    family: Literal["auto", "ipv4", "ipv6"] = Field(default="auto")
    """Address family for Nodes that have both; auto: that of the virtual IPs, else the Node's first."""


class ClusterSection(Section):
    """The cluster behind the appliance."""

    name: DnsName | None = Field(default=None, examples=["ocp4"])
    """Name of the cluster; router ids of virtual IPs are derived from it, as in OpenShift."""
    domain: DnsName | None = Field(default=None, examples=["example.com"])
    """Base domain of the cluster: its API is api.NAME.DOMAIN."""


class DefaultTimeoutsSection(Section):
    """Timeouts of every frontend and pool that does not set its own."""

    connect: Duration = written("10s", duration)
    """Time to connect to a server, per attempt (HAProxy's timeout connect)."""
    queue: Duration = written("1m", duration)
    """Time a connection waits for a server (HAProxy's timeout queue)."""
    client: Duration = written("24h", duration)
    """Inactivity timeout of a client (HAProxy's timeout client)."""
    server: Duration = written("24h", duration)
    """Inactivity timeout of a server (HAProxy's timeout server)."""
    client_fin: Duration = written("1s", duration)
    """Inactivity timeout of a client after one side has closed (HAProxy's timeout client-fin)."""
    server_fin: Duration = written("1s", duration)
    """Inactivity timeout of a server after one side has closed (HAProxy's timeout server-fin)."""


class DefaultsSection(Section):
    """Settings of every frontend and pool that does not set its own."""

    max_connections: int = Field(default=40000, ge=1, le=MOST_CONNECTIONS)
    """Concurrent connections of each frontend, over all its workers. 40000 as in OpenShift."""
    timeouts: DefaultTimeoutsSection = Field(default_factory=DefaultTimeoutsSection)
    """Timeouts, as OpenShift sets them."""
    retries: int = Field(default=3, ge=0, le=100)
    """Further attempts to connect to a server."""
    tcp_user_timeout: UserTimeoutOrOff = written("off", user_timeout_or_off)
    """How long sent bytes may stay unacknowledged. Linux also counts peers that live but do not read:
    one that is paused for longer (`oc logs | less`) is reset. With `off`, keepalive finds dead idle peers,
    and the kernel (tcp_retries2, 15 minutes) those that owe an acknowledgement."""
    keepalive: KeepAliveSection = Field(default_factory=KeepAliveSection, json_schema_extra=or_off)
    """TCP keepalive on both sides, or `off`. By default it detects a dead peer after 90s."""
    drain: Duration = written("120s", duration)
    """Time for an old generation to finish. OLD_HAPROXY_PS_FORCE_DEL_TIMEOUT (seconds) overrides it."""


class SourceSection(Section):
    """Files of HAProxy, keepalived and OpenShift that are used besides this one, read again at every reload.

    Do not repeat here what they configure; configure here what they cannot (log, stats, drain ...).
    """

    haproxy: FilePath | None = Field(default=None, examples=["/etc/haproxy/haproxy.cfg"])
    """HAProxy's file, or a directory of its files. APPLIANCE_HAPROXY or --haproxy overrides it."""
    keepalived: FilePath | None = Field(default=None, examples=["/etc/keepalived/keepalived.conf"])
    """keepalived's file: its virtual IPs. APPLIANCE_KEEPALIVED or --keepalived overrides it."""
    bgp_peers: FilePath | None = Field(
        default=None, examples=["/etc/kubernetes/static-pod-resources/frr-k8s/frr-peers.json"]
    )
    """OpenShift's file of BGP peers: addresses of `shared_ips`, and `asn` and `neighbors` of `bgp`."""
    http: Literal["refuse", "skip"] = Field(default="refuse")
    """HAProxy's sections that read HTTP: `refuse` reports an error for each, `skip` leaves them to HAProxy:
    the rest is used, and `status` and `check` list the addresses that need HAProxy."""


class ReloadSection(Section):
    """The reload handler."""

    sockets: SocketPaths = Field(default=(), examples=[["/var/run/haproxy/haproxy-master.sock"]])
    """Further sockets for the lines `reload` and `stop`, besides reload.sock in the runtime directory."""
    max_draining: int = Field(default=10, ge=1, le=1000)
    """Old generations of a proxy that may drain at a time; beyond that, the oldest is cut."""
    sessions: Literal["move", "drain"] = Field(default="move")
    """Open connections when a reload starts new workers: `move` hands them over to those, and none is closed;
    with `drain` they stay in the old workers until they close or the drain time ends."""
    watch: DurationOrOff = written("3s", duration_or_off)
    """Time without changes after which a changed file is reloaded automatically, or `off`."""


class LogSection(Section):
    """What the programs log, on standard output or in a file."""

    level: Literal["debug", "info", "warning", "error"] = Field(default="info")
    """Lowest level that is logged: debug, info, warning or error."""
    format: Literal["json", "console"] = Field(default="json")
    """json for machines, one object per line; console for people."""
    connections: bool = Field(default=False)
    """Log a line for each connection when it ends."""
    file: FilePath | None = Field(default=None, examples=["/var/log/appliance/appliance.log"])
    """File to append to instead of standard output; its directory must exist. logrotate may rename it."""


class NodeSection(Section):
    """One node of those that have this file."""

    address: RouterAddress | None = Field(default=None, examples=["10.0.0.2"])
    """Address in the segment of the virtual IPs, to which the other nodes send advertisements and reports."""
    ipv6: RouterAddress | None = Field(default=None, examples=["2001:db8::2"])
    """The same for IPv6."""


class Config(Section):
    """Configuration of the load-balancer appliance."""

    cluster: ClusterSection = Field(default_factory=ClusterSection)
    """The cluster behind the appliance."""
    nodes: dict[Name, NodeSection] = Field(default_factory=dict)
    """All nodes that use this file, by host name or APPLIANCE_NODE. Values may then differ by node, as in
    `priority: { lb-0: 150, lb-1: 100 }`; a node that is not named has the default."""
    api: ProxyGroupSection | None = None
    """Frontends of the program proxy-api."""
    ingress: ProxyGroupSection | None = None
    """Frontends of the program proxy-ingress: its own processes, so that neither can starve the other."""
    pools: dict[Name, PoolSection] = Field(default_factory=dict)
    """Servers that serve the same thing, under the name that frontends use."""
    defaults: DefaultsSection = Field(default_factory=DefaultsSection)
    """Settings of every frontend and pool that does not set its own."""
    kubernetes: KubernetesSection | None = None
    """The cluster's API, for pools whose servers are discovered."""
    virtual_ips: dict[Name, VirtualIpSection] = Field(default_factory=dict)
    """Virtual IPs by name: addresses that one of several appliances holds, by VRRP, as with keepalived."""
    shared_ips: dict[Name, SharedIpSection] = Field(default_factory=dict)
    """Shared addresses by name: all nodes serve them at a time, and announce them to routers by BGP."""
    bgp: BgpSection | None = None
    """How routers learn `shared_ips`."""
    linger: LingerSection | None = None
    """Planned moves of virtual IPs close no connection if all nodes have this section with the same key."""
    source: SourceSection = Field(default_factory=SourceSection)
    """Files of HAProxy, keepalived and OpenShift that are used in addition to this one."""
    reload: ReloadSection = Field(default_factory=ReloadSection)
    """The reload handler."""
    stats: StatsSection | None = None
    """The program stats: metrics, HAProxy's statistics, status as JSON. It runs if this section exists."""
    notify: dict[Name, NotifyTargetSection] = Field(default_factory=dict)
    """Targets of notifications about the whole appliance, by name: commands, webhooks, syslog."""
    watchdog: WatchdogTime = written("10s", watchdog)
    """Time without a heartbeat after which a program is killed and restarted."""
    log: LogSection = Field(default_factory=LogSection)
    """What the programs log, on standard output or in a file."""
    group: GroupName | None = Field(default=None, examples=["monitoring"])
    """Group that may run `status`, `sessions` and `vip status` without root, from the next start on."""
