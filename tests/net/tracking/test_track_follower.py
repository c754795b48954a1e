"""A track is looked at again and again, and what is new is said once."""

import time
from collections.abc import Callable, Iterator

import gevent
import pytest
from support.processes.greenlets import until
from support.vrrp.tracks import track

from appliance.model.snapshot.virtual_router import Track
from appliance.net.tracking.track_check import LookResult, TrackUnknown
from appliance.net.tracking.track_follower import TrackFollower

pytestmark = pytest.mark.sockets

GOOD = LookResult(up=True, detail="fine")
BAD = LookResult(up=False, detail="broken")


class Fake:
    """A thing to be tracked that the test gives its state, or its trouble."""

    def __init__(self, seen: LookResult | Exception) -> None:
        self.seen = seen
        self.looks = 0
        self.closed = False
        self.hang = 0.0

    def look(self) -> LookResult:
        """Return the state."""
        self.looks += 1
        gevent.sleep(self.hang)
        if isinstance(self.seen, Exception):
            raise self.seen
        return self.seen

    def wait(self, seconds: float) -> None:
        """Wait."""
        gevent.sleep(seconds)

    def close(self) -> None:
        """Note it."""
        self.closed = True


class Followed:
    """A follower of a fake, and what it has said."""

    def __init__(self, seen: LookResult | Exception, subject: Track) -> None:
        self.check = Fake(seen)
        self.said: list[tuple[bool, int, str]] = []
        self.bugs: list[Exception] = []
        self.follower = TrackFollower(
            subject, self.check, on_change=self._note, on_bug=lambda _, error: self.bugs.append(error)
        )

    def _note(self, follower: TrackFollower) -> None:
        state = follower.state
        assert state is not None
        assert state.at <= time.monotonic()
        self.said.append((state.up, state.value, state.detail))

    def looked(self, times: int) -> None:
        """Wait for as many looks more."""
        wanted = self.check.looks + times + 1
        until(lambda: self.check.looks >= wanted, what=f"{times} looks")


Follow = Callable[..., Followed]


@pytest.fixture
def follow() -> Iterator[Follow]:
    """Follow a fake that begins with a state, in a hundredth of the usual interval."""
    made: list[Followed] = []

    def make(seen: LookResult | Exception, **changes: object) -> Followed:
        made.append(Followed(seen, track(**{"interval": 0.01, "timeout": 0.01, **changes})))
        return made[-1]

    yield make
    for each in made:
        each.follower.close()


def test_the_first_look_is_at_once_and_decides(follow: Follow):
    """A start need not wait for an interval, nor for `rise` looks."""
    followed = follow(GOOD, interval=600.0, rise=5)
    until(lambda: followed.said, what="a verdict")
    assert followed.said == [(True, 0, "fine")]


def test_what_stays_is_said_once(follow: Follow):
    """Only news are said."""
    followed = follow(GOOD)
    followed.looked(5)
    assert followed.said == [(True, 0, "fine")]


def test_a_verdict_falls_and_rises_by_count(follow: Follow):
    """Until then the detail says how far it has come."""
    followed = follow(GOOD, rise=2, fall=3)
    followed.looked(1)
    followed.check.seen = BAD
    until(lambda: (False, 0, "broken") in followed.said, what="down")
    followed.check.seen = GOOD
    until(lambda: followed.said[-1] == (True, 0, "fine"), what="up")
    assert followed.said == [
        (True, 0, "fine"),
        (True, 0, "1 of 3 bad: broken"),
        (True, 0, "2 of 3 bad: broken"),
        (False, 0, "broken"),
        (False, 0, "1 of 2 good: fine"),
        (True, 0, "fine"),
    ]


def test_a_value_is_news(follow: Follow):
    """The number of a file counts at once."""
    followed = follow(GOOD, fall=3)
    followed.looked(1)
    followed.check.seen = LookResult(up=True, value=7, detail="fine")
    until(lambda: followed.said[-1] == (True, 7, "fine"), what="the value")


def test_a_number_stays_until_the_verdict_falls(follow: Follow):
    """A look that fails has no number: that is not 0 before the failures are enough."""
    followed = follow(LookResult(up=True, value=7, detail="fine"), fall=3)
    followed.looked(1)
    followed.check.seen = BAD
    until(lambda: not followed.said[-1][0], what="down")
    assert [(up, value) for up, value, _ in followed.said] == [(True, 7)] * 3 + [(False, 0)]


def test_what_cannot_be_looked_at_stays_as_it_was(follow: Follow):
    """This machine's trouble is no verdict, unless there has never been one."""
    followed = follow(GOOD)
    followed.looked(1)
    followed.check.seen = TrackUnknown("no descriptors")
    followed.looked(3)
    assert followed.said == [(True, 0, "fine")]
    blind = follow(TrackUnknown("no descriptors"))
    blind.looked(3)
    assert blind.said == [(False, 0, "no descriptors")]


def test_a_bug_is_down_and_is_told(follow: Follow):
    """A verdict that nobody keeps true is not left state, and the next look may be better."""
    followed = follow(GOOD)
    followed.looked(1)
    followed.check.seen = KeyError("x")
    until(lambda: followed.bugs, what="the bug")
    until(lambda: followed.said[-1] == (False, 0, "KeyError: 'x'"), what="down")
    followed.check.seen = GOOD
    until(lambda: followed.said[-1] == (True, 0, "fine"), what="up again")


def test_a_look_longer_than_the_interval_does_not_pile_up(follow: Follow):
    """One after the other, never two."""
    followed = follow(GOOD)
    followed.check.hang = 0.05
    started, before = time.monotonic(), followed.check.looks
    followed.looked(3)
    assert followed.check.looks - before <= (time.monotonic() - started) / 0.05 + 2


def test_a_track_that_hangs_holds_up_no_other(follow: Follow):
    """Each has its own greenlet."""
    stuck, free = follow(GOOD), follow(GOOD)
    stuck.check.hang = 600.0
    free.looked(5)
    assert stuck.check.looks <= free.check.looks


def test_closing_ends_the_looks(follow: Follow):
    """The check gives everything back."""
    followed = follow(GOOD)
    followed.looked(1)
    followed.follower.close()
    assert followed.check.closed
    gevent.sleep(0)
    looks = followed.check.looks
    gevent.sleep(0.05)
    assert followed.check.looks == looks
