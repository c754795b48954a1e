"""The virtual routers of an accepted configuration: the `virtual_ips` of the file, with all defaults.

Times are seconds. A virtual router is RFC 9568's: one group of addresses of one family on one interface.
"""

from dataclasses import dataclass, replace
from enum import StrEnum
from ipaddress import ip_address
from typing import Final, Literal

MAIN_TABLE: Final = 254
"""The table of the kernel's own routes (RT_TABLE_MAIN of linux/rtnetlink.h)."""

OWN_METRICS: Final = {4: 0, 6: 1024}
"""The kernel's default metric, by version of IP: none, and IP6_RT_PRIO_USER."""

OWNER_PRIORITY: Final = 255
"""Priority of the router that owns the addresses (RFC 9568 section 5.2.4)."""

HIGHEST_PRIORITY: Final = 254
"""Highest priority of any other router; 0 is sent by an active router that stops."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRoute:
    """One route (keepalived's virtual_routes).

    `to` is a network, `0.0.0.0/0` or `::/0` for the default route. `interface` None lets the kernel find the
    interface of `via`. `metric` None is the kernel's own: 0, 1024 for IPv6.
    """

    to: str
    via: str | None = None
    interface: str | None = None
    source: str | None = None
    table: int = MAIN_TABLE
    metric: int | None = None
    onlink: bool = False

    @property
    def place(self) -> tuple[str, int, int]:
        """Return network, table and metric: the kernel has one route for them."""
        own = OWN_METRICS[6 if ":" in self.to else 4]
        return self.to, self.table, own if self.metric is None else self.metric

    def on(self, interface: str) -> "VirtualRoute":
        """Return it as a virtual router on `interface` has it; a gateway that can be found needs none."""
        found = self.via is not None and not self.onlink and not ip_address(self.via).is_link_local
        return self if self.interface or found else replace(self, interface=interface)

    def __str__(self) -> str:
        """Return it as in messages."""
        table = None if self.table == MAIN_TABLE else self.table
        words = {"via": self.via, "dev": self.interface, "table": table, "metric": self.metric}
        return self.to + "".join(f" {key} {each}" for key, each in words.items() if each is not None)


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRule:
    """Which packets, `source` to `to` (None: all), look up routes in `table` (keepalived's virtual_rules)."""

    source: str | None = None
    to: str | None = None
    table: int
    priority: int

    def __str__(self) -> str:
        """Return it as in messages."""
        to = f" to {self.to}" if self.to else ""
        return f"from {self.source or 'all'}{to} table {self.table} priority {self.priority}"


class OnConflict(StrEnum):
    """What a router does about a conflict before its first claim: warn, wait for its end, or stay faulty."""

    WARN = "warn"
    WAIT = "wait"
    REFUSE = "refuse"


class Checksum(StrEnum):
    """What the checksum of a version 3 advertisement over IPv4 covers.

    PSEUDO_HEADER is RFC 5798's and keepalived's default, MESSAGE is RFC 9568's (keepalived's
    `v3_checksum_as_v2`), which keepalived 2.2 drops. Both are accepted, this one is sent.
    """

    PSEUDO_HEADER = "pseudo-header"
    MESSAGE = "message"


class HmacMode(StrEnum):
    """How the HMAC trailer is used (keepalived 2.4's `auth_hmac`).

    ENFORCE sends it and drops advertisements without or with a wrong one; PERMISSIVE sends it and accepts
    those without; RECEIVE_ONLY sends none and accepts those without (the first step of a roll-out).
    """

    ENFORCE = "enforce"
    PERMISSIVE = "permissive"
    RECEIVE_ONLY = "receive-only"


class AntiReplay(StrEnum):
    """How replayed advertisements are recognised (keepalived's `anti_replay`).

    TIME drops those older than the window by the clock, and those not newer than their sender's last one.
    MONOTONIC does only the second, and needs no synchronised clocks.
    """

    TIME = "time"
    MONOTONIC = "monotonic"


@dataclass(frozen=True, slots=True, kw_only=True)
class HmacKey:
    """One key: `id` 1 to 255, `secret` 32 to 64 bytes in hexadecimal digits, "" if `file` has it."""

    id: int
    secret: str
    file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hmac:
    """The trailer: all `keys` are accepted, the one with the id `send` is sent."""

    keys: tuple[HmacKey, ...]
    send: int
    mode: HmacMode
    time_window: float
    anti_replay: AntiReplay = AntiReplay.TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceSettings:
    """Gratuitous ARP and unsolicited neighbour advertisements, keepalived's `garp_master_*`.

    `repeat` at once on becoming active and `repeat` more after `delay`; `refresh` 0.0 is off, otherwise
    `refresh_repeat` of them in that interval. `reply` adds the ARP reply form to each request.
    """

    repeat: int
    delay: float
    refresh: float
    refresh_repeat: int
    reply: bool


class TrackKind(StrEnum):
    """What is tracked; the key in the file."""

    HTTP = "http"
    TCP = "tcp"
    SCRIPT = "script"
    PROCESS = "process"
    INTERFACE = "interface"
    FILE = "file"
    POOL = "pool"
    PROGRAM = "program"
    EXISTS = "exists"


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One tracked thing.

    `target` is a URL (http), host:port (tcp), the first word of the command (script), a process's name, an
    interface, a path (file, exists), a pool or a program of this appliance. `arguments` are the further words
    of a script. `weight` None means fault while it is down. A positive weight is added while it is up, a
    negative one while it is down (keepalived's rule); for a file its number is multiplied by the weight.
    `verify` is a CA file for https, None accepts any certificate; `expect` are inclusive status ranges.
    `user` None runs a script as the user of vrrp. `exists` is a path that must exist in addition, or None:
    while it does not, the track is down without a check.
    """

    name: str
    kind: TrackKind
    target: str
    arguments: tuple[str, ...]
    weight: int | None
    interval: float
    timeout: float
    rise: int
    fall: int
    user: str | None
    verify: str | None
    expect: tuple[tuple[int, int], ...]
    exists: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """Commands as words, empty for none; `any` runs on every transition, `fifo` is a FIFO that gets lines."""

    active: tuple[str, ...]
    backup: tuple[str, ...]
    fault: tuple[str, ...]
    stop: tuple[str, ...]
    any: tuple[str, ...]
    user: str | None
    timeout: float
    fifo: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class VirtualRouter:
    """One virtual router.

    `addresses` have their prefix length, `10.0.0.200/24`, in the order of the file, of `family`. Those that
    are `excluded` are held with the others and not advertised (keepalived's virtual_ipaddress_excluded); they
    may be of the other family. Those of `elsewhere` are of the other family or on another interface, and the
    interface is listed with each: not the macvlan of a virtual MAC. `peers` empty is multicast.
    `source` None is the interface's first own address (its link-local one for IPv6). `password` is version
    2's simple password, of which at most 8 bytes are sent. `min_ttl` is the least TTL or hop limit of a
    unicast advertisement (multicast requires 255). `hand_over` bounds how long a leaving active waits for its
    successor. `listen` is how long it listens before its first claim. `label` is the IPv4 address label, or
    None. `informed_within` bounds how long it does not preempt before the programs `informers` know what
    connections there are (`linger` which node has each, `forward` all of `sync`), 0.0 without them.
    `routes` and `rules` are in the kernel while the router has its addresses.
    """

    name: str
    interface: str
    family: Literal[4, 6]
    addresses: tuple[str, ...]
    version: Literal[2, 3]
    router_id: int
    priority: int
    advert: float
    peers: tuple[str, ...]
    source: str | None
    min_ttl: int
    password: str | None
    hmac: Hmac | None
    checksum: Checksum
    preempt: bool
    preempt_delay: float
    down_timer_adverts: int
    listen: float
    hand_over: float
    on_conflict: OnConflict
    sync_group: str | None
    virtual_mac: bool
    label: str | None
    announce: AnnounceSettings
    track: tuple[Track, ...]
    notify: Notify
    excluded: tuple[str, ...] = ()
    elsewhere: tuple[tuple[str, str], ...] = ()
    informed_within: float = 0.0
    informers: tuple[str, ...] = ()
    routes: tuple[VirtualRoute, ...] = ()
    rules: tuple[VirtualRule, ...] = ()

    @property
    def routed(self) -> tuple[VirtualRoute | VirtualRule, ...]:
        """Routes, then rules: a rule may lead to a table that is empty before its routes."""
        return (*self.routes, *self.rules)

    @property
    def here(self) -> tuple[str, ...]:
        """Return the addresses of its own family that are held on the router's own interface."""
        others = {address for address, _ in self.elsewhere}
        return tuple(each for each in self.addresses if each not in others)

    @property
    def other_interfaces(self) -> tuple[str, ...]:
        """Return the interfaces of the other addresses, each once."""
        return tuple(dict.fromkeys(interface for _, interface in self.elsewhere))

    @property
    def advertised(self) -> tuple[str, ...]:
        """Return the addresses in advertisements."""
        return tuple(each for each in self.addresses if each not in self.excluded)
