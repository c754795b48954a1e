"""A sync group of an IPv4 and an IPv6 member: whatever happens to one holds for both."""

import pytest
from support.vrrp.elections import heard, packed, terms

from appliance.core.vrrp.election import (
    AnnounceAddresses,
    Cause,
    Effect,
    Election,
    Entered,
    HandOverEnded,
    KeepAnnounced,
    Left,
    ReleaseAddresses,
    Resumption,
    RouterState,
    SendAdvert,
    SplitBrain,
    TakeAddresses,
)
from appliance.core.vrrp.sync_group import MemberEffect, SyncGroup

pytestmark = pytest.mark.pure

FOUR, SIX = "api", "api6"
PEER6 = "fd00::2"


def pair(*, priority: int = 100, other: int = 100) -> SyncGroup:
    """Return a group of two members, IPv6 first in the file."""
    return SyncGroup(
        {
            SIX: Election(terms(own=packed("fd00::1"), priority=other)),
            FOUR: Election(terms(priority=priority)),
        }
    )


def backup() -> SyncGroup:
    """Return a group that started at 0."""
    group = pair()
    group.start(0.0)
    return group


def active() -> SyncGroup:
    """Return a group that has claimed, at 3.609375."""
    group = backup()
    assert group.deadline is not None
    group.tick(group.deadline)
    assert group.state is RouterState.ACTIVE
    return group


def states(group: SyncGroup) -> set[RouterState]:
    """Return the states of the members."""
    return {member.state for member in group.members.values()}


def of_kind(effects: list[MemberEffect], kind: type[Effect]) -> list[str]:
    """Return whose effects of a kind there are."""
    return [name for name, effect in effects if isinstance(effect, kind)]


def causes(effects: list[MemberEffect]) -> dict[str, Cause]:
    """Return why each member entered its state."""
    return {name: effect.cause for name, effect in effects if isinstance(effect, Entered)}


def test_claims_together():
    """All members become active in one step, when the last one's Active_Down_Timer expires."""
    group = backup()
    group.receive(SIX, heard(priority=150, peer=PEER6), 2.0)
    assert group.deadline == 2.0 + group.members[SIX].active_down_interval
    assert group.tick(4.0) == []
    effects = group.tick(group.deadline)
    assert of_kind(effects, TakeAddresses) == [SIX, FOUR]
    assert states(group) == {RouterState.ACTIVE}


def test_gives_way_together():
    """A better active of one member makes all of them Backups."""
    group = active()
    effects = group.receive(FOUR, heard(priority=150), 4.0)
    assert causes(effects) == {FOUR: Cause.HIGHER_PRIORITY, SIX: Cause.GROUP}
    assert of_kind(effects, ReleaseAddresses) == [FOUR, SIX]
    assert states(group) == {RouterState.BACKUP}


def test_fails_together_and_recovers_after_the_last_fault():
    """One member's fault is a fault of all, until the last one has ended."""
    group = active()
    effects = group.fault(FOUR, 5.0)
    assert causes(effects) == {FOUR: Cause.FAULT, SIX: Cause.GROUP}
    assert group.fault(SIX, 6.0) == []
    assert group.recover(FOUR, 7.0) == []
    assert causes(group.recover(SIX, 8.0)) == {FOUR: Cause.RECOVERED, SIX: Cause.RECOVERED}
    assert states(group) == {RouterState.BACKUP}


def test_fault_of_a_member_that_leaves_the_group_stays_with_it():
    """A reload that takes the faulty member away frees the other, which takes part again."""
    before = backup()
    before.fault(SIX, 5.0)
    alone = SyncGroup({FOUR: before.members[FOUR]})
    entered = Entered(state=RouterState.BACKUP, previous=RouterState.FAULT, cause=Cause.RECOVERED, peer=None)
    assert (FOUR, entered) in alone.start(6.0)
    assert alone.state is RouterState.BACKUP


def test_fault_before_the_start():
    """A group that starts with a fault starts in it."""
    group = pair()
    group.fault(FOUR, 0.0)
    assert group.start(0.0) == []
    assert states(group) == {RouterState.FAULT}
    assert group.deadline is None
    assert group.tick(100.0) == []


def test_resumes_together():
    """A group that an earlier run of the program held as active is active at once."""
    group = pair()
    group.resume(0.0)
    assert states(group) == {RouterState.ACTIVE}


def test_resumes_together_as_each_was():
    """A member that an earlier run handed on announces nothing, one that is new does."""
    effects = pair().resume(0.0, {FOUR: Resumption.HANDED_ON})
    assert [name for name, effect in effects if isinstance(effect, KeepAnnounced)] == [FOUR]
    assert [name for name, effect in effects if isinstance(effect, AnnounceAddresses)] == [SIX]


def test_comes_to_an_active_group():
    """A reload that adds a member to an active group does not move what it holds."""
    group = active()
    grown = SyncGroup({**group.members, "new": Election(terms(router_id=52))})
    assert causes(grown.start(10.0)) == {"new": Cause.GROUP}
    assert states(grown) == {RouterState.ACTIVE}


def test_has_the_least_priority_of_its_members():
    """A check that fails for one family counts for both: they stay on one machine."""
    group = pair(priority=150, other=120)
    assert {member.priority for member in group.members.values()} == {120}
    group.start(0.0)
    group.set_priority(SIX, 200, 1.0)
    assert {member.priority for member in group.members.values()} == {150}


def test_one_member_decides_ties():
    """The IPv4 member's address decides at equal priorities, wherever it stands in the file."""
    group = active()
    assert group.receive(SIX, heard(priority=100, peer=PEER6), 4.0) == []
    effects = group.receive(FOUR, heard(priority=100), 4.0)
    assert of_kind(effects, SplitBrain) == [FOUR]
    assert states(group) == {RouterState.BACKUP}


def test_stops_when_all_have_successors():
    """The first successor's advertisement releases nothing; the last one's does."""
    group = active()
    assert of_kind(group.stop(10.0), SendAdvert) == [SIX, FOUR]
    group.receive(SIX, heard(priority=90, peer=PEER6), 10.5)
    assert group.tick(10.6) == []
    group.receive(FOUR, heard(priority=90), 10.7)
    assert group.deadline == pytest.approx(10.73)
    group.receive(SIX, heard(priority=90, peer=PEER6), 10.72)
    effects = group.tick(10.73)
    assert of_kind(effects, ReleaseAddresses) == of_kind(effects, Left) == [SIX, FOUR]


def test_moves_all_or_none():
    """When one member finds no successor in time all of them stay."""
    group = active()
    group.move(10.0)
    group.receive(SIX, heard(priority=90, peer=PEER6), 10.5)
    group.tick(11.5)
    effects = group.tick(13.0)
    assert [effect for _, effect in effects if isinstance(effect, HandOverEnded)] == [
        HandOverEnded(successor=None)
    ] * 2
    assert states(group) == {RouterState.ACTIVE}


def test_is_moved_and_reclaimed():
    """A move and a reclaim are for all members."""
    group = active()
    group.move(10.0)
    group.receive(SIX, heard(priority=90, peer=PEER6), 10.5)
    group.receive(FOUR, heard(priority=90), 10.5)
    group.tick(10.53)
    assert all(member.yielded for member in group.members.values())
    group.reclaim(11.0)
    assert not any(member.yielded for member in group.members.values())


def test_is_held_together():
    """A conflict of one member delays the claim of all."""
    group = backup()
    group.hold_claim(20.0)
    assert group.deadline == 20.0


def test_reload_of_an_address_chooses_who_decides():
    """Who decides ties follows from the members as they are now."""
    group = backup()
    group.change_settings(SIX, terms(own=packed("192.0.2.1"), router_id=50), 1.0)
    assert group.members[SIX].decides_ties
    assert not group.members[FOUR].decides_ties


def test_group_of_one():
    """A group of one member behaves as that router does alone."""
    group = SyncGroup({FOUR: Election(terms())})
    assert causes(group.start(0.0)) == {FOUR: Cause.STARTED}
    assert group.deadline == group.members[FOUR].deadline
