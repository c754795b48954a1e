"""The time of a check: its end comes once, and time that the process was not running is given back once."""

import time
from typing import Final

import gevent
import pytest

from appliance.net.probing.deadline import Deadline, OutOfTime

pytestmark = pytest.mark.sockets

LATE: Final = 1.0
"""Seconds by which a machine under load may be late."""


def lasts(deadline: Deadline, *, standing: float = 0.0, times: int = 1, connected: bool = True) -> float:
    """Return after how long the deadline ends a wait; the process stands still meanwhile, so many times."""
    started = time.monotonic()
    with deadline:
        if connected:
            deadline.connected()
        with pytest.raises(OutOfTime):
            _stand(standing, times)
    return time.monotonic() - started


def _stand(seconds: float, times: int) -> None:
    for _ in range(times):
        gevent.sleep(0.01)
        time.sleep(seconds)
    gevent.sleep(60.0)


def test_the_whole_time_ends_a_check():
    """Neither earlier nor much later."""
    assert 0.3 <= lasts(Deadline(connect=9.0, whole=0.3)) < 0.3 + LATE


def test_connecting_has_a_time_of_its_own():
    """Without a connection the check ends then, with one the rest of the whole time is left."""
    assert 0.2 <= lasts(Deadline(connect=0.2, whole=9.0), connected=False) < 0.2 + LATE
    assert 0.8 <= lasts(Deadline(connect=0.2, whole=0.8)) < 0.8 + LATE


def test_time_in_which_the_process_stood_still_is_given_back_once():
    """A machine that was busy takes no server down, and does not keep a check for ever either."""
    stood = lasts(Deadline(connect=9.0, whole=0.4), standing=0.8)
    assert 0.8 + 0.4 <= stood < 0.8 + 0.4 + LATE
    again = lasts(Deadline(connect=9.0, whole=0.4), standing=0.8, times=3)
    assert again < 3 * 0.82 + LATE


def test_a_check_that_ended_is_not_ended_again():
    """After the block nothing is thrown any more."""
    with Deadline(connect=0.05, whole=0.05):
        pass
    gevent.sleep(0.1)


def test_no_time_at_all_ends_a_check_at_once():
    """What was used up before is not there: a wait for a name, say."""
    assert lasts(Deadline(connect=1.0, whole=-1.0)) < LATE
