"""Conflicts: what is one, how long it lasts, and what it means before the first claim."""

import pytest

from appliance.core.vrrp.conflicts import (
    KINDS,
    MOST_CONFLICTS,
    REPORTED,
    ClaimAdvice,
    ConflictKind,
    Conflicts,
)
from appliance.model.drop_reasons import DropReason
from appliance.model.snapshot.virtual_router import OnConflict

pytestmark = pytest.mark.pure

PEER = "192.0.2.9"
OTHER = "192.0.2.8"
MAC = "02:00:00:00:00:09"


def seen(policy: OnConflict = OnConflict.WARN) -> Conflicts:
    """Return conflicts that heard another address list at 10."""
    conflicts = Conflicts(policy, advert=1.0)
    assert conflicts.dropped(DropReason.ADDRESS_LIST, peer=PEER, detail="10.0.0.9", now=10.0) is not None
    return conflicts


@pytest.mark.parametrize("reason", list(DropReason))
def test_every_dropped_advertisement_is_a_conflict(reason: DropReason):
    """For each reason to drop an advertisement of our router id, its sender is shown."""
    conflict = Conflicts(OnConflict.WARN, advert=1.0).dropped(reason, peer=PEER, now=0.0)
    assert conflict is not None
    assert (conflict.kind, conflict.peer) == (KINDS[reason], PEER)


@pytest.mark.parametrize("reason", list(DropReason))
@pytest.mark.parametrize(
    ("policy", "advice"), [(OnConflict.WAIT, ClaimAdvice.WAIT), (OnConflict.REFUSE, ClaimAdvice.REFUSE)]
)
def test_every_dropped_advertisement_counts_before_a_claim(
    reason: DropReason, policy: OnConflict, advice: ClaimAdvice
):
    """The operator's policy applies to all of them."""
    conflicts = Conflicts(policy, advert=1.0)
    conflicts.dropped(reason, peer=PEER, now=0.0)
    assert conflicts.advice(1.0) is advice


def test_is_new_once_while_it_lasts():
    """A conflict that goes on is not new, and says when it was heard last."""
    conflicts = seen()
    assert conflicts.dropped(DropReason.ADDRESS_LIST, peer=PEER, detail="10.0.0.9", now=11.0) is None
    (conflict,) = conflicts.present(12.0)
    assert (conflict.first_heard, conflict.last_heard) == (10.0, 11.0)


def test_is_shown_for_a_minute():
    """A conflict whose peer is silent is shown for a while, and new when it comes again after that."""
    conflicts = seen()
    assert len(conflicts.present(10.0 + REPORTED - 0.1)) == 1
    assert conflicts.present(10.0 + REPORTED) == ()
    assert conflicts.dropped(DropReason.ADDRESS_LIST, peer=PEER, now=11.0 + REPORTED) is not None


def test_a_peer_that_was_silent_is_not_new():
    """Its next dropped advertisement continues the conflict."""
    conflicts = seen()
    assert conflicts.dropped(DropReason.ADDRESS_LIST, peer=PEER, now=10.0 + REPORTED / 2) is None
    (conflict,) = conflicts.present(10.0 + REPORTED)
    assert conflict.first_heard == 10.0


def test_corrected_peer_is_shown_no_more():
    """Three intervals after its last dropped one, if a valid one came; others are still shown."""
    conflicts = seen()
    conflicts.dropped(DropReason.HMAC_TIME, peer=OTHER, now=10.0)
    conflicts.valid(PEER, interval=1.0, now=11.0)
    assert [each.peer for each in conflicts.present(12.9)] == [PEER, OTHER]
    assert [each.peer for each in conflicts.present(13.0)] == [OTHER]


def test_valid_and_dropped_advertisements_in_turn_are_still_shown():
    """A peer in whose name somebody else sends is not corrected by its own advertisements."""
    conflicts = seen()
    for second in range(11, 20):
        conflicts.valid(PEER, interval=1.0, now=float(second))
        assert conflicts.dropped(DropReason.ADDRESS_LIST, peer=PEER, now=second + 0.5) is None
    assert len(conflicts.present(22.0)) == 1


def test_slow_peer_lasts_longer():
    """Three intervals are the other router's where it is the slower one."""
    conflicts = Conflicts(OnConflict.WAIT, advert=0.01)
    conflicts.dropped(DropReason.INTERVAL, peer=PEER, interval=1.0, now=0.0)
    assert len(conflicts.colliding(2.9)) == 1
    assert conflicts.colliding(3.0) == ()


def test_address_in_use():
    """Somebody who answers for our address while no active is heard is a conflict."""
    conflicts = Conflicts(OnConflict.WARN, advert=1.0)
    conflict = conflicts.answered(MAC, address="192.0.2.100", interval=1.0, now=0.0)
    assert conflict is not None
    assert (conflict.kind, conflict.peer, conflict.detail) == (
        ConflictKind.ADDRESS_IN_USE,
        MAC,
        "192.0.2.100",
    )


def test_address_in_use_is_shown_while_it_is_answered():
    """It is probed again and again: three probes without an answer end it."""
    conflicts = Conflicts(OnConflict.WARN, advert=1.0)
    conflict = conflicts.answered(MAC, address="192.0.2.100", interval=5.0, now=0.0)
    assert conflict is not None
    conflicts.explain(conflict, "192.0.2.100, by 192.0.2.9")
    assert conflicts.answered(MAC, address="192.0.2.100", interval=5.0, now=5.0) is None
    (present,) = conflicts.present(19.9)
    assert present.detail == "192.0.2.100, by 192.0.2.9"
    assert conflicts.present(20.0) == ()


def test_active_answers_for_its_addresses():
    """An active's ARP answers are no conflict, and one that was seen before it was heard is none, either."""
    conflicts = seen()
    conflicts.answered(MAC, address="192.0.2.100", interval=1.0, now=10.0)
    conflicts.valid(PEER, interval=1.0, now=10.5)
    assert [conflict.kind for conflict in conflicts.present(10.5)] == [ConflictKind.ADDRESSES]
    assert conflicts.answered(MAC, address="192.0.2.100", interval=1.0, now=11.0) is None
    assert conflicts.answered(MAC, address="192.0.2.100", interval=1.0, now=13.5) is not None


def test_warning_lets_the_router_start():
    """With `warn` nothing is delayed."""
    assert seen().advice(10.0) is ClaimAdvice.GO


def test_waits_for_the_end():
    """With `wait` a claim is delayed until the conflict has ended."""
    conflicts = seen(OnConflict.WAIT)
    assert (conflicts.advice(10.0), conflicts.claim_held_until(10.0)) == (ClaimAdvice.WAIT, 13.0)
    assert (conflicts.advice(13.0), conflicts.claim_held_until(13.0)) == (ClaimAdvice.GO, 13.0)


def test_refuses_for_good():
    """With `refuse` a router that has seen a conflict before its first claim does not start any more."""
    conflicts = seen(OnConflict.REFUSE)
    assert conflicts.advice(100.0) is ClaimAdvice.REFUSE
    assert Conflicts(OnConflict.REFUSE, advert=1.0).advice(0.0) is ClaimAdvice.GO


@pytest.mark.parametrize("policy", list(OnConflict))
def test_only_shown_after_the_first_claim(policy: OnConflict):
    """A router that was active once is not stopped by somebody who comes later."""
    conflicts = Conflicts(policy, advert=1.0)
    conflicts.claimed()
    assert conflicts.dropped(DropReason.VERSION, peer=PEER, now=0.0) is not None
    assert conflicts.advice(0.0) is ClaimAdvice.GO


def test_forged_senders_do_not_fill_memory():
    """A bounded number of conflicts is kept, and there is room again when they end."""
    conflicts = Conflicts(OnConflict.WARN, advert=1.0)
    for number in range(2 * MOST_CONFLICTS):
        conflicts.dropped(DropReason.VERSION, peer=f"198.51.100.{number}", now=0.0)
    assert len(conflicts.present(0.0)) == MOST_CONFLICTS
    assert conflicts.dropped(DropReason.VERSION, peer=PEER, now=2.9) is None
    assert conflicts.dropped(DropReason.VERSION, peer=PEER, now=3.0) is not None
    assert [each.peer for each in conflicts.present(3.0)] == [PEER]


@pytest.mark.parametrize("policy", list(OnConflict))
def test_used_deviation_is_only_shown(policy: OnConflict):
    """A peer in the middle of a rolling change is shown while it lasts, and delays no claim."""
    conflicts = Conflicts(policy, advert=1.0)
    conflict = conflicts.deviated(DropReason.ADDRESS_LIST, peer=PEER, interval=1.0, now=10.0)
    assert conflict is not None
    assert conflict.kind is ConflictKind.ADDRESSES
    assert conflicts.deviated(DropReason.ADDRESS_LIST, peer=PEER, interval=1.0, now=11.0) is None
    assert len(conflicts.present(11.0)) == 1
    assert (conflicts.advice(11.0), conflicts.claim_held_until(11.0)) == (ClaimAdvice.GO, 11.0)


def test_deviation_that_is_no_longer_used_is_a_collision():
    """A peer whose list has none of our addresses any more is a new conflict, and the policy applies."""
    conflicts = Conflicts(OnConflict.REFUSE, advert=1.0)
    conflicts.deviated(DropReason.ADDRESS_LIST, peer=PEER, interval=1.0, now=10.0)
    assert conflicts.dropped(DropReason.ADDRESS_LIST, peer=PEER, now=11.0) is not None
    assert conflicts.advice(11.0) is ClaimAdvice.REFUSE


@pytest.mark.parametrize("policy", list(OnConflict))
def test_a_foreign_address_lasts_and_is_only_shown(policy: OnConflict):
    """One of our addresses that somebody put on our interface is new once, until it is gone."""
    conflicts = Conflicts(policy, advert=1.0)
    (told,) = conflicts.foreign([("eth0", "192.0.2.100/32")], now=10.0)
    assert (told.kind, told.peer, told.detail) == (ConflictKind.ADDRESS_FOREIGN, "eth0", "192.0.2.100/32")
    assert conflicts.foreign([("eth0", "192.0.2.100/32")], now=11.0) == ()
    conflicts.valid(PEER, interval=1.0, now=11.0)
    (present,) = conflicts.present(1000.0)
    assert (present.first_heard, present.last_heard) == (10.0, 1000.0)
    assert (conflicts.advice(11.0), conflicts.claim_held_until(11.0)) == (ClaimAdvice.GO, 11.0)
    assert conflicts.foreign((), now=12.0) == ()
    assert conflicts.present(12.0) == ()


def test_what_keeps_from_claiming_is_no_foreign_address() -> None:
    """A refusal names what was heard; an address that was put on this machine is only shown."""
    conflicts = Conflicts(OnConflict.REFUSE, advert=1.0)
    conflicts.foreign([("lo", "192.0.2.100/32"), ("eth0", "192.0.2.100/32")], now=1.0)
    heard = conflicts.answered("aa:bb", address="192.0.2.100", interval=1.0, now=2.0)
    assert conflicts.colliding(2.0) == (heard,)
    assert [each.peer for each in conflicts.present(2.0)] == ["aa:bb", "lo", "eth0"]
