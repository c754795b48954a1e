"""Who else uses what is ours: the same router id with other terms, or one of the addresses without VRRP.

Such a router is no peer, its advertisements are dropped; but its addresses and ours collide. A conflict is
named while it lasts, and what it means before the first claim is the operator's `on_conflict`. A peer that is
obeyed in spite of a deviation is only told: who obeys it does not collide with it.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final

from appliance.model.virtual_router import OnConflict
from appliance.wire.vrrp import Drop

LIFETIME: Final = 3
"""Intervals for which a conflict lasts after it was last heard."""

MOST: Final = 32
"""Conflicts that are kept at a time: senders can be made up."""


class ConflictKind(StrEnum):
    """What is not as it should be; log and status share these words."""

    ADDRESSES = "addresses"
    VERSION = "version"
    INTERVAL = "interval"
    AUTHENTICATION = "authentication"
    ADDRESS_IN_USE = "address-in-use"
    ADDRESS_FOREIGN = "address-foreign"


_KINDS: Final = {
    Drop.ADDRESS_LIST: ConflictKind.ADDRESSES,
    Drop.VERSION: ConflictKind.VERSION,
    Drop.INTERVAL: ConflictKind.INTERVAL,
    Drop.AUTH_TYPE: ConflictKind.AUTHENTICATION,
    Drop.PASSWORD: ConflictKind.AUTHENTICATION,
    Drop.HMAC_MISSING: ConflictKind.AUTHENTICATION,
    Drop.HMAC_KEY: ConflictKind.AUTHENTICATION,
    Drop.HMAC_DIGEST: ConflictKind.AUTHENTICATION,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One conflict: `peer` is an IP address, for ADDRESS_IN_USE a MAC address. Times are monotonic.

    For ADDRESS_FOREIGN, an address of ours that somebody put on this machine, `peer` is the interface.
    `obeyed` is whether the peer's advertisements are used all the same.
    """

    kind: ConflictKind
    peer: str
    detail: str
    first_heard: float
    last_heard: float
    until: float
    obeyed: bool = False


class Advice(Enum):
    """What the conflicts mean for a router that has not claimed yet."""

    GO = "go"
    WAIT = "wait"
    REFUSE = "refuse"


class Conflicts:
    """The conflicts of one virtual router; `advert` is its own interval, seconds.

    `refused` stays once a conflict was seen before the first claim and the policy is REFUSE.
    """

    __slots__ = ("_active_until", "_claimed", "_foreign", "_present", "advert", "policy", "refused")

    def __init__(self, policy: OnConflict, *, advert: float) -> None:
        self.policy = policy
        self.advert = advert
        self.refused = False
        self._claimed = False
        self._active_until = float("-inf")
        self._present: dict[tuple[ConflictKind, str, bool], Conflict] = {}
        self._foreign: dict[tuple[str, str], Conflict] = {}

    def dropped(
        self, reason: Drop, *, peer: str, detail: str = "", interval: float = 0.0, now: float
    ) -> Conflict | None:
        """Take a dropped advertisement of our router id; return the conflict when it is a new one.

        `interval` is what the packet says, 0.0 where nobody knows.
        """
        kind = _KINDS.get(reason)
        return None if kind is None else self._note(kind, peer, detail, interval=interval, now=now)

    def deviated(
        self, reason: Drop, *, peer: str, detail: str = "", interval: float, now: float
    ) -> Conflict | None:
        """Take an advertisement that was used though a stricter router had dropped it; return what is new."""
        return self._note(_KINDS[reason], peer, detail, interval=interval, now=now, obeyed=True)

    def answered(self, mac: str, *, address: str, interval: float, now: float) -> Conflict | None:
        """Take an ARP answer for one of our addresses; return the conflict when it is a new one.

        An active's answers are as they should be. `interval` is how often the address is probed.
        """
        if now < self._active_until:
            return None
        return self._note(ConflictKind.ADDRESS_IN_USE, mac, address, interval=interval, now=now)

    def foreign(self, places: Collection[tuple[str, str]], *, now: float) -> tuple[Conflict, ...]:
        """Take where somebody else has put our addresses on this machine; return the new conflicts.

        `places` are interfaces, each with the address. A conflict lasts until its place is not given any
        more, and is only told, whatever the policy: this machine answers for the address anyway, and to wait
        would leave its virtual IP to nobody.
        """
        before = self._foreign
        self._foreign = {each: before.get(each) or _foreign(*each, now) for each in places}
        return tuple(conflict for each, conflict in self._foreign.items() if each not in before)

    def valid(self, *, interval: float, now: float) -> None:
        """Note a valid advertisement: there is an active, and the addresses are its own."""
        self._active_until = now + LIFETIME * max(interval, self.advert)
        self._present = {
            key: conflict
            for key, conflict in self._present.items()
            if conflict.kind is not ConflictKind.ADDRESS_IN_USE
        }

    def claimed(self) -> None:
        """Note that this router has become active: from now on conflicts are only told."""
        self._claimed = True

    def present(self, now: float) -> tuple[Conflict, ...]:
        """Return the conflicts that last: what was heard, the oldest first, then foreign addresses."""
        return (*self._heard(now), *(replace(each, last_heard=now) for each in self._foreign.values()))

    def advice(self, now: float) -> Advice:
        """Return what the policy makes of the conflicts; REFUSE is for good."""
        if self._claimed or self.policy is OnConflict.WARN:
            return Advice.GO
        if self.policy is OnConflict.REFUSE:
            return Advice.REFUSE if self.refused else Advice.GO
        return Advice.WAIT if self.colliding(now) else Advice.GO

    def until(self, now: float) -> float:
        """Return until when a claim has to wait, for `Election.hold`; `now` for no longer."""
        return max((conflict.until for conflict in self.colliding(now)), default=now)

    def _heard(self, now: float) -> tuple[Conflict, ...]:
        return tuple(conflict for conflict in self._present.values() if now < conflict.until)

    def colliding(self, now: float) -> tuple[Conflict, ...]:
        """Return those that keep a router from claiming, where the policy is to."""
        return tuple(conflict for conflict in self._heard(now) if not conflict.obeyed)

    def _note(
        self,
        kind: ConflictKind,
        peer: str,
        detail: str,
        *,
        interval: float,
        now: float,
        obeyed: bool = False,
    ) -> Conflict | None:
        self._present = {key: each for key, each in self._present.items() if now < each.until}
        until = now + LIFETIME * max(interval, self.advert)
        before = self._present.get((kind, peer, obeyed))
        if before is not None:
            self._present[kind, peer, obeyed] = replace(before, detail=detail, last_heard=now, until=until)
            return None
        if len(self._present) >= MOST:
            return None
        if self.policy is OnConflict.REFUSE and not self._claimed and not obeyed:
            self.refused = True
        conflict = Conflict(
            kind=kind,
            peer=peer,
            detail=detail,
            first_heard=now,
            last_heard=now,
            until=until,
            obeyed=obeyed,
        )
        self._present[kind, peer, obeyed] = conflict
        return conflict


def _foreign(interface: str, address: str, now: float) -> Conflict:
    return Conflict(
        kind=ConflictKind.ADDRESS_FOREIGN,
        peer=interface,
        detail=address,
        first_heard=now,
        last_heard=now,
        until=float("inf"),
    )
