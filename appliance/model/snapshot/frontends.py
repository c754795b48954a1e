"""The frontends of an accepted configuration, by the proxy program that serves them. Times are seconds."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import ip_address
from typing import Final

_EVERY: Final = {4: ("::", "0.0.0.0"), 6: ("::",)}  # noqa: S104  # recognised, not bound


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAlive:
    """TCP keepalive, seconds and a count (HAProxy's `tcpka-idle`, `-intvl`, `-cnt`)."""

    idle: float
    interval: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bind:
    """One address to listen on. `host` is a literal address or a name; `::` accepts IPv4 too."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Forward(StrEnum):
    """What moves the bytes of a frontend's connections: our workers, or rules of the kernel."""

    PROXY = "proxy"
    KERNEL = "kernel"


class Masquerade(StrEnum):
    """Which connections that the kernel forwards get an address of this node, as a proxy's do.

    AUTO: only if they come from this node or from the servers' networks, as answers would bypass this node.
    """

    ALWAYS = "always"
    AUTO = "auto"


class Flowtable(StrEnum):
    """Whether packets of established connections that the kernel forwards pass its rules at all.

    SOFTWARE: a table of flows (nf_flow_table) translates them where they arrive. HARDWARE: not even the
    processor sees them, if the interface supports that.
    """

    NONE = "none"
    SOFTWARE = "software"
    HARDWARE = "hardware"


class RedirectWhen(StrEnum):
    """The condition for connections to be redirected."""

    READY = "ready"
    ACCEPTING = "accepting"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """Addresses of other programs of this node whose new connections come to the frontend instead.

    `rise` good looks in a row begin it, `fall` bad ones end it; `interval` seconds are between two looks.
    """

    sources: tuple[Bind, ...]
    when: RedirectWhen
    interval: float
    rise: int
    fall: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SniRoute:
    """The pool of clients that request a server by one of these names, or by one that `regex` matches.

    A name is in lower case; `*.` at its beginning matches anything. Either there are names or a regex.
    """

    pool: str
    names: tuple[str, ...] = ()
    regex: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRoute:
    """The pool of clients from one of these networks."""

    pool: str
    networks: tuple[str, ...]


def pools_of(pool: str | None, routes: Iterable[ClientRoute | SniRoute]) -> tuple[str, ...]:
    """Return the pools that clients may reach, each once: `pool` first, then those of the routes."""
    named = (pool, *(each.pool for each in routes))
    return tuple(dict.fromkeys(each for each in named if each is not None))


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontend:
    """Where clients come in. Exactly one of `pool` and `respond` is set; times are seconds.

    `clients` routes clients to other pools than `pool`, by their networks. `sni` does it with all others, by
    a TLS ClientHello; `timeout_hello` is how long to wait for it.

    With `sync` other nodes learn the connections that the kernel forwards, and go on with them.

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
    # Optional, because the last-good copy of an older version lacks them.
    redirect: Redirect | None = None
    forward: Forward = Forward.PROXY
    masquerade: Masquerade = Masquerade.ALWAYS
    flowtable: Flowtable = Flowtable.NONE
    sync: bool = False
    sni: tuple[SniRoute, ...] = ()
    timeout_hello: float = 5.0
    clients: tuple[ClientRoute, ...] = ()

    @property
    def pools(self) -> tuple[str, ...]:
        """The pools that its clients may reach, each once, `pool` first."""
        return pools_of(self.pool, (*self.clients, *self.sni))


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The frontends of one proxy program, `proxy-api` for `api`; `workers` None is one for each processor."""

    name: str
    workers: int | None
    frontends: tuple[Frontend, ...]

    @property
    def program(self) -> str:
        """Name of the supervised program that serves this group."""
        return f"proxy-{self.name}"

    @property
    def proxied(self) -> tuple[Frontend, ...]:
        """The frontends that its workers serve."""
        return tuple(each for each in self.frontends if each.forward is Forward.PROXY)

    @property
    def forwarded(self) -> tuple[Frontend, ...]:
        """The frontends that the kernel serves."""
        return tuple(each for each in self.frontends if each.forward is Forward.KERNEL)


def takes(bind: Bind, family: int) -> bool:
    """Return whether a bind can take connections of IPv4 (4) or IPv6 (6) from outside."""
    if is_every_address(bind, family):
        return True
    try:
        address = ip_address(bind.host)
    except ValueError:  # a name, such as `localhost`
        return False
    return address.version == family and not (address.is_loopback or address.is_unspecified)


def is_every_address(bind: Bind, family: int) -> bool:
    """Return whether a bind takes connections to any address of a family; `::` takes IPv4 too."""
    return bind.host in _EVERY[family]


def target(binds: Iterable[Bind], family: int) -> Bind | None:
    """Return the first bind that takes connections of a family, None if none does."""
    return next((each for each in binds if takes(each, family)), None)
