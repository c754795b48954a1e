"""What the program `vrrp` says of itself and its virtual routers when it is asked for its status.

Read by `appliance status` and `appliance vip`. Whatever is absent has a default, so that a program of another
version can still be understood. Moments are Unix seconds, durations seconds.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class PriorityPartStatus:
    """What one tracked thing does to the priority; `up` None is no verdict yet, `weight` None means fault."""

    track: str
    weight: int | None = None
    up: bool | None = None
    value: int = 0
    added: int = 0
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeardRouterStatus:
    """A router that was heard; `state` is active, left or silent."""

    peer: str
    priority: int = 0
    last_heard: float = 0.0
    state: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimersStatus:
    """The timers of an election; `deadline_in` None is nothing due."""

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
    """Somebody who uses the router id or an address in another way; `obeyed` is whether he is heeded."""

    kind: str
    peer: str = ""
    detail: str = ""
    last_heard: float = 0.0
    obeyed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterStatus:
    """One virtual router. `base` is its configured priority, `held` whether its addresses are there."""

    name: str
    interface: str = ""
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
    heard: tuple[HeardRouterStatus, ...] = ()
    timers: TimersStatus = field(default_factory=TimersStatus)
    transitions: tuple[TransitionStatus, ...] = ()
    conflicts: tuple[ConflictStatus, ...] = ()
    yielded: bool = False
    leaving: bool = False
    sync_group: str | None = None
    counters: Mapping[str, int] = field(default_factory=dict)
    drops: Mapping[str, int] = field(default_factory=dict)

    @property
    def is_active(self) -> bool:
        """Whether this node serves the addresses."""
        return self.state == "active"

    @property
    def rivals(self) -> tuple[HeardRouterStatus, ...]:
        """Other routers that have gone on as active for more than an advert since this node is."""
        settled = self.since + max(self.timers.advert, self.timers.active_interval)
        others = (each for each in self.heard if each.state == "active" and each.last_heard > settled)
        return tuple(others) if self.is_active and self.since else ()

    @property
    def active_peer(self) -> str | None:
        """Address of another router that is active, the one that was heard last; None for none."""
        others = [each for each in self.heard if each.state == "active"]
        latest = max(others, key=lambda each: each.last_heard, default=None)
        return None if latest is None or self.is_active else latest.peer


@dataclass(frozen=True, slots=True, kw_only=True)
class VrrpStatus:
    """The whole answer. `missing` names capabilities; `late_wakeups` counts how often it woke too late."""

    pid: int | None = None
    missing: tuple[str, ...] = ()
    late_wakeups: int = 0
    latest_wakeup_s: float = 0.0
    routers: tuple[RouterStatus, ...] = ()

    def router(self, name: str) -> RouterStatus | None:
        """Return the virtual router of that name, None where there is none."""
        return next((each for each in self.routers if each.name == name), None)


def troubles(said: VrrpStatus) -> Iterator[str]:
    """Yield what is wrong with the virtual IPs, in sentences."""
    if said.missing:
        names = " and ".join(said.missing)
        yield f"vrrp lacks {names}: no virtual IP can be held here"
    for router in said.routers:
        yield from (f"virtual IP {router.name} {trouble}" for trouble in _troubles(router, said))


def _troubles(router: RouterStatus, said: VrrpStatus) -> Iterator[str]:
    if router.state == "fault" and not said.missing:  # which is the reason, and told already
        yield f"is in fault: {'; '.join(router.fault_reasons) or 'no reason is given'}"
    if router.is_active and not router.held:
        yield "is active, but its addresses are not on the interface"
    for rival in router.rivals:
        yield f"is active here and on {rival.peer} (priority {rival.priority}) at the same time"
    for conflict in router.conflicts:
        about = f": {conflict.detail}" if conflict.detail else ""
        who = f"{conflict.peer or 'somebody'} ({conflict.kind}){about}"
        besides = router.is_active and not conflict.obeyed
        yield f"is active here, in conflict with {who}" if besides else f"has a conflict with {who}"
