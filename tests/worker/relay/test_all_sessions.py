"""The sweeps over the sessions of a worker."""

import time
from collections.abc import Callable

import pytest
from support.processes.waiting import wait_until

from appliance.model.end_reasons import EndReason
from appliance.worker.relay.all_sessions import Traffic

pytestmark = [pytest.mark.sockets, pytest.mark.data_path]


class Examined:
    """A connection that counts how often it was examined, and would end in an hour, or at `due`."""

    def __init__(self, traffic: Traffic, due: float = 3600.0) -> None:
        self.traffic, self.due, self.times = traffic, time.monotonic() + due, 0

    def expire(self, now: float) -> None:
        """Count it."""
        del now
        self.times += 1
        self.traffic.first_due = min(self.traffic.first_due, self.due)

    def end(self, reason: EndReason) -> None:
        """Do nothing."""


def traffic_of(*dues: float) -> tuple[Traffic, list[Examined]]:
    """Return the traffic of connections that end after these seconds, examined once."""
    traffic = Traffic(descriptors=1000, fault=lambda _: None, accept_failed=lambda _: None)
    live = [Examined(traffic, each) for each in dues]
    traffic.live.update(live)
    traffic.tick()
    assert [each.times for each in live] == [1] * len(live)
    return traffic, live


def ticking(traffic: Traffic, condition: Callable[[], bool]) -> Callable[[], bool]:
    """Return a condition that ticks before it looks."""

    def look() -> bool:
        traffic.tick()
        return condition()

    return look


@pytest.mark.slow("a sweep is due after a second")
def test_while_nothing_happens_nobody_is_examined_before_the_first_deadline():
    """The first one that would end decides for all; an event makes the sweeps those of every second again."""
    traffic, (first, other) = traffic_of(2.0, 3600.0)
    begun = time.monotonic()
    wait_until(ticking(traffic, lambda: first.times > 1), what="the first deadline", timeout=10)
    assert time.monotonic() - begun >= 1.9, "not after a second, as when something happens"
    assert other.times == first.times
    traffic.close()


@pytest.mark.slow("a sweep is due after a second")
def test_after_an_event_all_are_examined_within_a_second():
    """What has moved is counted, and its deadlines are others."""
    traffic, (one,) = traffic_of(3600.0)
    traffic.poller.events += 1
    wait_until(ticking(traffic, lambda: one.times == 2), what="it is examined again", timeout=5)
    traffic.close()
