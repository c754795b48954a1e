"""Virtual routers that move together, as IPv4 and IPv6 addresses of one service: keepalived's sync group.

Whatever happens to one member is made to hold for all. A virtual router alone is a group of one. Three rules
keep two groups from tearing each other apart, where a member alone would decide otherwise:

- They claim together, when the last member's wait is over: a member that hears an active keeps the rest from
  claiming (keepalived's rule, too).
- They have one priority, the least of the members'.
- At equal priorities one member decides by its address, the one of the shortest address and the least
  router_id; else IPv4 could choose one router and IPv6 the other one.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from appliance.core.vrrp.election import (
    Cause,
    Effect,
    Election,
    ElectionSettings,
    Entered,
    Heard,
    RouterState,
)
from appliance.core.vrrp.hand_over import SuccessorsHeard
from appliance.core.vrrp.timers import ClaimHold

MemberEffect = tuple[str, Effect]

_FOLLOWED: Final = (RouterState.FAULT, RouterState.BACKUP, RouterState.ACTIVE)
"""States that are made to hold for all, the first one that some member has just entered."""


class SyncGroup:
    """The members by name. Each method returns effects with their member, in the order to perform them."""

    __slots__ = ("_faults", "_weights", "members")

    def __init__(self, members: Mapping[str, Election]) -> None:
        self.members = dict(members)
        self._faults: set[str] = set()
        self._weights = {name: member.priority for name, member in self.members.items()}
        self._choose()
        for member in self.members.values():
            member.priority = min(self._weights.values())

    @property
    def state(self) -> RouterState:
        """The state of all members."""
        return next(iter(self.members.values())).state

    @property
    def deadline(self) -> float | None:
        """When to tick next; None is never."""
        deadlines = [member.deadline for member in self.members.values() if member.deadline is not None]
        if not deadlines:
            return None
        return max(deadlines) if self.state is RouterState.BACKUP else min(deadlines)

    def start(self, now: float) -> list[MemberEffect]:
        """Take part; one that comes to a group which is active is so, too, and a fault is everybody's."""
        if self._faults:
            return self._all(lambda member: member.fault(now), now)
        if any(member.state is RouterState.ACTIVE for member in self.members.values()):
            return self._all(lambda member: member.follow_group(RouterState.ACTIVE, now), now)
        return self._all(lambda member: member.start(now), now)

    def resume(self, now: float) -> list[MemberEffect]:
        """Go on as Active, all of them."""
        return self._all(lambda member: member.resume(now), now)

    def tick(self, now: float, late: float = 0.0) -> list[MemberEffect]:
        """Do what is due; `late` is by how many seconds this wake-up missed its time."""
        if self.deadline is None or now < self.deadline:
            return []
        return self._all(lambda member: member.tick(now, late), now)

    def hear(self, name: str, heard: Heard, now: float) -> list[MemberEffect]:
        """Take a valid advertisement of one member's virtual router."""
        effects = self._one(name, self.members[name].hear(heard, now), now)
        self._release_together(now)
        return effects

    def set_priority(self, name: str, priority: int, now: float) -> list[MemberEffect]:
        """Take a new effective priority of one member; the least one is everybody's."""
        self._weights[name] = priority
        least = min(self._weights.values())
        return self._all(lambda member: member.set_priority(least, now), now)

    def fault(self, name: str, now: float) -> list[MemberEffect]:
        """Take a member's fault: none of them takes part."""
        self._faults.add(name)
        effects = _tagged(name, self.members[name].fault(now))
        return effects + self._all(lambda member: member.fault(now, Cause.GROUP), now)

    def recover(self, name: str, now: float) -> list[MemberEffect]:
        """Take the end of a member's fault: they take part when it was the last one."""
        if name not in self._faults:
            return []
        self._faults.remove(name)
        if self._faults:
            return []
        return self._all(lambda member: member.recover(now), now)

    def stop(self, now: float) -> list[MemberEffect]:
        """Stop, make before break: nobody releases before all have successors, or the time is up."""
        return self._all(lambda member: member.stop(now), now)

    def move(self, now: float) -> list[MemberEffect]:
        """Hand over on purpose, all of them or none."""
        return self._all(lambda member: member.move(now), now)

    def reclaim(self, now: float) -> list[MemberEffect]:
        """Forget that the addresses were moved away."""
        return self._all(lambda member: member.reclaim(now), now)

    def change_settings(self, name: str, terms: ElectionSettings, now: float) -> list[MemberEffect]:
        """Take new parameters of one member."""
        effects = self._one(name, self.members[name].change_settings(terms, now), now)
        self._choose()
        return effects

    def hold_claim(self, until: float, why: ClaimHold = ClaimHold.CONFLICT) -> None:
        """Do not claim before `until`; an active stays."""
        for member in self.members.values():
            member.hold_claim(until, why)

    def _one(self, name: str, effects: list[Effect], now: float) -> list[MemberEffect]:
        return self._followed(_tagged(name, effects), now)

    def _all(self, event: Callable[[Election], list[Effect]], now: float) -> list[MemberEffect]:
        effects = [tagged for name, member in self.members.items() for tagged in _tagged(name, event(member))]
        return self._followed(effects, now)

    def _followed(self, effects: list[MemberEffect], now: float) -> list[MemberEffect]:
        entered = {effect.state for _, effect in effects if isinstance(effect, Entered)}
        for state in _FOLLOWED:
            if state in entered:
                return effects + [
                    tagged
                    for name, member in self.members.items()
                    for tagged in _tagged(name, member.follow_group(state, now))
                ]
        return effects

    def _release_together(self, now: float) -> None:
        leaving = [member for member in self.members.values() if member.handing_over]
        relief = (
            SuccessorsHeard.COMPLETE
            if all(member.has_successor for member in leaving)
            else SuccessorsHeard.PARTIAL
        )
        for member in leaving:
            member.release_with_group(relief, now)

    def _choose(self) -> None:
        decider = min(self.members.values(), key=_seniority)
        for member in self.members.values():
            member.decides_ties = member is decider


def _tagged(name: str, effects: Iterable[Effect]) -> list[MemberEffect]:
    return [(name, effect) for effect in effects]


def _seniority(member: Election) -> tuple[int, int]:
    return len(member.settings.own), member.settings.router_id
