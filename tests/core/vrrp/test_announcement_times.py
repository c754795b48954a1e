"""The announcements that follow an AnnounceAddresses effect, with literal times."""

from dataclasses import replace

import pytest
from support.vrrp.elections import ANNOUNCE

from appliance.core.vrrp.announcement_times import FIRST_REPEAT, AnnouncementTimes
from appliance.model.snapshot.virtual_router import AnnounceSettings

pytestmark = pytest.mark.pure


def due_times(announcing: AnnouncementTimes, *, until: float) -> list[tuple[float, int]]:
    """Return what is due at each deadline up to a time."""
    found = []
    while announcing.deadline is not None and announcing.deadline <= until:
        at = announcing.deadline
        found.append((at, announcing.due(at)))
    return found


def planned(settings: AnnounceSettings = ANNOUNCE) -> AnnouncementTimes:
    """Return a schedule that began at 0."""
    announcing = AnnouncementTimes(settings)
    announcing.plan(0.0)
    return announcing


def test_nothing_to_announce_before_it_begins():
    """A Backup announces nothing."""
    announcing = AnnouncementTimes(ANNOUNCE)
    assert (announcing.deadline, announcing.due(100.0)) == (None, 0)


def test_what_was_not_announced_is_refreshed():
    """Nothing follows an announcement that there was not but the refresh."""
    announcing = AnnouncementTimes(replace(ANNOUNCE, refresh=60.0))
    announcing.plan_refresh(0.0)
    assert [at for at, _ in due_times(announcing, until=120.0)] == [60.0, 120.0]
    announcing = AnnouncementTimes(replace(ANNOUNCE, refresh=0.0))
    announcing.plan_refresh(0.0)
    assert announcing.deadline is None


def test_once_more_and_again_after_the_delay():
    """After the effect's five come one more an instant later and, as in keepalived, five after 5 s."""
    assert due_times(planned(), until=1000.0) == [(FIRST_REPEAT, 1), (5.0, 5)]


def test_no_delay_is_no_second_round():
    """A delay of 0 leaves out the second round, as in keepalived."""
    assert due_times(planned(replace(ANNOUNCE, delay=0.0)), until=1000.0) == [(FIRST_REPEAT, 1)]


def test_refreshes_for_ever():
    """With refresh the addresses are announced in that interval as long as they are here."""
    announcing = planned(replace(ANNOUNCE, delay=0.0, refresh=60.0, refresh_repeat=2))
    assert due_times(announcing, until=200.0)[1:] == [(60.0, 2), (120.0, 2), (180.0, 2)]


def test_late_refreshes_are_not_made_up_for():
    """After a long sleep one refresh is enough."""
    announcing = planned(replace(ANNOUNCE, delay=0.0, refresh=10.0))
    assert announcing.due(95.0) == 1
    assert announcing.deadline == 105.0


def test_ends_with_the_addresses():
    """Nothing is announced that is not held."""
    announcing = planned(replace(ANNOUNCE, refresh=60.0))
    announcing.cancel()
    assert (announcing.deadline, announcing.due(100.0)) == (None, 0)


def test_takes_another_refresh_while_active():
    """A reload can switch the refresh on and off."""
    announcing = planned()
    announcing.change_settings(replace(ANNOUNCE, refresh=60.0), 100.0)
    announcing.due(100.0)
    assert announcing.deadline == 160.0
    announcing.change_settings(ANNOUNCE, 170.0)
    assert announcing.deadline is None
    announcing.change_settings(replace(ANNOUNCE, refresh=60.0), 170.0)
    assert announcing.deadline == 230.0


def test_takes_other_settings_as_backup():
    """A reload leaves a Backup silent, and other settings than the refresh leave it as it was planned."""
    announcing = AnnouncementTimes(ANNOUNCE)
    announcing.change_settings(replace(ANNOUNCE, refresh=60.0), 100.0)
    assert announcing.deadline is None
    announcing.plan(110.0)
    announcing.change_settings(replace(ANNOUNCE, refresh=60.0, repeat=3), 120.0)
    assert due_times(announcing, until=170.0) == [(110.0 + FIRST_REPEAT, 1), (115.0, 3), (170.0, 1)]
