"""Other machines that use our router id with other settings, or one of our addresses without VRRP.

An advertisement that does not fit is dropped (RFC 9568 section 7.1). But its sender exists, and drops ours as
well, so that both machines become active with the same addresses. That is a conflict, and so is an answer to
ARP for an address that no active has. Conflicts are shown while they last and for a while after; what a
router does that sees one before its first claim is the operator's `on_conflict`. A deviating advertisement
that is used all the same (`advert_rules`) is only shown: a router that follows it does not collide with its
sender.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import Enum, StrEnum
from typing import Final

from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import OnConflict

LIFETIME_INTERVALS: Final = 3
"""How many intervals a conflict keeps a router from claiming after it was last heard."""

REPORTED: Final = 60.0
"""Seconds for which the status shows a dropped advertisement: monitoring that asks once a minute sees it.

Its sender may be silent meanwhile, as the Backup of a third router or without its cable, and still have the
wrong settings. A valid advertisement from the same address ends it sooner.
"""

MOST_CONFLICTS: Final = 32
"""How many conflicts are kept at a time: senders can be forged."""


class ConflictKind(StrEnum):
    """What is wrong; log and status share these words."""

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

DAMAGED could not be decoded, and says no more about its sender. SOURCE_IN_USE came from our own address: a
cloned virtual machine has the same one.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conflict:
    """One conflict. `peer` is an IP address, a MAC address for ADDRESS_IN_USE.

    For ADDRESS_FOREIGN, one of our addresses that an operator or another program has put on this machine,
    `peer` is the interface. Times are monotonic seconds: until `until` a router does not claim, until
    `reported_until` the status shows it. `obeyed`: the peer's advertisements are used all the same.
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
    """What a router does that has not claimed yet: claim when it is time, wait, or never claim."""

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
        """Store a dropped advertisement of our router id; return the conflict if it is a new one.

        `interval` is the one in the packet, seconds, 0.0 where it could not be read.
        """
        return self._note(KINDS[reason], peer, detail, interval=interval, reported=REPORTED, now=now)

    def deviated(
        self, reason: DropReason, *, peer: str, detail: str = "", interval: float, now: float
    ) -> Conflict | None:
        """Store an advertisement that is used though keepalived drops it; return a conflict that is new."""
        return self._note(KINDS[reason], peer, detail, interval=interval, now=now, obeyed=True)

    def answered(self, mac: str, *, address: str, interval: float, now: float) -> Conflict | None:
        """Store an ARP answer for one of our addresses; return the conflict if it is a new one.

        While another active is heard it is the one that answers, which is no conflict. `interval` is the time
        between two ARP probes, seconds.
        """
        if now < self._active_until:
            return None
        before = self._present.get((ConflictKind.ADDRESS_IN_USE, mac, False))
        detail = before.detail if before else address
        return self._note(ConflictKind.ADDRESS_IN_USE, mac, detail, interval=interval, now=now)

    def explain(self, conflict: Conflict, detail: str) -> Conflict:
        """Replace the detail of a conflict that is present, and return it."""
        explained = replace(conflict, detail=detail)
        self._present[conflict.kind, conflict.peer, conflict.obeyed] = explained
        return explained

    def foreign(self, places: Collection[tuple[str, str]], *, now: float) -> tuple[Conflict, ...]:
        """Store the interfaces of this machine that have one of our addresses without our doing.

        `places` are pairs of interface and address; the new conflicts are returned. A conflict lasts until
        its pair is not in `places` any more. It never delays a claim, whatever the policy: this machine
        answers ARP for the address anyway, and if it waited, nobody would serve the address.
        """
        before = self._foreign
        self._foreign = {each: before.get(each) or _foreign(*each, now) for each in places}
        return tuple(conflict for each, conflict in self._foreign.items() if each not in before)

    def valid(self, peer: str, *, interval: float, now: float) -> None:
        """Store a valid advertisement: there is an active, and it rightly answers ARP for the addresses.

        Earlier conflicts with this sender are shown no longer than they last: its settings may be right now.
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
        """Return the conflicts to show: what was heard, the oldest first, then foreign addresses."""
        return (*self._heard(now), *(replace(each, last_heard=now) for each in self._foreign.values()))

    def advice(self, now: float) -> ClaimAdvice:
        """Return what to do about a claim, by the policy and the conflicts; REFUSE is for good."""
        if self._claimed or self.policy is OnConflict.WARN:
            return ClaimAdvice.GO
        if self.policy is OnConflict.REFUSE:
            return ClaimAdvice.REFUSE if self.refused else ClaimAdvice.GO
        return ClaimAdvice.WAIT if self.colliding(now) else ClaimAdvice.GO

    def claim_held_until(self, now: float) -> float:
        """Return until when a claim is delayed, for `SyncGroup.hold_claim`; `now`: it is not."""
        return max((conflict.until for conflict in self.colliding(now)), default=now)

    def _heard(self, now: float) -> tuple[Conflict, ...]:
        return tuple(conflict for conflict in self._present.values() if now < conflict.reported_until)

    def colliding(self, now: float) -> tuple[Conflict, ...]:
        """Return the conflicts that delay a claim where the policy is to wait."""
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
        """Return whether there is room for one more; conflicts that are over and only shown make room."""
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
