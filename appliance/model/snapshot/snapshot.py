"""The accepted configuration, which every program applies.

The programs `reload` and `run` check the operator's YAML (`model.config`) and make a snapshot of it: all
defaults are filled in, every duration is in seconds, every reference is valid. The other programs read only
snapshots. A snapshot is a JSON file, so that a worker starts without loading the validator.
"""

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from hashlib import sha256
from ipaddress import ip_interface
from typing import Any, Final, Literal
from weakref import WeakValueDictionary

import msgspec

from appliance.model.operator_events import EventKind, EventSeverity
from appliance.model.snapshot.discovery import Kubernetes, Source
from appliance.model.snapshot.frontends import Bind, Frontend, Group
from appliance.model.snapshot.linger import Linger
from appliance.model.snapshot.pools import Pool, without_sent
from appliance.model.snapshot.shared_ip import Bgp, SharedIp, without_passwords
from appliance.model.snapshot.virtual_router import VirtualRouter

_RANK: Final = {EventSeverity.INFO: 0, EventSeverity.WARNING: 1, EventSeverity.CRITICAL: 2}

MOST_NUMBER: Final = 2**31 - 1
"""Greatest number of a snapshot: boards have 32 bits for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """Where the program `stats` listens, and for which clients.

    `more_binds` are addresses in addition to `bind`. `paths` are further paths of the page, each with all
    paths below it. `respond` is a path that reports whether workers accept, and `needs` the pool that must
    have a server up for that, both None for none. `user` None lets everyone look; otherwise the password is
    in `password` or in `password_file`. `certificate` and `key` are None for plain HTTP. `allow` are
    networks, empty for everyone, and `deny` those that may never connect. `socket` is the path of the unix
    socket for HAProxy's commands, or None. `admin` lets authenticated users change the states of servers over
    HTTP, and move virtual IPs.
    """

    bind: Bind
    more_binds: tuple[Bind, ...] = ()
    paths: tuple[str, ...] = ()
    respond: str | None = None
    needs: str | None = None
    user: str | None = None
    password_file: str | None = None
    password: str | None = None
    certificate: str | None = None
    key: str | None = None
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    socket: str | None = None
    admin: bool = False

    @property
    def binds(self) -> tuple[Bind, ...]:
        """All addresses."""
        return (self.bind, *self.more_binds)


class Form(StrEnum):
    """What a webhook receives."""

    JSON = "json"
    ALERTMANAGER = "alertmanager"


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyTarget:
    """One recipient. Exactly one of `command`, `webhook`, `webhook_file` and `syslog` is set.

    `syslog` is udp://HOST:PORT, tcp://HOST:PORT, tls://HOST:PORT or a path; `timeout` is seconds. `ca` is a
    file of authorities for TLS, None for those of the machine. `events` are the kinds to send, empty for all.
    """

    name: str
    severity: EventSeverity
    timeout: float
    form: Form = Form.JSON
    command: tuple[str, ...] = ()
    webhook: str | None = None
    webhook_file: str | None = None
    token_file: str | None = None
    syslog: str | None = None
    ca: str | None = None
    events: tuple[EventKind, ...] = ()

    def wants(self, kind: EventKind) -> bool:
        """Return whether this one receives such events."""
        return _RANK[kind.severity] >= _RANK[self.severity] and (not self.events or kind in self.events)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reload:
    """The reload handler: further socket paths, and how many old generations of a proxy may drain at a time.

    A changed file that has stayed unchanged for `watch` seconds is loaded without a request; 0.0 for never.
    `sessions` is whether open sessions move to the workers of a new generation, or stay and drain.
    """

    sockets: tuple[str, ...]
    max_draining: int
    # Optional, because the last-good copy of an older version lacks it.
    watch: float = 3.0
    sessions: Literal["move", "drain"] = "move"


@dataclass(frozen=True, slots=True, kw_only=True)
class Log:
    """What programs log: `connections` adds one line for each connection; `file` None is standard output."""

    level: Literal["debug", "info", "warning", "error"]
    format: Literal["json", "console"]
    connections: bool
    file: str | None = None


WATCHDOG: Final = 10.0
"""Default of `watchdog`: seconds without a heartbeat after which a program is killed and started again."""


@dataclass(frozen=True, slots=True, kw_only=True, weakref_slot=True)
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
    log: Log
    # From here on optional, because the last-good copy of an older version lacks them.
    virtual_routers: tuple[VirtualRouter, ...] = ()
    watchdog: float = WATCHDOG
    readers: str | None = None
    """Group that may read the sockets, or None."""
    awaited: bool = False
    """Whether it is only the placeholder for a first configuration, and configures nothing."""
    kubernetes: Kubernetes | None = None
    """How to ask the cluster's API, None if nothing is discovered."""
    stats: Stats | None = None
    notify: tuple[NotifyTarget, ...] = ()
    linger: Linger | None = None
    """How virtual IPs move with their connections, None if connections end."""
    shared_ips: tuple[SharedIp, ...] = ()
    bgp: Bgp | None = None
    """How shared addresses are announced, None if there are none."""
    left_out: tuple[str, ...] = ()
    """What foreign files serve and this configuration does not, by the operator's choice: a sentence each."""

    @property
    def virtual_addresses(self) -> frozenset[str]:
        """Return the addresses of all virtual routers, literal and without their prefix lengths."""
        return frozenset(
            str(ip_interface(address).ip) for each in self.virtual_routers for address in each.addresses
        )

    @property
    def shared_addresses(self) -> tuple[str, ...]:
        """Return the addresses that all nodes serve, literal and without their prefix lengths."""
        return tuple(str(ip_interface(each).ip) for group in self.shared_ips for each in group.addresses)

    @property
    def source_addresses(self) -> frozenset[str]:
        """Return the addresses from which sessions may connect to servers.

        Shared ones only where nodes forward servers' packets to each other, and their sessions can move.
        """
        moves = self.linger is not None and self.linger.sessions is not None
        return self.virtual_addresses.union(self.shared_addresses if moves else ())

    @property
    def sources(self) -> tuple[Source, ...]:
        """Return the sources of discovered servers, each once, in the order of the pools."""
        return tuple(dict.fromkeys(each.discover.source for each in self.pools if each.discover))

    @property
    def proxied(self) -> tuple[Group, ...]:
        """Return the groups that proxies serve, each with the frontends that its workers serve."""
        found = ((group, group.proxied) for group in self.groups)
        return tuple(replace(group, frontends=proxied) for group, proxied in found if proxied)

    @property
    def forwarded(self) -> tuple[tuple[Group, Frontend], ...]:
        """Return the frontends that the kernel serves, each with its group."""
        return tuple((group, each) for group in self.groups for each in group.forwarded)

    def group(self, name: str) -> Group | None:
        """Return the part that a proxy serves of the group of that name, None if there is none."""
        return next((group for group in self.proxied if group.name == name), None)

    def pool(self, name: str) -> Pool | None:
        """Return the pool of that name, None if there is none."""
        return next((pool for pool in self.pools if pool.name == name), None)


def without_secrets(snapshot: Snapshot) -> Snapshot:
    """Return the snapshot without keys and passwords, for the group that may read but not change."""
    shown = tuple(replace(each, password=None, hmac=None) for each in snapshot.virtual_routers)
    stats = replace(snapshot.stats, password=None) if snapshot.stats else None
    notify = tuple(replace(each, webhook=None, command=()) for each in snapshot.notify)
    linger = replace(snapshot.linger, keys=()) if snapshot.linger else None
    pools = tuple(map(without_sent, snapshot.pools))
    return replace(
        snapshot,
        virtual_routers=shown,
        stats=stats,
        notify=notify,
        linger=linger,
        pools=pools,
        bgp=snapshot.bgp and without_passwords(snapshot.bgp),
    )


class SnapshotError(Exception):
    """The file does not contain a valid snapshot."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stored(Snapshot):
    """A snapshot with its pools still as JSON."""

    pools: tuple[msgspec.Raw, ...]  # type: ignore[assignment]  # of no interest to who takes it for a Snapshot


_POOLS: Final[WeakValueDictionary[bytes, Pool]] = WeakValueDictionary()
"""The pools in use in this process, by a digest of their JSON."""


def encode(snapshot: Snapshot) -> bytes:
    """Return the snapshot as JSON."""
    return msgspec.json.encode(_Stored(**{**_values(snapshot), "pools": tuple(map(_stored, snapshot.pools))}))


def decode(data: bytes) -> Snapshot:
    """Return the snapshot that `encode` wrote; raises SnapshotError.

    A pool that this process has already, for example from another snapshot, is not decoded again: both have
    the same object.
    """
    try:
        stored = msgspec.json.decode(data, type=_Stored)
        found = Snapshot(**{**_values(stored), "pools": tuple(map(_pool, stored.pools))})
    except (ValueError, RecursionError) as error:  # msgspec's own errors are ValueErrors
        raise SnapshotError(str(error)) from error
    if not 0 <= found.number <= MOST_NUMBER:
        raise SnapshotError(f"number {found.number}: 0 to {MOST_NUMBER}")
    return found


class _Logs(msgspec.Struct):
    log: Log


def decode_log(data: bytes) -> Log:
    """Return the log settings of the snapshot that `encode` wrote, and read no more; raises SnapshotError."""
    try:
        return msgspec.json.decode(data, type=_Logs).log
    except (ValueError, RecursionError) as error:
        raise SnapshotError(str(error)) from error


def _values(snapshot: Snapshot) -> dict[str, Any]:
    return {each.name: getattr(snapshot, each.name) for each in fields(Snapshot)}


def _stored(pool: Pool) -> msgspec.Raw:
    data = msgspec.json.encode(pool)
    _POOLS[sha256(data).digest()] = pool
    return msgspec.Raw(data)


def _pool(stored: msgspec.Raw) -> Pool:
    digest = sha256(stored).digest()
    found = _POOLS.get(digest)
    if found is None:
        found = _POOLS[digest] = msgspec.json.decode(stored, type=Pool)
    return found
