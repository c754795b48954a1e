"""Other machines that use our router id with other settings, or one of our addresses without VRRP.

An advertisement that does not match ours is dropped (RFC 9568 section 7.1). But its sender drops ours as
well, so both machines become active with the same addresses. That is a conflict, and so is an ARP reply for
an address while there is no active router. Conflicts are shown while they last and for a while after.
`on_conflict` sets what a router does that sees one before its first claim. A deviating advertisement that is
accepted (`advert_rules`) is only shown: a router that follows it does not collide with its sender.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import OnConflict

LIFETIME_INTERVALS: Final = 3
"""How many intervals a conflict keeps a router from claiming after it was last seen."""

REPORTED: Final = 60.0
"""Seconds for which the status shows a dropped advertisement: monitoring that polls once a minute sees it.

Its sender may be silent meanwhile (as Backup of a third router, or with its cable unplugged) and still have
the wrong settings. A valid advertisement from the same address ends it sooner.
"""

MOST_CONFLICTS: Final = 32
"""How many conflicts are kept at a time: senders can be forged."""


class ConflictKind(StrEnum):
    """The kind of a conflict; log and status share these words."""

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
"""The conflict behind each reason to drop an advertisement of our router id.

DAMAGED could not be decoded, so nothing more is known of its sender. SOURCE_IN_USE came from our own address:
a cloned virtual machine has the same one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One conflict.

    `peer` is an IP address, or a MAC address for ADDRESS_IN_USE. For ADDRESS_FOREIGN (an operator or another
    program has put one of our addresses on this machine) `peer` is the interface. Times are monotonic
    seconds: a router does not claim before `until`, and the status shows the conflict until `reported_until`.
    `obeyed`: the peer's advertisements are used nevertheless.
    """

    kind: ConflictKind
    peer: str
    detail: str
    first_heard: float
    last_heard: float
    until: float
    reported_until: float
    obeyed: bool = False


class ClaimAdvice(Enum):
    """What a router does before its first claim: claim when it is time, wait, or never claim."""

    GO = "go"
    WAIT = "wait"
    REFUSE = "refuse"


class Conflicts:
    """The conflicts of one virtual router; `advert` is its own interval, seconds.

    `refused` becomes True, for good, when a conflict is seen before the first claim with the policy REFUSE.
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
        """Store a dropped advertisement of our router id; return the conflict if it is new.

        `interval` is the one in the packet, seconds, or 0.0 if it could not be read.
        """
        return self._note(KINDS[reason], peer, detail, interval=interval, reported=REPORTED, now=now)

    def deviated(
        self, reason: DropReason, *, peer: str, detail: str = "", interval: float, now: float
    ) -> Conflict | None:
        """Store an advertisement that is used though keepalived drops it; return a new conflict."""
        return self._note(KINDS[reason], peer, detail, interval=interval, now=now, obeyed=True)

    def answered(self, mac: str, *, address: str, interval: float, now: float) -> Conflict | None:
        """Store an ARP reply for one of our addresses; return the conflict if it is new.

        While another router is active, the reply is its own, which is no conflict. `interval` is the time
        between two ARP probes, seconds.
        """
        if now < self._active_until:
            return None
        before = self._present.get((ConflictKind.ADDRESS_IN_USE, mac, False))
        detail = before.detail if before else address
        return self._note(ConflictKind.ADDRESS_IN_USE, mac, detail, interval=interval, now=now)

    def explain(self, conflict: Conflict, detail: str) -> Conflict:
        """Replace the detail of a present conflict, and return it."""
        explained = replace(conflict, detail=detail)
        self._present[conflict.kind, conflict.peer, conflict.obeyed] = explained
        return explained

    def foreign(self, places: Collection[tuple[str, str]], *, now: float) -> tuple[Conflict, ...]:
        """Store the interfaces of this machine that have one of our addresses, though we did not add it.

        `places` are pairs of interface and address; returns the new conflicts. A conflict lasts until its
        pair is no longer in `places`. It never delays a claim, whatever the policy: this machine answers ARP
        for the address anyway, and if the router waited, no node would serve the address.
        """
        before = self._foreign
        self._foreign = {each: before.get(each) or _foreign(*each, now) for each in places}
        return tuple(conflict for each, conflict in self._foreign.items() if each not in before)

    def valid(self, peer: str, *, interval: float, now: float) -> None:
        """Store a valid advertisement: its sender is active, and rightly answers ARP for the addresses.

        Earlier conflicts with this sender are shown only as long as they last: its settings may have been
        corrected.
        """
        self._active_until = now + LIFETIME_INTERVALS * max(interval, self.advert)
        if self._present:
            self._present = {
                key: replace(each, reported_until=each.until) if each.peer == peer else each
                for key, each in self._present.items()
                if each.kind is not ConflictKind.ADDRESS_IN_USE
            }

    def claimed(self) -> None:
        """Store that this router has become active: from now on conflicts are only shown."""
        self._claimed = True

    def present(self, now: float) -> tuple[Conflict, ...]:
        """Return the conflicts to show: those with other machines, oldest first, then foreign addresses."""
        return (*self._heard(now), *(replace(each, last_heard=now) for each in self._foreign.values()))

    def advice(self, now: float) -> ClaimAdvice:
        """Return what to do about a claim, by the policy and the conflicts; REFUSE is for good."""
        if self._claimed or self.policy is OnConflict.WARN:
            return ClaimAdvice.GO
        if self.policy is OnConflict.REFUSE:
            return ClaimAdvice.REFUSE if self.refused else ClaimAdvice.GO
        return ClaimAdvice.WAIT if self.colliding(now) else ClaimAdvice.GO

    def claim_held_until(self, now: float) -> float:
        """Return until when to delay a claim, for `SyncGroup.hold_claim`; `now` if there is no delay."""
        return max((conflict.until for conflict in self.colliding(now)), default=now)

    def _heard(self, now: float) -> tuple[Conflict, ...]:
        return tuple(conflict for conflict in self._present.values() if now < conflict.reported_until)

    def colliding(self, now: float) -> tuple[Conflict, ...]:
        """Return the conflicts that delay a claim if the policy is to wait."""
        return tuple(each for each in self._heard(now) if not each.obeyed and now < each.until)

    def _note(
        self,
        kind: ConflictKind,
        peer: str,
        detail: str,
        *,
        interval: float,
        now: float,
        reported: float = 0.0,
        obeyed: bool = False,
    ) -> Conflict | None:
        until = now + LIFETIME_INTERVALS * max(interval, self.advert)
        reported_until = max(until, now + reported)
        before = self._present.get((kind, peer, obeyed))
        if before is not None and now < before.reported_until:
            self._present[kind, peer, obeyed] = replace(
                before, detail=detail, last_heard=now, until=until, reported_until=reported_until
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
            reported_until=reported_until,
            obeyed=obeyed,
        )
        self._present[kind, peer, obeyed] = conflict
        return conflict

    def _has_room(self, now: float) -> bool:
        """Return whether there is room for one more; conflicts that are over and only shown are evicted."""
        if len(self._present) >= MOST_CONFLICTS:
            self._present = {key: each for key, each in self._present.items() if now < each.until}
        return len(self._present) < MOST_CONFLICTS


def _foreign(interface: str, address: str, now: float) -> Conflict:
    return Conflict(
        kind=ConflictKind.ADDRESS_FOREIGN,
        peer=interface,
        detail=address,
        first_heard=now,
        last_heard=now,
        until=float("inf"),
        reported_until=float("inf"),
    )
