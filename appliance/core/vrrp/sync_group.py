"""Virtual routers that are active or Backup together: keepalived's `vrrp_sync_group`.

For example the IPv4 and the IPv6 address of one service. When one member enters a state, all others follow. A
virtual router without a group is a group of one. VRRP has no groups: two machines could each win with one
member, and both groups would follow in both directions for ever. Three rules prevent that:

- The members claim together, when the last Active_Down_Timer expires: a member that receives an active's
  advertisements keeps the others from claiming. keepalived does the same.
- They have one priority, the least of the members'.
- At equal priorities only one member decides by its address: the one with the shortest address and the least
  router_id. Otherwise the IPv4 addresses could choose one machine, and the IPv6 addresses the other one.
"""

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from appliance.core.vrrp.election import (
    Cause,
    Effect,
    Election,
    ElectionSettings,
    Entered,
    ReceivedAdvert,
    Resumption,
    RouterState,
)
from appliance.core.vrrp.hand_over import SuccessorsHeard
from appliance.core.vrrp.timers import ClaimHold

MemberEffect = tuple[str, Effect]

_FOLLOWED: Final = (RouterState.FAULT, RouterState.BACKUP, RouterState.ACTIVE)
"""States that all members enter after one has: the first of these that a member has just entered."""


class SyncGroup:
    """The members by name. Methods return effects with their member's name, in the order to perform them."""

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
        """The state of all members, which is the same for all between two calls."""
        return next(iter(self.members.values())).state

    @property
    def deadline(self) -> float | None:
        """When to tick next; None for never."""
        deadlines = [member.deadline for member in self.members.values() if member.deadline is not None]
        if not deadlines:
            return None
        return max(deadlines) if self.state is RouterState.BACKUP else min(deadlines)

    def start(self, now: float) -> list[MemberEffect]:
        """Start all members: in FAULT if one has a fault, active if one is active, otherwise Backup."""
        if self._faults:
            return self._all(lambda member: member.fault(now), now)
        if any(member.state is RouterState.ACTIVE for member in self.members.values()):
            return self._all(lambda member: member.follow_group(RouterState.ACTIVE, now), now)
        return self._all(lambda member: _start(member, now), now)

    def resume(self, now: float, how: Mapping[str, Resumption] = MappingProxyType({})) -> list[MemberEffect]:
        """Continue as active, all members, because an earlier run of the program was; `how` is by name."""
        effects = [
            tagged
            for name, member in self.members.items()
            for tagged in _tagged(name, member.resume(now, how.get(name, Resumption.AFTER_CRASH)))
        ]
        return self._followed(effects, now)

    def tick(self, now: float, late: float = 0.0) -> list[MemberEffect]:
        """Have the members do what is due; `late` is how many seconds too late this wake-up is."""
        due = self.deadline
        if due is None or now < due:
            return []
        return self._all(lambda member: member.tick(now, late), now)

    def receive(self, name: str, received: ReceivedAdvert, now: float) -> list[MemberEffect]:
        """Give one member a valid advertisement of its virtual router."""
        effects = self._one(name, self.members[name].receive(received, now), now)
        self._release_together(now)
        return effects

    def set_priority(self, name: str, priority: int, now: float) -> list[MemberEffect]:
        """Set one member's effective priority; all members then have the least one of all."""
        self._weights[name] = priority
        least = min(self._weights.values())
        return self._all(lambda member: member.set_priority(least, now), now)

    def fault(self, name: str, now: float) -> list[MemberEffect]:
        """Have all members enter FAULT, as this one has a fault."""
        self._faults.add(name)
        effects = _tagged(name, self.members[name].fault(now))
        return effects + self._all(lambda member: member.fault(now, Cause.GROUP), now)

    def recover(self, name: str, now: float) -> list[MemberEffect]:
        """End a member's fault; after the last one, all members take part again."""
        if name not in self._faults:
            return []
        self._faults.remove(name)
        if self._faults:
            return []
        return self._all(lambda member: member.recover(now), now)

    def stop(self, now: float) -> list[MemberEffect]:
        """Stop; an active group hands over first, and releases when all members have successors."""
        return self._all(lambda member: member.stop(now), now)

    def move(self, now: float) -> list[MemberEffect]:
        """Hand over at an operator's request: all members or none."""
        return self._all(lambda member: member.move(now), now)

    def reclaim(self, now: float) -> list[MemberEffect]:
        """Forget that an operator has moved the addresses away."""
        return self._all(lambda member: member.reclaim(now), now)

    def change_settings(self, name: str, terms: ElectionSettings, now: float) -> list[MemberEffect]:
        """Set new parameters of one member."""
        effects = self._one(name, self.members[name].change_settings(terms, now), now)
        self._choose()
        return effects

    def hold_claim(self, until: float, why: ClaimHold = ClaimHold.CONFLICT) -> None:
        """Have no member claim before `until`; an active group stays active."""
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
        successors = (
            SuccessorsHeard.COMPLETE
            if all(member.has_successor for member in leaving)
            else SuccessorsHeard.PARTIAL
        )
        for member in leaving:
            member.release_with_group(successors, now)

    def _choose(self) -> None:
        decider = min(self.members.values(), key=_seniority)
        for member in self.members.values():
            member.decides_ties = member is decider


def _tagged(name: str, effects: Iterable[Effect]) -> list[MemberEffect]:
    return [(name, effect) for effect in effects]


def _seniority(member: Election) -> tuple[int, int]:
    return len(member.settings.own), member.settings.router_id


def _start(member: Election, now: float) -> list[Effect]:
    """Start a member; recover one that a reload has moved here and whose fault was its former group's."""
    return member.recover(now) if member.state is RouterState.FAULT else member.start(now)
