"""The pools of an accepted configuration: their servers, and how these are checked. Times are seconds."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Literal

from appliance.model.snapshot.discovery import RouterPort, Source
from appliance.model.snapshot.frontends import KeepAlive

REUSE_CHECKS: Final = 10
"""Checks that `reuse` makes on one connection, including the first."""

REUSE_SECONDS: Final = 30.0
"""Age from which `reuse` makes no more checks on a connection."""

SOURCE_PORTS: Final = (16384, 60999)
"""Ports of connections from virtual IPs, of all nodes: above most services' ports, and up to Linux's last."""


class Balance(StrEnum):
    """How a pool chooses among its servers (HAProxy's `balance`)."""

    ROUNDROBIN = "roundrobin"
    LEASTCONN = "leastconn"
    SOURCE = "source"
    RANDOM = "random"
    HASH = "hash"
    FIRST = "first"


class CheckType(StrEnum):
    """The protocol of a health check."""

    TCP = "tcp"
    TLS = "tls"
    HTTP = "http"
    HTTPS = "https"
    COMMAND = "command"


class CheckInit(StrEnum):
    """State of a server before its first check has ended (HAProxy's `init-state`)."""

    CHECK = "check"
    UP = "up"
    DOWN = "down"


class OnDown(StrEnum):
    """What happens to the sessions of a server that goes down (HAProxy's `on-marked-down`).

    AUTO closes those of a server that is unreachable, and keeps those of one whose check fails otherwise.
    """

    AUTO = "auto"
    CLOSE_SESSIONS = "close-sessions"
    KEEP = "keep"


class OnUp(StrEnum):
    """What happens to the sessions of a pool's backups when another server comes up (`on-marked-up`)."""

    KEEP = "keep"
    CLOSE_BACKUP_SESSIONS = "close-backup-sessions"


class SendProxy(StrEnum):
    """PROXY protocol header sent to a server (HAProxy's `send-proxy`, `send-proxy-v2`)."""

    NONE = "none"
    V1 = "v1"
    V2 = "v2"


class SourceAddress(StrEnum):
    """From where servers are connected to (HAProxy's `source`); VIRTUAL_IP: the one that the client used."""

    NODE = "node"
    VIRTUAL_IP = "virtual-ip"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckStep:
    """A step of a check with a dialogue: something is sent, then something is expected; "" is nothing.

    `send_binary` and `expect_binary` are hexadecimal digits. With `negate` the answer must not contain the
    expected text. `min_recv` is the number of bytes after which to stop waiting, 0 for no such number.
    """

    send: str = ""
    send_binary: str = ""
    expect: str = ""
    expect_binary: str = ""
    expect_rstring: str = ""
    negate: bool = False
    min_recv: int = 0
    comment: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A health check. Times are seconds; `expect` holds inclusive status ranges, (200, 399) for 2xx-3xx.

    `expect_body` is a text that the body must contain in addition to an expected status, None leaves the body
    unread. `address` and `port` None are the server's own. `verify` is the path of a CA file, None accepts
    any certificate (HAProxy's `verify none`). `timeout_connect` is only for connecting; `error_limit` 0:
    clients' failed connects have no effect. `reuse` keeps the connection for several checks. `slow_start` and
    weights belong to the pool and its servers. `steps` are what a check of TCP or TLS sends and expects.
    `expect_digest` is the body's MD5 digest, "" for any. `also` are further checks of each time, by name: of
    their times only `timeout` and `timeout_connect` count. `command` are the words before the address.
    """

    type: CheckType
    method: str
    path: str
    host: str | None
    expect: tuple[tuple[int, int], ...]
    expect_body: str | None
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
    # Optional, because the last-good copy of an older version lacks them.
    reuse: bool = False
    steps: tuple[CheckStep, ...] = ()
    expect_digest: str = ""
    also: tuple[tuple[str, "Check"], ...] = ()
    command: tuple[str, ...] = ()

    @property
    def whole(self) -> tuple["Check", ...]:
        """This check and its further ones."""
        return self, *(each for _, each in self.also)


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """One member of a pool. `max_connections` 0 is no limit; `check` None is never checked, always up.

    `discovered` is whether it was found in the cluster, and not listed by the operator.
    """

    name: str
    host: str
    port: int
    weight: int
    backup: bool
    max_connections: int
    check: Check | None
    # Optional, because the last-good copy of an older version lacks it.
    discovered: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Discovery:
    """The discovered servers of a pool: their source, their port, and their settings.

    `template` is such a server without name and address. `send_proxy` is the operator's setting for the
    pool's connections, None for the IngressController's; `check_follows` is whether checks begin with the
    same header.
    """

    source: Source
    port: int | RouterPort
    template: Server
    send_proxy: SendProxy | None
    check_follows: bool


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
class Pool:
    """Servers that serve the same thing. Times are seconds; `panic` is a fraction, 0.0 is off.

    `hash_on` names what `balance: hash` hashes. `max_queue` bounds the connections that wait for a server's
    `max_connections`, 0 is no bound. `all_backups` is whether all backups are used together, and not only the
    first one that is up. `source_ports` are the lowest and the highest port of connections from virtual IPs.
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
    # Optional, because the last-good copy of an older version lacks them.
    discover: Discovery | None = None
    all_backups: bool = False
    source: SourceAddress = SourceAddress.NODE
    source_ports: tuple[int, int] = SOURCE_PORTS
    on_up: OnUp = OnUp.KEEP


def without_sent(pool: Pool) -> Pool:
    """Return the pool without what its checks send, which may be a password (Redis's AUTH)."""
    discover = pool.discover and replace(pool.discover, template=_silent(pool.discover.template))
    silent = replace(pool, servers=tuple(map(_silent, pool.servers)), discover=discover)
    return pool if silent == pool else silent


def _silent(server: Server) -> Server:
    if server.check is None or not any(each.steps for each in server.check.whole):
        return server
    also = tuple((name, _unsaid(each)) for name, each in server.check.also)
    return replace(server, check=replace(_unsaid(server.check), also=also))


def _unsaid(check: Check) -> Check:
    steps = tuple(replace(each, send="", send_binary="") for each in check.steps)
    return replace(check, steps=steps)
