"""The accepted configuration, as every program obeys it.

The operator's YAML (`model.config`) is checked once, by `reload` or `run`; what comes out is this: all
defaults filled in, every duration in seconds, every cross-reference known to hold. Programs read nothing
else. It is written as JSON and read back by `decode`, so that a worker starts without the validator.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import ip_interface
from typing import Final, Literal

import msgspec

from appliance.model.snapshot.virtual_router import VirtualRouter

MOST_NUMBER: Final = 2**31 - 1
"""Greatest number of a snapshot: boards have 32 bits for it."""


class Balance(StrEnum):
    """How a pool chooses among its servers (HAProxy's `balance`)."""

    ROUNDROBIN = "roundrobin"
    LEASTCONN = "leastconn"
    SOURCE = "source"
    RANDOM = "random"
    HASH = "hash"


class CheckType(StrEnum):
    """What a health check speaks."""

    TCP = "tcp"
    TLS = "tls"
    HTTP = "http"
    HTTPS = "https"


class CheckInit(StrEnum):
    """State of a server before its first check has ended (HAProxy's `init-state`)."""

    CHECK = "check"
    UP = "up"
    DOWN = "down"


class OnDown(StrEnum):
    """What happens to the sessions of a server that goes down (HAProxy's `on-marked-down`).

    AUTO closes those of a server that is unreachable, and keeps those of one that answers its check badly.
    """

    AUTO = "auto"
    CLOSE_SESSIONS = "close-sessions"
    KEEP = "keep"


class SendProxy(StrEnum):
    """PROXY protocol header sent to a server (HAProxy's `send-proxy`, `send-proxy-v2`)."""

    NONE = "none"
    V1 = "v1"
    V2 = "v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One address to listen on. `host` is a literal address or a name; `::` accepts IPv4 too."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """TCP keepalive, seconds and a count (HAProxy's `tcpka-idle`, `-intvl`, `-cnt`)."""

    idle: float
    interval: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """Where clients come in. Exactly one of `pool` and `respond` is set; times are seconds.

    `max_age_jitter` is a fraction: 0.1 lets the life of a connection differ from `max_age` by a tenth.
    """

    name: str
    binds: tuple[Bind, ...]
    pool: str | None
    respond: str | None
    needs: str | None
    allow: tuple[str, ...]
    deny: tuple[str, ...]
    max_connections: int
    timeout_client: float
    timeout_client_fin: float
    max_age: float | None
    max_age_jitter: float
    keepalive: KeepAlive | None
    tcp_user_timeout: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The frontends of one proxy program: `api` is served by the program `proxy-api`.

    `workers` None is one for each processor the program may run on.
    """

    name: str
    workers: int | None
    frontends: tuple[Frontend, ...]

    @property
    def program(self) -> str:
        """Name of the supervised program that serves this group."""
        return f"proxy-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A health check. Times are seconds; `expect` holds inclusive status ranges, (200, 399) for 2xx-3xx.

    `address` and `port` None are the server's own. `verify` is the path of a CA file, None accepts any
    certificate (HAProxy's `verify none`). `timeout_connect` is for connecting alone; `error_limit` 0 is
    that clients' connects say nothing. `slow_start` and weights belong to the pool and its servers.
    """

    type: CheckType
    method: str
    path: str
    host: str | None
    expect: tuple[tuple[int, int], ...]
    sni: str | None
    verify: str | None
    address: str | None
    port: int | None
    interval: float
    fast_interval: float
    down_interval: float
    timeout: float
    timeout_connect: float
    rise: int
    fall: int
    error_limit: int
    init: CheckInit
    send_proxy: SendProxy


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One member of a pool. `max_connections` 0 is no limit; `check` None is never checked, always up."""

    name: str
    host: str
    port: int
    weight: int
    backup: bool
    max_connections: int
    check: Check | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """Servers that serve the same thing. Times are seconds; `panic` is a fraction, 0.0 is off.

    `hash_on` names what `balance: hash` hashes. `max_queue` bounds the connections that wait for a
    server's `max_connections`, 0 is no bound.
    """

    name: str
    balance: Balance
    hash_on: tuple[Literal["source", "source-port", "destination", "destination-port"], ...]
    slow_start: float
    on_down: OnDown
    panic: float
    send_proxy: SendProxy
    retries: int
    max_queue: int
    timeout_connect: float
    timeout_queue: float
    timeout_server: float
    timeout_server_fin: float
    keepalive: KeepAlive | None
    tcp_user_timeout: float | None
    servers: tuple[Server, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """The reload handler: extra socket paths and how many old generations may drain at a time.

    `watch` is seconds for which a changed file must rest to be obeyed though nobody asked, 0.0 is off.
    """

    sockets: tuple[str, ...]
    max_draining: int
    # A last-good copy of a version that did not know it has none.
    watch: float = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What programs log: `connections` adds one line for each connection; `file` None is standard output."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["json", "console"]
    connections: bool
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Where the status page of a later program listens, and who may read it."""

    bind: Bind
    user: str | None
    password_file: str | None


WATCHDOG: Final = 10.0
"""Seconds without a sign of life after which a program is ended, where nothing else is configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A whole accepted configuration. `number` grows with every acceptance; times are seconds."""

    number: int
    source: str
    cluster: str | None
    domain: str | None
    groups: tuple[Group, ...]
    pools: tuple[Pool, ...]
    drain: float
    reload: Reload
    stats: Stats | None
    log: Log
    # A last-good copy of a version that did not know them has none.
    virtual_routers: tuple[VirtualRouter, ...] = ()
    watchdog: float = WATCHDOG
    readers: str | None = None
    """Group that may read the sockets, None for nobody."""

    @property
    def virtual_addresses(self) -> frozenset[str]:
        """Return the addresses of all virtual routers, literal and without their prefix lengths."""
        return frozenset(
            str(ip_interface(address).ip) for each in self.virtual_routers for address in each.addresses
        )

    def group(self, name: str) -> Group | None:
        """Return the group of that name, None where the configuration has none."""
        return next((group for group in self.groups if group.name == name), None)

    def pool(self, name: str) -> Pool | None:
        """Return the pool of that name, None where the configuration has none."""
        return next((pool for pool in self.pools if pool.name == name), None)


def without_secrets(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot as those may see it who may look only: without keys and passwords."""
    shown = tuple(replace(each, password=None, hmac=None) for each in snapshot.virtual_routers)
    return replace(snapshot, virtual_routers=shown)


class SnapshotError(Exception):
    """A snapshot file holds something else than a snapshot."""


def encode(snapshot: Snapshot) -> bytes:
    """Return the snapshot as JSON."""
    return msgspec.json.encode(snapshot)


def decode(data: bytes) -> Snapshot:
    """Return the snapshot that `encode` wrote; raises SnapshotError."""
    try:
        found = msgspec.json.decode(data, type=Snapshot)
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise SnapshotError(str(error)) from error
    if not 0 <= found.number <= MOST_NUMBER:
        raise SnapshotError(f"number {found.number}: 0 to {MOST_NUMBER}")
    return found
