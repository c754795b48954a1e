"""Who else uses what is ours: the same router id with other terms, or one of the addresses without VRRP.

Such a router is no peer, its advertisements are dropped; but its addresses and ours collide. Whatever the
reason, an advertisement of our router id that is refused is evidence of somebody who does not obey us, nor we
him. A conflict is named while it lasts and for a while after it, and what it means before the first claim is
the operator's `on_conflict`. A peer that is obeyed in spite of a deviation is only told: who obeys it does
not collide with it.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import OnConflict

LIFETIME: Final = 3
"""Intervals for which a conflict lasts after it was last heard: so long it keeps a router from claiming."""

KEPT: Final = 60.0
"""Seconds for which a refused advertisement is told: whoever asks for the status once a minute sees it.

A router with other terms may be silent in between, as a backup of a third one or without its cable, and has
the other terms still. What it says next, once that is as it should be, ends it sooner.
"""

MOST: Final = 32
"""Conflicts that are kept at a time: senders can be made up."""


class ConflictKind(StrEnum):
    """What is not as it should be; log and status share these words."""

    ADDRESSES = "addresses"
    VERSION = "version"
    INTERVAL = "interval"
    AUTHENTICATION = "authentication"
    CLOCK = "clock"
    REPLAY = "replay"
    PEERS = "peers"
    DESTINATION = "destination"
    HOP_LIMIT = "hop-limit"
    DAMAGED = "damaged"
    SOURCE_IN_USE = "source-in-use"
    ADDRESS_IN_USE = "address-in-use"
    ADDRESS_FOREIGN = "address-foreign"


KINDS: Final[Mapping[DropReason, ConflictKind]] = {
    DropReason.ADDRESS_COUNT: ConflictKind.ADDRESSES,
    DropReason.ADDRESS_LIST: ConflictKind.ADDRESSES,
    DropReason.VERSION: ConflictKind.VERSION,
    DropReason.INTERVAL: ConflictKind.INTERVAL,
    DropReason.AUTH_TYPE: ConflictKind.AUTHENTICATION,
    DropReason.PASSWORD: ConflictKind.AUTHENTICATION,
    DropReason.HMAC_UNEXPECTED: ConflictKind.AUTHENTICATION,
    DropReason.HMAC_MISSING: ConflictKind.AUTHENTICATION,
    DropReason.HMAC_TYPE: ConflictKind.AUTHENTICATION,
    DropReason.HMAC_KEY: ConflictKind.AUTHENTICATION,
    DropReason.HMAC_DIGEST: ConflictKind.AUTHENTICATION,
    DropReason.HMAC_TIME: ConflictKind.CLOCK,
    DropReason.HMAC_REPLAY: ConflictKind.REPLAY,
    DropReason.NOT_A_PEER: ConflictKind.PEERS,
    DropReason.DESTINATION: ConflictKind.DESTINATION,
    DropReason.HOP_LIMIT: ConflictKind.HOP_LIMIT,
    DropReason.TRUNCATED: ConflictKind.DAMAGED,
    DropReason.TRAILING: ConflictKind.DAMAGED,
    DropReason.TYPE: ConflictKind.DAMAGED,
    DropReason.CHECKSUM: ConflictKind.DAMAGED,
    DropReason.ROUTER_ID: ConflictKind.DAMAGED,
    DropReason.OWN: ConflictKind.SOURCE_IN_USE,
}
"""What each reason to refuse an advertisement of our router id says of its sender: every one says something.

DAMAGED is what cannot be read as an advertisement: checksum and length tell no more than that.
SOURCE_IN_USE is one that comes from our own address, as a cloned machine has it.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One conflict: `peer` is an IP address, for ADDRESS_IN_USE a MAC address. Times are monotonic.

    For ADDRESS_FOREIGN, an address of ours that somebody put on this machine, `peer` is the interface.
    `until` is how long it keeps a router from claiming, `kept_until` how long it is told. `obeyed` is whether
    the peer's advertisements are used all the same.
    """

    kind: ConflictKind
    peer: str
    detail: str
    first_heard: float
    last_heard: float
    until: float
    kept_until: float
    obeyed: bool = False


class ClaimAdvice(Enum):
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
        self, reason: DropReason, *, peer: str, detail: str = "", interval: float = 0.0, now: float
    ) -> Conflict | None:
        """Take a dropped advertisement of our router id; return the conflict when it is a new one.

        `interval` is what the packet says, 0.0 where nobody knows.
        """
        return self._note(KINDS[reason], peer, detail, interval=interval, kept=KEPT, now=now)

    def deviated(
        self, reason: DropReason, *, peer: str, detail: str = "", interval: float, now: float
    ) -> Conflict | None:
        """Take an advertisement that was used though a stricter router had dropped it; return what is new."""
        return self._note(KINDS[reason], peer, detail, interval=interval, now=now, obeyed=True)

    def answered(self, mac: str, *, address: str, interval: float, now: float) -> Conflict | None:
        """Take an ARP answer for one of our addresses; return the conflict when it is a new one.

        An active's answers are as they should be. `interval` is how often the address is probed.
        """
        if now < self._active_until:
            return None
        before = self._present.get((ConflictKind.ADDRESS_IN_USE, mac, False))
        detail = before.detail if before else address
        return self._note(ConflictKind.ADDRESS_IN_USE, mac, detail, interval=interval, now=now)

    def explain(self, conflict: Conflict, detail: str) -> Conflict:
        """Have one that is present say more, and return it."""
        explained = replace(conflict, detail=detail)
        self._present[conflict.kind, conflict.peer, conflict.obeyed] = explained
        return explained

    def foreign(self, places: Collection[tuple[str, str]], *, now: float) -> tuple[Conflict, ...]:
        """Take where somebody else has put our addresses on this machine; return the new conflicts.

        `places` are interfaces, each with the address. A conflict lasts until its place is not given any
        more, and is only told, whatever the policy: this machine answers for the address anyway, and to wait
        would leave its virtual IP to nobody.
        """
        before = self._foreign
        self._foreign = {each: before.get(each) or _foreign(*each, now) for each in places}
        return tuple(conflict for each, conflict in self._foreign.items() if each not in before)

    def valid(self, peer: str, *, interval: float, now: float) -> None:
        """Note a valid advertisement: there is an active, and the addresses are its own.

        What its sender did otherwise before is told no longer than it lasts: it may have been set right.
        """
        self._active_until = now + LIFETIME * max(interval, self.advert)
        if self._present:
            self._present = {
                key: replace(each, kept_until=each.until) if each.peer == peer else each
                for key, each in self._present.items()
                if each.kind is not ConflictKind.ADDRESS_IN_USE
            }

    def claimed(self) -> None:
        """Note that this router has become active: from now on conflicts are only told."""
        self._claimed = True

    def present(self, now: float) -> tuple[Conflict, ...]:
        """Return the conflicts that last: what was heard, the oldest first, then foreign addresses."""
        return (*self._heard(now), *(replace(each, last_heard=now) for each in self._foreign.values()))

    def advice(self, now: float) -> ClaimAdvice:
        """Return what the policy makes of the conflicts; REFUSE is for good."""
        if self._claimed or self.policy is OnConflict.WARN:
            return ClaimAdvice.GO
        if self.policy is OnConflict.REFUSE:
            return ClaimAdvice.REFUSE if self.refused else ClaimAdvice.GO
        return ClaimAdvice.WAIT if self.colliding(now) else ClaimAdvice.GO

    def claim_held_until(self, now: float) -> float:
        """Return until when a claim has to wait, for `Election.hold`; `now` for no longer."""
        return max((conflict.until for conflict in self.colliding(now)), default=now)

    def _heard(self, now: float) -> tuple[Conflict, ...]:
        return tuple(conflict for conflict in self._present.values() if now < conflict.kept_until)

    def colliding(self, now: float) -> tuple[Conflict, ...]:
        """Return those that keep a router from claiming, where the policy is to."""
        return tuple(each for each in self._heard(now) if not each.obeyed and now < each.until)

    def _note(
        self,
        kind: ConflictKind,
        peer: str,
        detail: str,
        *,
        interval: float,
        now: float,
        kept: float = 0.0,
        obeyed: bool = False,
    ) -> Conflict | None:
        until = now + LIFETIME * max(interval, self.advert)
        kept_until = max(until, now + kept)
        before = self._present.get((kind, peer, obeyed))
        if before is not None and now < before.kept_until:
            self._present[kind, peer, obeyed] = replace(
                before, detail=detail, last_heard=now, until=until, kept_until=kept_until
            )
            return None
        if before is None and not self._has_room(now):
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
            kept_until=kept_until,
            obeyed=obeyed,
        )
        self._present[kind, peer, obeyed] = conflict
        return conflict

    def _has_room(self, now: float) -> bool:
        """Make room for one more conflict: what is told only, as it is over, gives way to what is there."""
        if len(self._present) >= MOST:
            self._present = {key: each for key, each in self._present.items() if now < each.until}
        return len(self._present) < MOST


def _foreign(interface: str, address: str, now: float) -> Conflict:
    return Conflict(
        kind=ConflictKind.ADDRESS_FOREIGN,
        peer=interface,
        detail=address,
        first_heard=now,
        last_heard=now,
        until=float("inf"),
        kept_until=float("inf"),
    )
