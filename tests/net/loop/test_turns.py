"""Turns of greenlets: what never waits lets the others run."""

import time

import gevent
import pytest
from gevent import socket

from appliance.net.loop.turns import Turns, until_next

pytestmark = pytest.mark.sockets


def work(seconds: float) -> None:
    """Use the processor."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        pass


def test_a_socket_that_is_always_ready_lets_timers_and_other_sockets_run():
    """Two greenlets that never block share the loop with a timer, and with a socket that gets a byte."""
    ours, theirs = socket.socketpair()
    rounds, heard = [0, 0], list[int]()

    def busy(index: int) -> None:
        turns = shared
        while True:
            work(0.0002)
            rounds[index] += 1
            turns.give()

    def listen() -> None:
        while ours.recv(1):
            heard.append(sum(rounds))

    shared = Turns()
    greenlets = [gevent.spawn(busy, 0), gevent.spawn(busy, 1), gevent.spawn(listen)]
    with gevent.Timeout(20):
        for _ in range(20):
            theirs.send(b"x")
            gevent.sleep(0.001)
    gevent.killall(greenlets)
    ours.close()
    theirs.close()
    assert len(heard) >= 19
    assert min(rounds) > 10


def test_who_waits_for_the_loop_does_not_rest_besides():
    """A greenlet that blocks by itself, however long it has worked in all, is never made to wait."""
    rests: list[float] = []

    def rest(seconds: float) -> None:
        rests.append(seconds)
        gevent.sleep(seconds)

    turns = Turns(rest)
    for _ in range(5):
        turns.give()
        work(0.003)
        gevent.sleep(0.001)
    assert rests == []
    turns.give()
    work(0.003)
    turns.give()
    assert len(rests) == 1


@pytest.mark.parametrize(("now", "seconds"), [(100.25, 0.75), (100.9, 0.1), (101.0, 1.0)])
def test_what_is_due_as_often_is_due_together(monkeypatch: pytest.MonkeyPatch, now: float, seconds: float):
    """It is due when the clock is a multiple, however late the last time was."""
    monkeypatch.setattr(time, "monotonic", lambda: now)
    assert until_next(1.0) == pytest.approx(seconds)
