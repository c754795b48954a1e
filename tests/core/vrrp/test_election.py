"""One election, event by event, with literal times: RFC 9568 section 6.4 and what operators add to it."""

import pytest
from support.vrrp.elections import became_active, heard, sent, terms, tick_at

from appliance.core.vrrp.election import (
    AnnounceAddresses,
    Cause,
    Effect,
    Election,
    ElectionSettings,
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
from appliance.core.vrrp.hand_over import SuccessorsHeard
from appliance.core.vrrp.timers import ClaimHold

pytestmark = pytest.mark.pure


def backup(settings: ElectionSettings | None = None, *, priority: int | None = None) -> Election:
    """Return a machine that started at 0."""
    election = Election(settings or terms(), priority=priority)
    election.start(0.0)
    return election


def active(settings: ElectionSettings | None = None, *, priority: int | None = None) -> Election:
    """Return a machine that became active at its first deadline, 3.609375 s for priority 100."""
    election = backup(settings, priority=priority)
    tick_at(election)
    assert election.state is RouterState.ACTIVE
    return election


def now_of(election: Election) -> float:
    """Return when the machine entered its state."""
    assert election.since is not None
    return election.since


def test_starts_as_backup_for_a_down_interval():
    """A started router listens for three intervals and its skew, and then claims."""
    election = Election(terms())
    assert election.start(0.0) == [
        Entered(state=RouterState.BACKUP, previous=RouterState.INITIALIZE, cause=Cause.STARTED, peer=None)
    ]
    assert election.deadline == 3 + 156 / 256
    assert election.tick(3.6) == []
    assert election.tick(3.61) == became_active(100, Cause.ACTIVE_DOWN)


def test_addresses_come_before_the_advertisement():
    """What is advertised is held already: take, advertise, announce, and then the word of it."""
    kinds = [type(effect).__name__ for effect in tick_at(backup())]
    assert kinds == ["TakeAddresses", "SendAdvert", "AnnounceAddresses", "Entered"]


def test_hears_the_active_and_waits():
    """A better active puts the claim off by a down interval."""
    election = backup()
    assert election.receive(heard(priority=150), 1.0) == []
    assert election.deadline == 1 + election.active_down_interval


def test_gives_way_to_a_higher_priority():
    """An active that hears a better one drops the addresses first."""
    election = active()
    assert election.receive(heard(priority=101), 4.0) == [
        SendAdvert(priority=100),
        ReleaseAddresses(),
        Entered(
            state=RouterState.BACKUP,
            previous=RouterState.ACTIVE,
            cause=Cause.HIGHER_PRIORITY,
            peer="192.0.2.2",
        ),
    ]


def test_leaves_when_a_successor_is_heard():
    """Stop says priority 0, holds on until a successor advertises and a moment more, and is gone."""
    election = active()
    assert election.stop(10.0) == [SendAdvert(priority=0)]
    assert election.receive(heard(priority=90), 10.6) == []
    assert election.deadline == pytest.approx(10.63)
    assert election.tick(10.63) == [
        ReleaseAddresses(),
        Entered(
            state=RouterState.INITIALIZE, previous=RouterState.ACTIVE, cause=Cause.STOPPED, peer="192.0.2.2"
        ),
        Left(),
    ]


# Initialize and Backup: RFC 9568 sections 6.4.1 and 6.4.2


def test_listens_longer_than_the_down_interval():
    """With a longer `listen` the first claim waits for it, and neither preemption nor an owner is earlier."""
    election = backup(terms(listen=10.0))
    assert election.deadline == 10.0
    election.receive(heard(priority=50), 1.0)
    assert election.deadline == 10.0
    assert backup(terms(listen=10.0, priority=255)).deadline == 10.0


def test_owner_claims_after_listening():
    """An owner does not wait for the down interval, at the start and after a fault."""
    election = backup(terms(priority=255, listen=0.5))
    assert election.deadline == 0.5
    election.fault(0.6)
    election.recover(0.7)
    assert election.deadline == 0.7


def test_starts_only_once():
    """A second start, or resuming while taking part, changes nothing."""
    election = backup()
    assert election.start(1.0) == election.resume(1.0) == []
    assert election.state is RouterState.BACKUP


def test_resumes_as_active():
    """A router that an earlier run of the program held as active is active at once."""
    election = Election(terms())
    assert election.resume(5.0) == became_active(100, Cause.RESUMED, previous=RouterState.INITIALIZE)
    assert election.deadline == 6.0


def test_what_is_handed_on_is_not_announced():
    """Nobody has to learn where the addresses are: they were here all the time, and refreshes go on."""
    effects = Election(terms()).resume(5.0, Resumption.HANDED_ON)
    entered = Entered(
        state=RouterState.ACTIVE, previous=RouterState.INITIALIZE, cause=Cause.RESUMED, peer=None
    )
    assert effects == [TakeAddresses(), SendAdvert(priority=100), KeepAnnounced(), entered]


def test_hears_nothing_before_the_start_and_in_fault():
    """Who takes no part waits for nobody."""
    election = Election(terms())
    assert election.receive(heard(priority=150), 0.0) == []
    election.fault(0.0)
    assert election.receive(heard(priority=150), 0.0) == []
    assert (election.deadline, election.tick(100.0)) == (None, [])


def test_own_advertisement_is_nobody():
    """What comes back from the switch is no router."""
    election = backup()
    before = election.deadline
    election.receive(heard(priority=200, peer="192.0.2.1"), 3.0)
    assert election.deadline == before


def test_learns_the_interval_in_version_3():
    """The active's interval is the one that counts; one of 0 counts as the least there is."""
    election = backup()
    election.receive(heard(priority=150, interval=0.1), 1.0)
    assert (election.active_interval, election.skew_time) == (0.1, 0.1 * 156 / 256)
    assert election.deadline == 1.0 + election.active_down_interval
    election.receive(heard(priority=150, interval=0.0), 1.0)
    assert election.active_interval == 0.01


def test_own_interval_in_version_2():
    """Version 2 has one interval for all, and its skew is a part of a second."""
    election = backup(terms(version=2, advert=5.0))
    election.receive(heard(priority=150, interval=1.0), 1.0)
    assert (election.active_interval, election.skew_time) == (5.0, 156 / 256)


def test_active_that_leaves_is_followed_after_the_skew_time():
    """Priority 0 cuts the wait to the skew time, and listening with it."""
    election = backup(terms(listen=60.0))
    election.receive(heard(priority=150), 1.0)
    election.receive(heard(priority=0), 1.5)
    assert election.deadline == 1.5 + 156 / 256
    assert tick_at(election) == became_active(100, Cause.ACTIVE_LEFT, peer="192.0.2.2")


def test_preempts_after_the_skew_time():
    """A better router does not wait for the down interval, nor longer the more it hears."""
    election = backup()
    election.receive(heard(priority=90), 1.0)
    election.receive(heard(priority=90), 1.5)
    assert election.deadline == 1.0 + 156 / 256
    assert tick_at(election) == became_active(100, Cause.PREEMPTED, peer="192.0.2.2")


def test_does_not_preempt_an_equal():
    """A Backup leaves an active of its own priority alone, whatever the addresses are."""
    election = backup()
    election.receive(heard(priority=100, peer="192.0.2.0"), 1.0)
    assert election.deadline == 1.0 + election.active_down_interval


def test_preempts_after_its_delay():
    """The delay counts from the start, and again from a recovery."""
    election = backup(terms(preempt_delay=10.0))
    election.receive(heard(priority=90), 9.0)
    assert election.deadline == 9.0 + election.active_down_interval
    election.receive(heard(priority=90), 10.0)
    assert election.deadline == 10.0 + election.skew_time
    election.fault(10.1)
    election.recover(11.0)
    election.receive(heard(priority=90), 12.0)
    assert election.deadline == 12.0 + election.active_down_interval


def test_preempts_when_it_is_informed():
    """By all: before that it follows a worse active; after a fault it has to be told again."""
    election = backup(terms(informed_within=60.0, informers=frozenset({"forward", "linger"})))
    assert election.awaited_informers == {"forward", "linger"}
    election.receive(heard(priority=90), 9.0)
    assert election.deadline == 9.0 + election.active_down_interval
    assert election.uninformed_for(9.0) == 51.0
    election.inform("linger")
    assert (election.awaited_informers, election.uninformed_for(9.0)) == ({"forward"}, 51.0)
    election.inform("forward")
    assert (election.awaited_informers, election.uninformed_for(9.0)) == (frozenset(), 0.0)
    election.receive(heard(priority=90), 10.0)
    assert election.deadline == 10.0 + election.skew_time
    election.fault(10.1)
    election.recover(11.0)
    assert election.awaited_informers
    election.receive(heard(priority=90), 12.0)
    assert election.deadline == 12.0 + election.active_down_interval


def test_preempts_uninformed_after_a_while():
    """Nobody may ever say so: then it does without."""
    election = backup(terms(informed_within=60.0, informers=frozenset({"linger"})))
    election.receive(heard(priority=90), 59.0)
    assert election.deadline == 59.0 + election.active_down_interval
    election.receive(heard(priority=90), 60.0)
    assert election.deadline == 60.0 + election.skew_time
    assert election.uninformed_for(60.0) == 0.0


def test_claims_uninformed_where_nobody_is_active():
    """An active that dies is succeeded at once, by whoever hears it."""
    election = backup(terms(informed_within=60.0))
    election.receive(heard(priority=90), 9.0)
    tick_at(election)
    assert election.state is RouterState.ACTIVE
    assert election.uninformed_for(9.0) == 0.0


def test_leaves_a_healthy_active_alone_without_preemption():
    """Without preemption a worse active is followed like a better one."""
    election = backup(terms(preempt=False))
    election.receive(heard(priority=90), 1.0)
    assert election.deadline == 1.0 + election.active_down_interval


def test_takes_over_from_a_degraded_active_without_preemption():
    """An active that was better before, and is worse than this router now, is not healthy."""
    election = backup(terms(preempt=False))
    for at, priority in enumerate([150, 120, 90]):
        election.receive(heard(priority=priority), float(at))
    assert election.deadline == 2.0 + election.skew_time


def test_what_an_active_advertised_is_forgotten_with_it():
    """What another active advertised earlier says nothing of this one, nor what it did before it left."""
    election = backup(terms(preempt=False))
    election.receive(heard(priority=150), 0.0)
    election.receive(heard(priority=90, peer="192.0.2.3"), 1.0)
    assert election.deadline == 1.0 + election.active_down_interval
    election.receive(heard(priority=0, peer="192.0.2.9"), 1.1)
    election.receive(heard(priority=0, peer="192.0.2.3"), 1.1)
    election.receive(heard(priority=80, peer="192.0.2.3"), 1.2)
    assert election.deadline == 1.2 + election.active_down_interval


def test_better_active_deals_with_a_worse_one():
    """A Backup that follows a better active does not claim because it hears a third one once."""
    election = backup()
    election.receive(heard(priority=150), 1.0)
    election.receive(heard(priority=90, peer="192.0.2.3"), 1.1)
    assert election.deadline == 1.1 + election.active_down_interval
    election.receive(heard(priority=90, peer="192.0.2.3"), 2.1)
    assert election.deadline == 2.1 + election.skew_time


def test_late_wake_up_proves_nothing():
    """A process that could not run for an interval waits for one more, once."""
    election = backup()
    assert tick_at(election, late=1.5) == []
    assert election.deadline == pytest.approx(3 + 156 / 256 + 2.5)
    assert tick_at(election, late=1.5) == became_active(100, Cause.ACTIVE_DOWN)


def test_postpones_again_after_it_has_heard_the_active():
    """Each wait is postponed once."""
    election = backup()
    tick_at(election, late=1.5)
    election.receive(heard(priority=150), 6.0)
    assert tick_at(election, late=1.5) == []


def test_does_not_claim_while_held():
    """A conflict before the claim puts it off, and every wait that begins meanwhile."""
    election = backup()
    election.hold_claim(20.0)
    assert election.deadline == 20.0
    election.receive(heard(priority=0), 5.0)
    assert election.deadline == 20.0
    election.hold_claim(5.0)
    election.receive(heard(priority=0), 6.0)
    assert election.deadline == 6.0 + election.skew_time


def test_active_is_not_held():
    """A conflict that comes later leaves an active where it is."""
    election = active()
    before = election.deadline
    election.hold_claim(100.0)
    assert election.deadline == before


# Active: RFC 9568 section 6.4.3


def test_advertises_without_drift():
    """The next advertisement counts from when this one was due."""
    election = active()
    first = election.deadline
    assert first is not None
    assert tick_at(election, late=0.4) == [SendAdvert(priority=100)]
    assert election.deadline == first + 1.0


def test_missed_advertisements_are_not_made_up_for():
    """After a long sleep one advertisement goes out, and the next an interval later."""
    election = active()
    first = election.deadline
    assert first is not None
    assert tick_at(election, late=5.0) == [SendAdvert(priority=100)]
    assert election.deadline == first + 6.0


def test_answers_a_leaving_router():
    """Priority 0 of another one is answered at once: Backups must not wait for us in vain."""
    election = active()
    assert election.receive(heard(priority=0), 4.0) == [SendAdvert(priority=100)]
    assert election.deadline == 5.0


def test_wins_a_conflict():
    """A worse active is answered, the addresses are announced again, and it is told once."""
    election = active()
    assert election.receive(heard(priority=90), 4.0) == [
        SendAdvert(priority=100),
        AnnounceAddresses(repeat=5),
        SplitBrain(peer="192.0.2.2", priority=90, winner=True),
    ]


def test_active_that_goes_on_is_always_answered_and_reported_once():
    """Each advertisement is answered; announcements keep a pace, with our own advertisements if need be."""
    election = active(terms(advert=0.1, priority=100))
    start = now_of(election)
    election.receive(heard(priority=90), start)
    assert election.receive(heard(priority=90), start + 0.05) == [SendAdvert(priority=100)]
    assert election.tick(start + 0.15) == [SendAdvert(priority=100)]
    assert election.tick(start + 1.1) == [SendAdvert(priority=100), AnnounceAddresses(repeat=5)]
    assert election.tick(start + 2.0) == [SendAdvert(priority=100)]


def test_another_split_brain_is_reported_again():
    """Another active that comes back after a down interval is reported, and so is a third one."""
    election = active()
    election.receive(heard(priority=90), 4.0)
    assert SplitBrain(peer="192.0.2.3", priority=90, winner=True) in election.receive(
        heard(priority=90, peer="192.0.2.3"), 4.1
    )
    assert SplitBrain(peer="192.0.2.2", priority=90, winner=True) in election.receive(
        heard(priority=90), 10.0
    )


def test_preempted_active_is_no_split_brain():
    """Who was preempted advertises once more: it is answered and announced over, not reported."""
    election = backup()
    election.receive(heard(priority=90), 1.0)
    tick_at(election)
    answer = election.receive(heard(priority=90), now_of(election) + 0.001)
    assert answer == [SendAdvert(priority=100), AnnounceAddresses(repeat=5)]


def test_preempted_active_that_goes_on_is_a_split_brain():
    """One that was preempted and does not hear us is told, though its first words were expected."""
    election = backup()
    election.receive(heard(priority=90), 1.0)
    tick_at(election)
    start = now_of(election)
    effects = [election.receive(heard(priority=90), start + after) for after in (0.5, 1.5, 2.5)]
    told = SplitBrain(peer="192.0.2.2", priority=90, winner=True)
    assert [told in each for each in effects] == [False, True, False]


@pytest.mark.parametrize("listen", [3.7, 10.0])
def test_preemption_at_the_start_is_preemption(listen: float):
    """One that has listened to a worse active preempts it: no death of an active, and no split brain."""
    election = backup(terms(listen=listen))
    for moment in (0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 9.5):
        if moment < listen:
            election.receive(heard(priority=90), moment)
    assert tick_at(election)[-1] == Entered(
        state=RouterState.ACTIVE, previous=RouterState.BACKUP, cause=Cause.PREEMPTED, peer="192.0.2.2"
    )
    assert election.receive(heard(priority=90), now_of(election) + 0.3) == [
        SendAdvert(priority=100),
        AnnounceAddresses(repeat=5),
    ]


def test_worse_active_that_fell_silent_was_not_preempted():
    """Where the claim is put off until the worse active has died, its death is the cause."""
    election = backup()
    election.receive(heard(priority=90), 1.0)
    election.hold_claim(10.0, ClaimHold.TRACKS)
    assert tick_at(election) == became_active(100, Cause.ACTIVE_DOWN, peer="192.0.2.2")


def test_knows_until_when_another_active_is_present():
    """Another active counts as there for a down interval from its last advertisement on."""
    election = backup()
    assert election.other_active_until < 0.0
    election.receive(heard(priority=90), 1.0)
    assert election.other_active_until == 1.0 + election.active_down_interval
    election.fault(1.5)
    election.receive(heard(priority=90), 2.0)
    assert election.other_active_until == 2.0 + election.active_down_interval
    election.receive(heard(priority=0), 2.5)
    assert election.other_active_until < 2.5


@pytest.mark.parametrize("late", [0.001, 1.5])
def test_active_that_a_sync_group_preempted_is_no_split_brain(late: float):
    """A member that follows its group expects the last word of its active as well, however late it comes."""
    election = backup()
    election.receive(heard(priority=90), 1.0)
    election.follow_group(RouterState.ACTIVE, 2.0)
    effects = election.receive(heard(priority=90), 2.0 + late)
    assert effects == [SendAdvert(priority=100), AnnounceAddresses(repeat=5)]


@pytest.mark.parametrize(
    ("peer", "state"), [("192.0.2.2", RouterState.BACKUP), ("192.0.2.0", RouterState.ACTIVE)]
)
def test_equal_priorities_are_decided_by_address(peer: str, state: RouterState):
    """The greater address stays, and both ends call it a split brain: nobody preempts an equal."""
    election = active()
    effects = election.receive(heard(priority=100, peer=peer), 4.0)
    assert election.state is state
    assert effects[0] == SendAdvert(priority=100)
    assert effects[-1] == SplitBrain(peer=peer, priority=100, winner=state is RouterState.ACTIVE)


def test_tie_is_left_to_another_member():
    """In a sync group only one member decides a tie."""
    election = active()
    election.decides_ties = False
    assert election.receive(heard(priority=100), 4.0) == []
    assert election.state is RouterState.ACTIVE


def test_learns_from_whom_it_gives_way_to():
    """The winner's interval counts from the first moment on."""
    election = active()
    election.receive(heard(priority=150, interval=0.5), 4.0)
    assert (election.active_interval, election.deadline) == (0.5, 4.0 + election.active_down_interval)


# Weights


def test_new_priority_is_advertised_at_once():
    """A Backup that is better now need not wait for the next advertisement; the same one is not sent."""
    election = active()
    assert election.set_priority(90, 4.0) == [SendAdvert(priority=90)]
    assert election.set_priority(90, 4.1) == []
    assert sent(tick_at(election)) == [90]


def test_new_priority_of_a_backup_counts_from_the_next_wait():
    """Nothing is sent by a Backup."""
    election = backup()
    assert election.set_priority(150, 1.0) == []
    election.receive(heard(priority=120), 1.0)
    assert election.deadline == 1.0 + 106 / 256


def offering(*, at: float = 10.0) -> Election:
    """Return an active that must not be preempted and has just offered itself after its priority fell."""
    election = active(terms(preempt=False))
    election.set_priority(80, at)
    while sent(tick_at(election)) != [0]:
        assert election.deadline is not None
        assert election.deadline < at + 5
    return election


def test_degraded_active_offers_itself_once():
    """An active that falls and that nobody takes over from sends priority 0 once, and keeps the addresses."""
    election = offering()
    now = election.deadline
    assert now is not None
    assert election.state is RouterState.ACTIVE
    assert sent(tick_at(election)) == [80]
    assert all(sent(tick_at(election)) == [80] for _ in range(20))


@pytest.mark.parametrize(("other", "offers"), [(70, False), (90, True)])
def test_an_active_offers_nothing_to_who_is_worse(other: int, *, offers: bool):
    """Another active that is worse than the fallen priority gets no offer."""
    election = backup(terms(preempt=False))
    election.receive(heard(priority=other), 0.5)
    tick_at(election)
    now = now_of(election)
    election.set_priority(80, now)
    priorities = [sent(tick_at(election)) for _ in range(10)]
    assert ([0] in priorities) is offers


def test_worse_router_that_takes_an_offer_is_answered():
    """Nothing is lost where nobody is better, and it is no split brain."""
    election = offering()
    assert election.deadline is not None
    answer = election.receive(heard(priority=70), election.deadline - 1.5)
    assert answer == [SendAdvert(priority=80), AnnounceAddresses(repeat=5)]


def test_offer_is_cancelled_when_the_priority_is_back():
    """An active that is wholly well again within the down interval offers nothing."""
    election = active(terms(preempt=False))
    election.set_priority(80, 4.0)
    election.set_priority(90, 4.1)
    election.set_priority(100, 4.2)
    assert all(sent(tick_at(election)) == [100] for _ in range(20))


def test_preempting_active_offers_nothing():
    """Where preemption is on, a better router comes by itself."""
    election = active()
    election.set_priority(80, 4.0)
    assert all(sent(tick_at(election)) == [80] for _ in range(20))


# Fault


def test_fault_leaves_at_once():
    """A faulty active tells the Backup and drops the addresses."""
    election = active()
    assert election.fault(5.0) == [
        SendAdvert(priority=0),
        ReleaseAddresses(),
        Entered(state=RouterState.FAULT, previous=RouterState.ACTIVE, cause=Cause.FAULT, peer=None),
    ]
    assert (election.deadline, election.fault(6.0)) == (None, [])


def test_recovers_into_backup():
    """A recovered router waits for a down interval; one that has no fault has nothing to recover from."""
    election = backup()
    assert election.recover(0.5) == []
    election.fault(1.0)
    assert election.recover(2.0) == [
        Entered(state=RouterState.BACKUP, previous=RouterState.FAULT, cause=Cause.RECOVERED, peer=None)
    ]
    assert election.deadline == 2.0 + election.active_down_interval


# Leaving


def stopped(previous: RouterState, peer: str | None = None) -> list[Effect]:
    """Return the end of a stop."""
    return [
        Entered(state=RouterState.INITIALIZE, previous=previous, cause=Cause.STOPPED, peer=peer),
        Left(),
    ]


def test_who_holds_nothing_leaves_at_once():
    """A Backup, a faulty router and one that never started wait for no successor."""
    assert backup().stop(1.0) == stopped(RouterState.BACKUP)
    faulty = backup()
    faulty.fault(1.0)
    assert faulty.stop(2.0) == stopped(RouterState.FAULT)
    assert Election(terms()).stop(0.0) == [Left()]


def test_leaves_alone_when_the_time_is_up():
    """With no successor the addresses go after `hand_over`, with one more priority 0 at half time."""
    election = active(terms(hand_over=4.0))
    election.stop(10.0)
    assert election.handing_over
    assert election.tick(11.9) == []
    assert election.tick(12.0) == [SendAdvert(priority=0)]
    assert election.stop(12.5) == []
    assert election.tick(14.0) == [ReleaseAddresses(), *stopped(RouterState.ACTIVE)]
    assert not election.handing_over


def test_does_not_repeat_what_is_over():
    """A wake-up after the end releases and says nothing."""
    election = active(terms(hand_over=4.0))
    election.stop(10.0)
    assert election.tick(20.0) == [ReleaseAddresses(), *stopped(RouterState.ACTIVE)]


def test_moves_to_a_successor():
    """A planned hand-over ends in Backup, and a worse active is left alone until it is reclaimed."""
    election = active()
    assert election.move(10.0) == [SendAdvert(priority=0)]
    assert election.move(10.1) == []
    election.receive(heard(priority=90), 10.6)
    election.receive(heard(priority=90), 10.62)
    assert tick_at(election) == [
        ReleaseAddresses(),
        Entered(
            state=RouterState.BACKUP, previous=RouterState.ACTIVE, cause=Cause.HANDED_OVER, peer="192.0.2.2"
        ),
        HandOverEnded(successor="192.0.2.2"),
    ]
    assert now_of(election) == pytest.approx(10.63)
    assert (election.yielded, election.handing_over) == (True, False)
    election.receive(heard(priority=90), 11.6)
    assert election.deadline == 11.6 + election.active_down_interval
    assert election.reclaim(12.0) == []
    election.receive(heard(priority=90), 12.6)
    assert election.deadline == 12.6 + election.skew_time


def test_moved_away_ends_when_the_active_is_gone():
    """A router that has to take over again is not moved away any more."""
    election = active()
    election.move(10.0)
    election.receive(heard(priority=90), 10.6)
    tick_at(election)
    tick_at(election)
    assert (election.state, election.yielded) == (RouterState.ACTIVE, False)


def test_move_to_nobody_stays():
    """With no successor the addresses stay, and the Backups hear of it."""
    election = active()
    election.move(10.0)
    assert election.tick(11.5) == [SendAdvert(priority=0)]
    assert election.tick(13.0) == [SendAdvert(priority=100), HandOverEnded(successor=None)]
    assert (election.state, election.deadline) == (RouterState.ACTIVE, 14.0)


def test_nothing_to_move():
    """Who holds nothing has nothing to hand over."""
    assert backup().move(1.0) == [HandOverEnded(successor=None)]


def test_stop_overtakes_a_move():
    """A router that is stopped while it hands over leaves by the same successor, and the move has ended."""
    election = active()
    election.move(10.0)
    election.receive(heard(priority=90), 10.6)
    assert election.stop(10.61) == [HandOverEnded(successor="192.0.2.2")]
    assert tick_at(election) == [ReleaseAddresses(), *stopped(RouterState.ACTIVE, "192.0.2.2")]


def test_successor_that_leaves_is_none():
    """When the successor goes again before the addresses went, they wait for another one."""
    election = active()
    election.move(10.0)
    election.receive(heard(priority=90), 10.6)
    election.receive(heard(priority=0), 10.61)
    assert election.tick(10.63) == []
    election.receive(heard(priority=80, peer="192.0.2.3"), 11.0)
    assert tick_at(election)[-1] == HandOverEnded(successor="192.0.2.3")


def test_fault_ends_a_hand_over():
    """A fault while handing over drops the addresses at once, and ends the hand-over."""
    election = active()
    election.stop(10.0)
    assert election.fault(10.1) == [SendAdvert(priority=0), ReleaseAddresses(), *stopped(RouterState.ACTIVE)]
    election = active()
    election.move(10.0)
    assert election.fault(10.1)[-1] == HandOverEnded(successor=None)
    assert election.state is RouterState.FAULT


def test_weight_while_leaving_is_not_advertised():
    """An advertisement would put the successor off."""
    election = active()
    election.stop(10.0)
    assert election.set_priority(50, 10.1) == []
    assert election.priority == 50


# Reload


def test_reload_with_the_same_interval_moves_no_deadline():
    """What does not change leaves the timers alone."""
    election = backup()
    before = election.deadline
    election.change_settings(terms(preempt=False), 2.0)
    assert election.deadline == before
    election.receive(heard(priority=90), 2.5)
    assert election.deadline == 2.5 + election.active_down_interval


def test_reload_of_the_interval():
    """An active advertises in the new interval at once; a Backup that knows of no active waits anew."""
    election = active()
    election.change_settings(terms(advert=0.1), 4.0)
    assert election.deadline == 4.1
    election = backup()
    election.change_settings(terms(advert=0.1), 1.0)
    assert election.deadline == pytest.approx(1.3 + 0.1 * 156 / 256)


def test_reload_keeps_the_learned_interval():
    """A Backup in version 3 goes by the active's interval, whatever its own is."""
    election = backup()
    election.receive(heard(priority=150, interval=2.0), 1.0)
    before = election.deadline
    election.change_settings(terms(advert=0.1), 1.5)
    assert (election.active_interval, election.deadline) == (2.0, before)


def test_reload_of_who_waits_for_nothing():
    """A faulty router has no timer to change, and a leaving one keeps its end."""
    election = backup()
    election.fault(1.0)
    election.change_settings(terms(advert=0.1), 2.0)
    assert election.deadline is None
    election = active()
    election.stop(10.0)
    election.change_settings(terms(advert=0.1), 10.1)
    assert election.deadline == 11.5


# What a sync group makes of it


def test_follows_its_group():
    """A member enters what the group has entered, unless it is there already, or leaves."""
    election = backup()
    assert election.follow_group(RouterState.BACKUP, 1.0) == []
    assert election.follow_group(RouterState.ACTIVE, 1.0) == became_active(100, Cause.GROUP)
    assert election.follow_group(RouterState.BACKUP, 2.0) == [
        SendAdvert(priority=100),
        ReleaseAddresses(),
        Entered(state=RouterState.BACKUP, previous=RouterState.ACTIVE, cause=Cause.GROUP, peer=None),
    ]
    assert election.follow_group(RouterState.FAULT, 3.0) == [
        Entered(state=RouterState.FAULT, previous=RouterState.BACKUP, cause=Cause.GROUP, peer=None)
    ]
    assert election.follow_group(RouterState.BACKUP, 4.0) == [
        Entered(state=RouterState.BACKUP, previous=RouterState.FAULT, cause=Cause.GROUP, peer=None)
    ]
    leaving = active()
    leaving.stop(5.0)
    assert leaving.follow_group(RouterState.BACKUP, 5.1) == []


def test_releases_with_its_group():
    """A member that has a successor waits for the others' ones; one that stays has nothing to release."""
    election = active()
    assert not election.has_successor
    election.stop(10.0)
    election.receive(heard(priority=90), 10.6)
    assert election.has_successor
    election.release_with_group(SuccessorsHeard.PARTIAL, 10.6)
    assert election.deadline == 13.0
    election.release_with_group(SuccessorsHeard.COMPLETE, 11.0)
    election.release_with_group(SuccessorsHeard.COMPLETE, 11.01)
    assert election.deadline == pytest.approx(11.03)
    other = active()
    before = other.deadline
    other.release_with_group(SuccessorsHeard.COMPLETE, 20.0)
    assert other.deadline == before


def test_listens_after_the_fault_of_its_start():
    """One that starts with a fault listens as long as configured when it ends, and only that time."""
    election = Election(terms(listen=10.0))
    election.fault(0.0)
    election.recover(5.0)
    assert election.deadline == 15.0
    election.fault(20.0)
    election.recover(30.0)
    assert election.deadline == 33 + 156 / 256


def test_fault_does_not_shorten_listening():
    """One that is in fault for a moment of its start listens as long as it would have."""
    election = backup(terms(listen=10.0))
    election.fault(1.0)
    election.recover(2.0)
    assert election.deadline == 10.0


def test_one_that_went_on_as_active_has_listened():
    """After the fault of one that was active from its start it waits as anybody does."""
    election = Election(terms(listen=10.0))
    election.resume(0.0)
    election.fault(20.0)
    election.recover(30.0)
    assert election.deadline == 33 + 156 / 256


def test_a_flood_of_worse_actives_is_answered_at_a_pace():
    """Each is heard, but ten answers in an interval have to do for all, and none is forgotten."""
    election = active(priority=150)
    begun, answers = 100.0, 0
    for number in range(3000):
        effects = election.receive(
            heard(priority=100, peer=f"198.51.100.{number % 250}"), begun + number / 3000
        )
        answers += effects.count(SendAdvert(priority=150))
    assert answers == 10
    assert election.deadline is not None
    assert election.deadline <= begun + 1.0 + 0.1


def test_a_flood_of_leaving_routers_is_answered_at_a_pace():
    """Priority 0 is answered at once, and the next one a little later, not a thousand times."""
    election = active(priority=150)
    priorities = [election.receive(heard(priority=0), 100.0 + number / 3000) for number in range(3000)]
    assert sum(effects == [SendAdvert(priority=150)] for effects in priorities) == 10


def test_knows_the_active_that_it_hears():
    """A Backup knows who is active; after its own claim it is nobody else."""
    election = backup()
    election.receive(heard(priority=150), 1.0)
    assert election.peer == "192.0.2.2"
    tick_at(election)
    assert election.peer is None


def test_what_an_earlier_run_yielded_is_not_preempted():
    """A router that takes the place of one whose addresses were moved away leaves a worse active alone."""
    election = backup()
    election.yielded = True
    election.receive(heard(priority=90), 1.0)
    assert election.deadline == 1.0 + election.active_down_interval
