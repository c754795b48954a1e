"""When a Backup may take over from a living active, and when an active offers itself."""

import pytest
from support.vrrp.elections import heard

from appliance.core.vrrp.preemption import OTHERS, ActivePeer, PreemptOffer

pytestmark = pytest.mark.pure

OTHER = "192.0.2.3"


def may_take_over(
    active: ActivePeer, priority: int, *, peer: str = "192.0.2.2", preempt: bool = False
) -> bool:
    """Return whether a Backup of priority 100 takes over."""
    return active.may_be_preempted(heard(priority=priority, peer=peer), own=100, preempt=preempt)


@pytest.mark.parametrize(("priority", "over"), [(99, True), (100, False), (101, False)])
def test_preempts_only_a_worse_one(*, priority: int, over: bool):
    """An equal or a better active is left alone."""
    assert may_take_over(ActivePeer(), priority, preempt=True) is over


def test_takes_over_from_a_better_active_that_fell_below():
    """Without preemption an active has to fall, and to fall below this router."""
    active = ActivePeer()
    assert [may_take_over(active, priority) for priority in (150, 120, 90, 150)] == [
        False,
        False,
        True,
        False,
    ]


def test_active_that_was_always_worse_stays():
    """Without preemption one that was never better is left alone."""
    active = ActivePeer()
    assert [may_take_over(active, priority) for priority in (80, 90, 90)] == [False, False, False]


def test_better_active_deals_with_a_worse_one():
    """A Backup that hears a better active ignores a third one once: that one hears the better one, too."""
    active = ActivePeer()
    may_take_over(active, 150)
    assert not may_take_over(active, 90, peer=OTHER, preempt=True)
    assert may_take_over(active, 90, peer=OTHER, preempt=True)


def test_only_the_active_itself_says_that_it_leaves():
    """Priority 0 of another router says nothing of this active."""
    active = ActivePeer()
    may_take_over(active, 150)
    active.left(b"another")
    assert may_take_over(active, 90)
    active.left(heard(priority=0).sender)
    assert not may_take_over(active, 90)


def test_active_that_won_is_measured_by_its_priority_then():
    """An active that has won against this router is degraded when it falls below what it had then."""
    active = ActivePeer()
    active.gave_way_to(heard(priority=150))
    assert may_take_over(active, 90)


def test_offers_once_for_each_fall():
    """Each fall of the priority plans one offer."""
    offer = PreemptOffer()
    offer.begin(150)
    offer.priority_changed(120, before=150, at=5.0)
    assert (offer.due(4.9, own=90), offer.due(5.0, own=90), offer.due(6.0, own=90)) == (False, True, False)
    offer.priority_changed(90, before=120, at=9.0)
    assert offer.due(9.0, own=90)


def test_full_recovery_cancels_the_offer():
    """A partial recovery does not cancel it."""
    offer = PreemptOffer()
    offer.begin(150)
    offer.priority_changed(100, before=150, at=5.0)
    offer.priority_changed(120, before=100, at=6.0)
    assert offer.due(5.0, own=90)
    offer.priority_changed(110, before=120, at=9.0)
    offer.priority_changed(150, before=110, at=9.5)
    assert not offer.due(10.0, own=90)


@pytest.mark.parametrize(("priorities", "offers"), [((80, 85), False), ((80, 90), False), ((80, 91), True)])
def test_offers_only_to_a_better_one(priorities: tuple[int, int], *, offers: bool):
    """Where all routers that were heard are worse than the fallen priority, no offer is made."""
    offer = PreemptOffer()
    for peer, priority in zip((OTHER, "192.0.2.4"), priorities, strict=True):
        offer.store(heard(priority=priority, peer=peer))
    offer.begin(150)
    offer.priority_changed(90, before=150, at=5.0)
    assert offer.due(5.0, own=90) is offers


def test_router_that_has_left_is_not_compared():
    """The priority of a router that has sent priority 0 is forgotten."""
    offer = PreemptOffer()
    offer.store(heard(priority=80, peer=OTHER))
    offer.store(heard(priority=0, peer=OTHER))
    offer.priority_changed(90, before=150, at=5.0)
    assert offer.due(5.0, own=90)


def test_forged_senders_do_not_fill_memory():
    """Only those that were heard last are remembered."""
    offer = PreemptOffer()
    offer.store(heard(priority=200, peer=OTHER))
    for number in range(OTHERS):
        offer.store(heard(priority=80, peer=f"198.51.100.{number}"))
    offer.priority_changed(90, before=150, at=5.0)
    assert not offer.due(5.0, own=90)
