"""Which programs a configuration needs, and what a change from one to the next asks of them."""

import math
from dataclasses import dataclass
from typing import Final

from appliance.model.snapshot.snapshot import Snapshot

VRRP: Final = "vrrp"
"""The program that serves the virtual IPs."""

PROXIES: Final = ("proxy-api", "proxy-ingress")
"""The programs that serve groups of frontends."""

REDIRECT: Final = "redirect"
"""The program that leads connections for other programs' ports to frontends."""

FORWARD: Final = "forward"
"""The program that has the kernel forward the connections of frontends."""

LINGER: Final = "linger"
"""The program that leads packets of connections to the node that has them, when a virtual IP has moved."""

DISCOVER: Final = "discover"
"""The program that watches the cluster's API."""

STATS: Final = "stats"
"""The program that shows what the others do; no traffic depends on it."""

PROGRAMS: Final = ("health", REDIRECT, FORWARD, *PROXIES, DISCOVER, STATS, LINGER, VRRP)
"""Every program that a configuration can need."""

VRRP_STOP_SECONDS: Final = 65
"""Seconds that vrrp has to stop alone: a reload may have changed its hand-over, which is a minute at most."""

STOP_MARGIN: Final = 5
"""Seconds that a program has beyond the time it needs to stop before supervisord kills it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramChanges:
    """Programs in the order of commits: `health` first, so that a new generation finds its servers' verdicts.

    `redirect` is next: its rules are gone before a proxy closes what they lead to, and new ones come when
    workers accept. `forward` follows: the kernel has a frontend's connections before a proxy closes it.
    `vrrp` is last: it attracts clients, and what serves them has to be there.

    `prepare` holds all that the old configuration needed, `stop` those of them that the new one does not:
    they are prepared and committed too, which drains them. `start` holds those that only the new one needs.
    """

    prepare: tuple[str, ...]
    start: tuple[str, ...]
    stop: tuple[str, ...]


def needed(snapshot: Snapshot) -> tuple[str, ...]:
    """Return the programs that have something to do, in the order of commits."""
    health = ("health",) if snapshot.pools else ()
    redirected = any(each.redirect for group in snapshot.groups for each in group.frontends)
    redirect = (REDIRECT,) if redirected else ()
    forward = (FORWARD,) if snapshot.forwarded else ()
    vrrp = (VRRP,) if snapshot.virtual_routers else ()
    discover = (DISCOVER,) if snapshot.kubernetes else ()
    stats = (STATS,) if snapshot.stats else ()
    proxies = sorted(group.program for group in snapshot.proxied)
    linger = (LINGER,) if snapshot.linger and snapshot.virtual_routers else ()
    return (*health, *redirect, *forward, *proxies, *discover, *stats, *linger, *vrrp)


def stop_seconds(snapshot: Snapshot, program: str) -> int | None:
    """Return the seconds that a program may take when all stop; None where that is not the snapshot's."""
    if program == VRRP:
        waits = (each.hand_over for each in snapshot.virtual_routers)
        return math.ceil(max(waits, default=0.0)) + STOP_MARGIN
    if program == FORWARD or program.startswith("proxy-"):
        return int(snapshot.drain) + STOP_MARGIN
    return None


def plan(old: Snapshot, new: Snapshot) -> ProgramChanges:
    """Return what going from `old` to `new` asks of the programs."""
    before, after = needed(old), needed(new)
    return ProgramChanges(
        prepare=tuple(sorted(before, key=lambda each: _turn(each, goes=each not in after))),
        start=tuple(each for each in after if each not in before),
        stop=tuple(each for each in before if each not in after),
    )


def _turn(program: str, *, goes: bool) -> tuple[bool, bool]:
    """Return what sorts programs into the order of commits: those that go come behind those that stay."""
    return program == VRRP, goes and program not in (REDIRECT, FORWARD)
