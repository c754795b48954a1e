"""The sections `api` and `ingress`, as in `model.config.configuration`: groups of frontends."""

from pydantic import ConfigDict, Field, model_validator

from appliance.model.config.section import Section
from appliance.model.config.values.field_types import (
    MOST_CONNECTIONS,
    MOST_PROBES,
    Addresses,
    ClientRoutes,
    Duration,
    Flowtables,
    Forwarding,
    HttpPath,
    KeepAliveTime,
    LifetimeOrOff,
    Masquerading,
    Name,
    Networks,
    Percentage,
    RedirectCondition,
    SniRoutes,
    UserTimeoutOrOff,
    Workers,
    not_empty,
    or_off,
    written,
)
from appliance.model.config.values.units import duration, keepalive_time, lifetime_or_off, percentage
from appliance.model.snapshot.frontends import Flowtable, Forward, Masquerade, RedirectWhen, pools_of


class KeepAliveSection(Section):
    """TCP keepalive of idle connections, which detects dead peers; `off` is short for `count: 0`."""

    idle: KeepAliveTime = written("60s", keepalive_time)
    """Idle time before the first probe, 1s to 32767s (HAProxy's tcpka-idle)."""
    interval: KeepAliveTime = written("10s", keepalive_time)
    """Time between probes, 1s to 32767s (HAProxy's tcpka-intvl)."""
    count: int = Field(default=3, ge=0, le=MOST_PROBES)
    """Unanswered probes after which a connection is closed (HAProxy's tcpka-cnt); 0 sends none."""

    @model_validator(mode="before")
    @classmethod
    def _off(cls, value: object) -> object:
        return {"count": 0} if value == "off" else value


class FrontendTimeoutsSection(Section):
    """Timeouts towards clients."""

    client: Duration | None = Field(default=None, examples=["24h"])
    """Inactivity timeout of a client (HAProxy's timeout client)."""
    client_fin: Duration | None = Field(default=None, examples=["1s"])
    """Inactivity timeout of a client after one side has closed (HAProxy's timeout client-fin)."""
    hello: Duration = written("5s", duration)
    """Time to wait for a TLS ClientHello, with `sni` (HAProxy's tcp-request inspect-delay)."""


class RedirectSection(Section):
    """Connections to addresses where another program of this node listens, redirected here by nftables."""

    sources: Addresses = Field(
        alias="from", min_length=1, examples=[["10.0.0.200:6443", "[2001:db8::200]:6443"]]
    )
    """Addresses whose new connections are redirected: for example a virtual IP and the API server's port."""
    when: RedirectCondition = Field(default=RedirectWhen.READY)
    """ready: workers accept and a server of the pool is up; accepting: workers accept."""
    interval: Duration = written("6s", duration)
    """Time between checks of `when`, as in OpenShift. If no worker accepts, the rules are removed at once."""
    rise: int = Field(default=3, ge=1, le=1000)
    """Good checks in a row after which connections are redirected. 3 as in OpenShift."""
    fall: int = Field(default=11, ge=1, le=1000)
    """Bad checks in a row after which redirection stops. 11 as in OpenShift."""


class FrontendSection(Section):
    """An entry point for clients. Either `pool` or `respond` defines what they get."""

    # Required, but by a rule of `frontend_rules`: a frontend without `bind` is still checked for the rest.
    model_config = ConfigDict(json_schema_extra={"required": ["bind"]})

    bind: Addresses = Field(
        default=(), examples=[["[::]:9445", "192.0.2.10:6443"]], json_schema_extra=not_empty
    )
    """Addresses to listen on; `[::]` accepts IPv4 too. Ports below 1024 need a privilege."""
    pool: str | None = Field(default=None, examples=["masters"])
    """Pool that serves the clients."""
    clients: ClientRoutes = Field(default=(), examples=[[{"networks": ["10.1.0.0/16"], "pool": "office"}]])
    """Pools by the client's network; the first match wins, others go to `pool`, or where `sni` sends them."""
    sni: SniRoutes = Field(default=(), examples=[[{"names": ["*.apps.example.com"], "pool": "routers"}]])
    """Pools by the server name that a TLS client requests; the first match wins, others go to `pool`."""
    respond: HttpPath | None = Field(default=None, examples=["/haproxy_ready"])
    """Path that the workers themselves answer with 200 (HAProxy's monitor-uri), instead of a pool."""
    needs: str | None = Field(default=None, examples=["masters"])
    """Pool that needs a server up, else `respond` answers 503 (HAProxy's monitor fail)."""
    allow: Networks = Field(default=(), examples=[["10.0.0.0/24", "2001:db8::/64"]])
    """Networks that may connect, by default all. Other connections are closed before anything is read."""
    deny: Networks = Field(default=(), examples=[["10.0.0.66"]])
    """Networks that may not connect, even if `allow` includes them."""
    forward: Forwarding = Field(default=Forward.PROXY)
    """proxy: workers move the bytes; kernel: nftables rules do, which costs no processor time here."""
    masquerade: Masquerading = Field(default=Masquerade.ALWAYS)
    """Address that servers see with `forward: kernel`: always this node's; auto: the client's if possible."""
    flowtable: Flowtables = Field(default=Flowtable.NONE)
    """Flow offload, with which connections of `forward: kernel` bypass rules: none, software, or hardware."""
    sync: bool = False
    """Whether connections of `forward: kernel` survive the loss of their node: conntrackd shares them."""
    max_connections: int | None = Field(default=None, ge=1, le=MOST_CONNECTIONS, examples=[20000])
    """Concurrent connections, over all workers (HAProxy's maxconn); more wait in the kernel's queue."""
    timeouts: FrontendTimeoutsSection = Field(default_factory=FrontendTimeoutsSection)
    """Timeouts towards clients that differ from `defaults`."""
    max_age: LifetimeOrOff = written("off", lifetime_or_off, example="12h")
    """Maximum age of a connection, which spreads clients over the servers again: 1s or more, or `off`."""
    max_age_jitter: Percentage = written("10%", percentage)
    """How far the age may differ from `max_age`, so that connections do not all close at once."""
    keepalive: KeepAliveSection | None = Field(default=None, json_schema_extra=or_off)
    """TCP keepalive towards clients (HAProxy's clitcpka), or `off`."""
    tcp_user_timeout: UserTimeoutOrOff | None = Field(default=None, examples=["off"])
    """As in `defaults`, towards clients (HAProxy's tcp-ut on bind)."""
    redirect: RedirectSection | None = None
    """Redirects connections to another program's port here: on a master, to the API server's."""

    @property
    def pools(self) -> tuple[str, ...]:
        """Return the pools that its clients may be sent to, each once."""
        return pools_of(self.pool, (*self.clients, *self.sni))


class ProxyGroupSection(Section):
    """The frontends of one proxy program, which has its own processes."""

    workers: Workers = Field(default=None, json_schema_extra={"default": "auto"})
    """Worker processes: a number, or `auto` for one per processor that the program may use."""
    frontends: dict[Name, FrontendSection] = Field(default_factory=dict)
    """The frontends by name. A group without frontends is not started."""
