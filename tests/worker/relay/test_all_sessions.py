"""The sweeps over the sessions of a worker, and its loop."""

import os
import threading
import time
from collections.abc import Callable

import gevent
import pytest
from gevent import socket
from support.processes.waiting import wait_until

from appliance.model.end_reasons import EndReason
from appliance.net.loop.turns import SLICE
from appliance.worker.relay import all_sessions
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


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[Traffic], None]], int]:
    """Return what runs a greenlet in a worker's loop, whose ticks are seconds apart, and counts the ticks."""
    monkeypatch.setattr(all_sessions, "TICK", 5.0)

    def run(work: Callable[[Traffic], None]) -> int:
        traffic, _ = traffic_of()
        count = 0

        def on_tick() -> None:
            nonlocal count
            count += 1

        greenlet = gevent.spawn(work, traffic)
        traffic.run_until(lambda: greenlet.dead, on_tick=on_tick)
        greenlet.get()
        traffic.close()
        return count

    return run


def test_a_rest_ends_in_time_whatever_else_happens(ticks: Callable[[Callable[[Traffic], None]], int]):
    """An event before its end, as there is one while sessions move, does not make it wait for a tick."""

    def work(traffic: Traffic) -> None:
        here, there = socket.socketpair()
        with here, there:
            reading = gevent.spawn(there.recv, 1)
            threading.Timer(0.01, os.write, (here.fileno(), b"x")).start()
            traffic.rest(0.1)
            reading.get()

    assert ticks(work) == 1


def test_what_is_cut_short_continues_at_once(ticks: Callable[[Callable[[Traffic], None]], int]):
    """More than a slice of work in small pieces, none of which waits for an event, needs no tick."""

    def work(traffic: Traffic) -> None:
        del traffic
        until = time.monotonic() + 10 * SLICE
        while time.monotonic() < until:
            gevent.sleep(0)

    assert ticks(work) == 1
