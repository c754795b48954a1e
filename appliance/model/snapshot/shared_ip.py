"""Addresses that all nodes serve, and how routers learn them (`shared_ips`, `bgp`); times are seconds."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

from appliance.model.snapshot.virtual_router import Track


class Unhealthy(StrEnum):
    """How an address is announced while a track is down: as drained, for want of another node, or not."""

    LAST_RESORT = "last-resort"
    WITHDRAW = "withdraw"


class Engine(StrEnum):
    """What speaks BGP: our own BIRD, or a daemon of this machine that reads the kernel's tables."""

    BIRD = "bird"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedIp:
    """One group of addresses, `198.51.100.10/32`, of both families.

    `drain` is how long they are announced as drained before they are withdrawn. `neighbors` are the names of
    those that get them, empty for all.
    """

    name: str
    addresses: tuple[str, ...]
    track: tuple[Track, ...]
    unhealthy: Unhealthy
    communities: tuple[str, ...]
    drain: float
    neighbors: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bfd:
    """BFD's times: `interval` between packets, of which `multiplier` may be missing."""

    interval: float
    multiplier: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbor:
    """One router of this node.

    `address` has the interface of a link-local one, `fe80::1%ens192`. `password` is that of the session, or
    `password_file` has it, or both are None. `multihop` None is a router on the segment.
    """

    name: str
    address: str
    asn: int
    port: int
    password: str | None
    password_file: str | None
    hold: int
    bfd: Bfd | None
    multihop: int | None
    ttl_security: bool

    @property
    def families(self) -> tuple[Literal[4, 6], ...]:
        """The families that its session carries."""
        return session_families(self.address)


def session_families(neighbor: str) -> tuple[Literal[4, 6], ...]:
    """Return the families that the session with a neighbour's address carries.

    That is the one of the address, and both over a link-local one: IPv4 with a next hop of IPv6 (RFC 8950).
    """
    if ":" not in neighbor:
        return (4,)
    return (4, 6) if "%" in neighbor else (6,)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bgp:
    """How addresses are announced; `router_id` None is this node's address towards the first neighbour.

    `serve` and `drain` are the numbers of the kernel's tables, `graceful_restart` is 0 for off.
    """

    engine: Engine
    asn: int
    router_id: str | None
    serve: int
    drain: int
    graceful_restart: int
    neighbors: tuple[Neighbor, ...]


def without_passwords(bgp: Bgp) -> Bgp:
    """Return it without passwords, for the group that may read but not change."""
    return replace(bgp, neighbors=tuple(replace(each, password=None) for each in bgp.neighbors))
