"""The answer of the program `vrrp` to `status`, read by `appliance status` and `appliance vip`.

Every field has a default, so that the answer of another version can still be read. Times are Unix seconds,
durations seconds. The order of the fields is that of the answer.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from appliance.wire.lines.status_answer import StatusAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityPartStatus:
    """The effect of one track on the priority; `up` None means no verdict yet, `weight` None means fault."""

    track: str
    weight: int | None = None
    up: bool | None = None
    value: int = 0
    added: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardRouterStatus:
    """A router that was received from; `state` is active, left or silent."""

    peer: str
    priority: int = 0
    last_heard: float = 0.0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimersStatus:
    """The timers of an election; `deadline_in` None means that none runs."""

    advert: float = 0.0
    deadline_in: float | None = None
    active_interval: float = 0.0
    skew: float = 0.0
    down_interval: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TransitionStatus:
    """A change of state, and the router that caused it."""

    at: float
    state: str
    previous: str = ""
    cause: str = ""
    peer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConflictStatus:
    """Another router or machine that uses the router id or an address in a conflicting way.

    `obeyed`: its advertisements are used nevertheless. `first_heard` and `last_heard` are Unix seconds.
    """

    kind: str
    peer: str = ""
    detail: str = ""
    first_heard: float = 0.0
    last_heard: float = 0.0
    obeyed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterStatus:
    """One virtual router.

    `base` is its configured priority, `priority` the effective one with its `parts`. `held` is whether its
    addresses belong on the interface. `yielded` is whether an operator has moved it away, `leaving` whether
    it only waits for a successor. `counters` and `drops` are numbers by name. For `uninformed_for` seconds it
    takes no address over, unless the programs `awaited` report earlier that they know the connections.
    `routes` are its routes and rules, `route_troubles` the missing ones, each with the reason.
    """

    name: str
    interface: str = ""
    family: int = 0
    version: int = 0
    router_id: int = 0
    state: str = ""
    since: float = 0.0
    priority: int = 0
    base: int = 0
    parts: tuple[PriorityPartStatus, ...] = ()
    fault_reasons: tuple[str, ...] = ()
    addresses: tuple[str, ...] = ()
    held: bool = False
    source: str | None = None
    peers: tuple[str, ...] = ()
    heard: tuple[HeardRouterStatus, ...] = ()
    timers: TimersStatus = field(default_factory=TimersStatus)
    transitions: tuple[TransitionStatus, ...] = ()
    conflicts: tuple[ConflictStatus, ...] = ()
    routes: tuple[str, ...] = ()
    route_troubles: tuple[str, ...] = ()
    yielded: bool = False
    leaving: bool = False
    sync_group: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)
    uninformed_for: float = 0.0
    awaited: tuple[str, ...] = ()

    @property
    def is_active(self) -> bool:
        """Whether this node serves the addresses."""
        return self.state == "active"

    @property
    def rivals(self) -> tuple[HeardRouterStatus, ...]:
        """Other routers that have stayed active for more than an advert since this node became active."""
        settled = self.since + max(self.timers.advert, self.timers.active_interval)
        others = (each for each in self.heard if each.state == "active" and each.last_heard > settled)
        return tuple(others) if self.is_active and self.since else ()

    @property
    def active_peer(self) -> str | None:
        """Address of another active router, the one received from last; None for none."""
        others = [each for each in self.heard if each.state == "active"]
        latest = max(others, key=lambda each: each.last_heard, default=None)
        return None if latest is None or self.is_active else latest.peer


@dataclass(frozen=True, slots=True, kw_only=True)
class RealtimeStatus:
    """The privileges of real-time scheduling that the program got; `refused` says why some are missing."""

    scheduler: bool = False
    memory: bool = False
    oom: bool = False
    refused: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class VrrpStatus(StatusAnswer):
    """The whole answer.

    `snapshot` is the number of the configuration in use, `pending` that of a prepared one. `missing` are
    capabilities. `late_wakeups` counts late wake-ups, `latest_wakeup_s` is the largest delay in seconds.
    `leaving` are the routers that a reload has removed and that still wait for a successor. `takes_part` is
    False after the line `stop`: then there are no `routers`.
    """

    missing: tuple[str, ...] = ()
    realtime: RealtimeStatus = field(default_factory=RealtimeStatus)
    late_wakeups: int = 0
    latest_wakeup_s: float = 0.0
    routers: tuple[RouterStatus, ...] = ()
    leaving: tuple[str, ...] = ()
    takes_part: bool = True

    def router(self, name: str) -> RouterStatus | None:
        """Return the virtual router of that name, None without one."""
        return next((each for each in self.routers if each.name == name), None)
