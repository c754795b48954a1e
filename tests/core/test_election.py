"""One election, event by event, with literal times: RFC 9568 section 6.4 and what operators add to it."""

import pytest
from support.elections import became_active, heard, terms, tick_at

from appliance.core.election import (
    Cause,
    Election,
    Entered,
    Left,
    ReleaseAddresses,
    SendAdvert,
    State,
    Terms,
)

pytestmark = pytest.mark.pure


def backup(settings: Terms | None = None, *, priority: int | None = None) -> Election:
    """Return a machine that started at 0."""
    election = Election(settings or terms(), priority=priority)
    election.start(0.0)
    return election


def active(settings: Terms | None = None, *, priority: int | None = None) -> Election:
    """Return a machine that became active at its first deadline, 3.609375 s for priority 100."""
    election = backup(settings, priority=priority)
    tick_at(election)
    assert election.state is State.ACTIVE
    return election


def now_of(election: Election) -> float:
    """Return when the machine entered its state."""
    assert election.since is not None
    return election.since


def test_starts_as_backup_for_a_down_interval():
    """A started router listens for three intervals and its skew, and then claims."""
    election = Election(terms())
    assert election.start(0.0) == [
        Entered(state=State.BACKUP, previous=State.INITIALIZE, cause=Cause.STARTED, peer=None)
    ]
    assert election.deadline == 3 + 156 / 256
    assert election.tick(3.6) == []
    assert election.tick(3.61) == became_active(100, Cause.ACTIVE_DOWN)


def test_addresses_come_before_the_advertisement():
    """What is advertised is held already: take, advertise, announce, and then the word of it."""
    kinds = [type(effect).__name__ for effect in tick_at(backup())]
    assert kinds == ["TakeAddresses", "SendAdvert", "Announce", "Entered"]


def test_hears_the_active_and_waits():
    """A better active puts the claim off by a down interval."""
    election = backup()
    assert election.hear(heard(priority=150), 1.0) == []
    assert election.deadline == 1 + election.down_interval


def test_gives_way_to_a_higher_priority():
    """An active that hears a better one drops the addresses first."""
    election = active()
    assert election.hear(heard(priority=101), 4.0) == [
        ReleaseAddresses(),
        Entered(state=State.BACKUP, previous=State.ACTIVE, cause=Cause.HIGHER_PRIORITY, peer="192.0.2.2"),
    ]


def test_leaves_when_a_successor_is_heard():
    """Stop says priority 0, holds on until a successor advertises and a moment more, and is gone."""
    election = active()
    assert election.leave(10.0) == [SendAdvert(priority=0)]
    assert election.hear(heard(priority=90), 10.6) == []
    assert election.deadline == pytest.approx(10.63)
    assert election.tick(10.63) == [
        ReleaseAddresses(),
        Entered(state=State.INITIALIZE, previous=State.ACTIVE, cause=Cause.STOPPED, peer="192.0.2.2"),
        Left(),
    ]
