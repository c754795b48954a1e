"""The table of programs: all that the appliance runs as processes of supervisord.

Every list of programs derives from it: what a configuration needs, the order of commits, capabilities, the
end of what a dead supervisord has left, the readers of their status, and config/supervisord.conf (`make
pages`).
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final

from appliance.model.capability import Capability
from appliance.model.program_names import (
    ANNOUNCE,
    DISCOVER,
    FORWARD,
    HEALTH,
    LINGER,
    MIGRATE,
    PROXIES,
    REDIRECT,
    RELOAD,
    STATS,
    TRACKER,
    VRRP,
)

if TYPE_CHECKING:  # programs with capabilities and little to load import this table, and no configuration
    from pathlib import Path

    from appliance.model.paths import Paths
    from appliance.model.snapshot.snapshot import Snapshot

STOP_SECONDS: Final = 10
"""Seconds that a program may take to stop if that does not depend on the configuration."""

STOP_MARGIN: Final = 5
"""Seconds that supervisord adds to the time a program needs to stop before it kills it."""

LONGEST_HAND_OVER: Final = 60
"""Most seconds that the hand-over of a virtual IP takes (`hand_over`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Child:
    """A process that a program starts, not supervisord: its module, and the prefix of its heartbeats' names.

    `outlives`: it continues if its program is killed.
    """

    module: str
    heartbeat: str
    outlives: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """One program. `needed` is whether a configuration has work for it.

    supervisord runs `module` with `arguments` and gives it `capabilities`. `status` is the type of its answer
    to `status` on its control socket; it is given by name, as every program imports this table and few read
    an answer. When all stop, those with the highest `stop_priority` stop first. `stop_seconds` is how long a
    program may then take by a configuration, and `stop_alone` how long if only it stops, if that differs;
    `why_then` is for readers of supervisord.conf. `hangs_after` is after how many seconds it is killed if the
    watchdog's period is longer. `tends` is the name of the heartbeat that it beats for a process that cannot.
    `leftovers` is a module whose `remove_all` removes from the kernel what an earlier run has left there, if
    the configuration no longer needs the program. `trace` is a file without which nothing can be left.
    """

    name: str
    needed: "Callable[[Snapshot], bool]"
    module: str
    arguments: tuple[str, ...] = ()
    capabilities: frozenset[Capability] = frozenset()
    children: tuple[Child, ...] = ()
    status: str = "appliance.wire.lines.status_answer:StatusAnswer"
    stop_priority: int
    stop_seconds: "Callable[[Snapshot], int] | None" = None
    stop_alone: int | None = None
    why_then: str = ""
    hangs_after: float | None = None
    tends: str | None = None
    leftovers: str | None = None
    trace: "Callable[[Paths], Path] | None" = None


def _serves(program: str, snapshot: "Snapshot") -> bool:
    return any(group.program == program for group in snapshot.proxied)


def _drained(snapshot: "Snapshot") -> int:
    return int(snapshot.drain) + STOP_MARGIN


def _handed_over(snapshot: "Snapshot") -> int:
    return math.ceil(max((each.hand_over for each in snapshot.virtual_routers), default=0.0)) + STOP_MARGIN


def _withdrawn(snapshot: "Snapshot") -> int:
    return math.ceil(max((each.drain for each in snapshot.shared_ips), default=0.0)) + STOP_MARGIN


def _proxy(name: str) -> Program:
    return Program(
        name=name,
        needed=partial(_serves, name),
        module="appliance.programs.proxy",
        arguments=(name.removeprefix("proxy-"),),
        capabilities=frozenset({Capability.CAP_NET_BIND_SERVICE}),
        children=(Child(module="appliance.programs.worker", heartbeat="worker-", outlives=True),),
        status="appliance.wire.lines.proxy_status:ProxyStatus",
        stop_priority=30,
        stop_seconds=_drained,
        why_then="TERM is the master's alone, which drains its workers. The KILL after that is for them too.",
    )


PROGRAMS: Final = (
    Program(
        name=RELOAD,
        needed=lambda _: True,
        module="appliance.programs.reload",
        # The operator's file may be root's alone, and is read at each reload.
        # It tries the binds of a new group before it accepts it.
        capabilities=frozenset({Capability.CAP_DAC_READ_SEARCH, Capability.CAP_NET_BIND_SERVICE}),
        status="appliance.wire.lines.reload_status:ReloadStatus",
        stop_priority=10,
    ),
    Program(
        name=HEALTH,
        needed=lambda snapshot: bool(snapshot.pools),
        module="appliance.programs.health",
        stop_priority=20,
    ),
    Program(
        name=REDIRECT,
        needed=lambda snapshot: any(each.redirect for group in snapshot.groups for each in group.frontends),
        module="appliance.programs.redirect",
        capabilities=frozenset({Capability.CAP_NET_ADMIN}),
        status="appliance.wire.lines.redirect_status:RedirectStatus",
        stop_priority=25,
        why_then="After the proxies: they have it withdraw its rules before they stop to accept, and what was"
        " redirected continues until they have drained.",
    ),
    Program(
        name=FORWARD,
        needed=lambda snapshot: bool(snapshot.forwarded),
        module="appliance.programs.forward",
        # Rules and conntrack; and packets that make the ends of a lost connection answer, so that it is
        # reset.
        capabilities=frozenset({Capability.CAP_NET_ADMIN, Capability.CAP_NET_RAW}),
        status="appliance.wire.lines.forward_status:ForwardStatus",
        stop_priority=30,
        stop_seconds=_drained,
        why_then="With the proxies: sessions drain in both at the same time.",
        tends="conntrackd",
        leftovers="appliance.forward.forward_leftovers",
    ),
    *(_proxy(each) for each in PROXIES),
    Program(
        name=DISCOVER,
        needed=lambda snapshot: bool(snapshot.kubernetes),
        module="appliance.programs.discover",
        status="appliance.wire.lines.discovery_status:DiscoveryStatus",
        stop_priority=15,
    ),
    Program(
        name=STATS,
        needed=lambda snapshot: bool(snapshot.stats),
        module="appliance.programs.stats",
        stop_priority=15,
        why_then="Late: it shows how the others stop.",
    ),
    Program(
        name=LINGER,
        needed=lambda snapshot: bool(snapshot.linger and (snapshot.virtual_routers or snapshot.shared_ips)),
        module="appliance.programs.linger",
        # Rules, addresses on lo, options of interfaces, and packets that make clients send.
        capabilities=frozenset(
            {Capability.CAP_NET_ADMIN, Capability.CAP_NET_BIND_SERVICE, Capability.CAP_NET_RAW}
        ),
        status="appliance.wire.lines.linger_status:LingerStatus",
        stop_priority=25,
        why_then="After the proxies: what they still serve of a virtual IP that has moved needs its address"
        " until they have drained.",
        # A node that sends no reports for `core.linger.nodes.SILENT` seconds is gone for the others, and two
        # of these are needed to find that it hangs, to kill it and to start it.
        hangs_after=3.0,
        leftovers="appliance.linger.linger_leftovers",
        trace=lambda paths: paths.linger_lock,
    ),
    Program(
        name=MIGRATE,
        needed=lambda snapshot: bool(
            snapshot.linger and snapshot.linger.sessions and (snapshot.virtual_routers or snapshot.shared_ips)
        ),
        module="appliance.programs.migrate",
        # TCP_REPAIR, and rules that hold back packets.
        capabilities=frozenset({Capability.CAP_NET_ADMIN, Capability.CAP_NET_BIND_SERVICE}),
        status="appliance.wire.lines.migrate_status:MigrateStatus",
        stop_priority=27,
        why_then="After the proxies, whose sessions move while they drain.",
    ),
    Program(
        name=ANNOUNCE,
        needed=lambda snapshot: bool(snapshot.shared_ips),
        module="appliance.programs.announce",
        # Routes, addresses on lo, options of interfaces; and BIRD, which listens on port 179.
        capabilities=frozenset({Capability.CAP_NET_ADMIN, Capability.CAP_NET_BIND_SERVICE}),
        status="appliance.wire.lines.announce_status:AnnounceStatus",
        stop_priority=40,
        stop_seconds=_withdrawn,
        why_then="Before the proxies: routers choose other nodes while they still accept.",
        tends="bird",
        leftovers="appliance.announce.announce_leftovers",
        trace=lambda paths: paths.announce_lock,
    ),
    Program(
        name=VRRP,
        needed=lambda snapshot: bool(snapshot.virtual_routers),
        module="appliance.programs.vrrp",
        capabilities=frozenset(
            {
                Capability.CAP_NET_ADMIN,
                Capability.CAP_NET_RAW,
                Capability.CAP_IPC_LOCK,
                Capability.CAP_SYS_NICE,
                Capability.CAP_SYS_RESOURCE,
            }
        ),
        children=(Child(module="appliance.programs.tracker", heartbeat=TRACKER, outlives=False),),
        status="appliance.wire.lines.vrrp_status:VrrpStatus",
        stop_priority=40,
        stop_seconds=_handed_over,
        stop_alone=LONGEST_HAND_OVER + STOP_MARGIN,
        why_then="TERM is vrrp's alone: what it runs besides has to check and notify until the hand-over is"
        " done.",
        leftovers="appliance.net.netlink.vrrp_leftovers",
    ),
)
"""All programs, in the order of commits.

`reload` leads them. `health` is the first of the others, so that a new generation finds its servers'
verdicts. `redirect` is next: its rules are gone before a proxy closes their targets, and new ones come when
workers accept. `forward` follows: the kernel has a frontend's connections before a proxy closes it.
`announce` and `vrrp` are last: they attract clients, and the programs that serve them must be there.
"""

BY_NAME: Final = {each.name: each for each in PROGRAMS}

CONFIGURED: Final = tuple(each.name for each in PROGRAMS if each.name != RELOAD)
"""The names of the optional programs, in the order of commits; `reload` always runs."""


def needed(snapshot: "Snapshot") -> tuple[str, ...]:
    """Return the programs that have work, in the order of commits."""
    return tuple(each for each in CONFIGURED if BY_NAME[each].needed(snapshot))


def variable(what: str, program: str) -> str:
    """Return the name of an environment variable that config/supervisord.conf refers to."""
    return f"APPLIANCE_{what}_{program.upper().replace('-', '_')}"


def stop_seconds(snapshot: "Snapshot", program: str) -> int | None:
    """Return the seconds that a program may take when all stop; None if the snapshot does not set them."""
    reckoned = BY_NAME[program].stop_seconds if program in BY_NAME else None
    return reckoned(snapshot) if reckoned else None
