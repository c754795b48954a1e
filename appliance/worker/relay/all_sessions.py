"""What all sessions of a worker share: the clock, the sweep for timeouts, the pipes and the counters.

No session has a timer: a libev timer costs memory, and every read would have to restart it. Instead the
worker ticks a few times a second. Sessions in a phase that ends soon (connecting, queued, half-closed) are
examined on each tick, the others once a second, in slices, and while nothing happens at any of them not
before the first deadline.

The clock is read once a tick, not for each read and write: timeouts of sessions are as exact as a tick.
"""

import math
import os
import resource
import time
from collections.abc import Callable
from typing import Final, Protocol

import gevent

from appliance.core.balancing.pool_member import PoolMember
from appliance.core.balancing.pool_queue import Waiter
from appliance.core.balancing.worker_shares import pipe_limit, session_limit
from appliance.model.end_reasons import EndReason
from appliance.worker.relay.dozing import LONGEST, Dozing
from appliance.worker.relay.hub_visit import HubVisit
from appliance.worker.relay.pipes import Pipes
from appliance.worker.relay.poller import Poller
from appliance.worker.relay.raw_io import Transfer

TICK: Final = 0.05
"""Seconds between ticks: how exactly connect, queue and fin timeouts are kept."""

HUB_TICKS: Final = 4
"""Ticks between two checks of gevent's timers, while nothing else happens in its loop. Such a check takes
many times as long as the rest of a tick, and the traffic waits meanwhile.
"""

_HUB_LIVELY: Final = 1.0
"""Seconds after activity in gevent's loop in which it checks its timers on each tick."""

_SWEEP_EVERY: Final = 1.0
"""Seconds between two sweeps over all sessions."""

_SWEEP_AT_LEAST: Final = 60.0
"""Seconds between two sweeps while nothing happens."""

_SLICE: Final = 500
"""Sessions examined in one tick of a sweep, so that the traffic does not wait for tens of thousands."""


class Expiring(Protocol):
    """A connection of a worker: a session, or one that the worker answers itself."""

    def expire(self, now: float) -> None:
        """End it, or its wait, if `now` is past its deadline."""
        ...

    def end(self, reason: EndReason) -> None:
        """End it now."""
        ...


class Resting(Protocol):
    """A side of a session that tries again at the next tick."""

    def resume(self) -> None:
        """Try again."""
        ...


class Traffic:
    """The connections of a worker. `limit` of them fit the process's descriptors.

    `live` are all, `every_tick` those examined on each tick, `resting` sides that try again at the next one.
    `now` is the monotonic time of the last tick.

    `fault` reports a bug to the worker, `accept_failed` the errno of a failed accept, and `report` every
    session that ends, with the reason. `pause_full` is called when a limit is reached, `make_room` when a
    session ends while accepting is `paused`. `failing_servers` holds servers that failed clients, until they
    are reported to `health`. `hub_ticks` is how often gevent's loop checks its timers. `first_due` is lowered
    by each session that a sweep examines, to the moment at which it would end.
    """

    __slots__ = (
        "_hub_at",
        "_lively_until",
        "_sweep",
        "_sweep_at",
        "_swept_events",
        "accept_failed",
        "changed",
        "every_tick",
        "failing_servers",
        "fault",
        "first_due",
        "hub_ticks",
        "last_number",
        "limit",
        "live",
        "make_room",
        "now",
        "pause_full",
        "paused",
        "pipes",
        "poller",
        "reasons",
        "report",
        "resting",
        "transfer",
    )

    def __init__(
        self,
        *,
        descriptors: int,
        fault: Callable[[Exception], None],
        accept_failed: Callable[[int], None],
        make_room: Callable[[], None] = lambda: None,
    ) -> None:
        self.now = time.monotonic()
        self.live: set[Expiring] = set()
        self.failing_servers: set[PoolMember] = set()
        self.every_tick: set[Expiring] = set()
        self.resting: list[Resting] = []
        self.limit = session_limit(descriptors)
        self.pipes = Pipes(pipe_limit(descriptors))
        self.poller = Poller()
        self.transfer = Transfer()
        self.reasons = dict.fromkeys(EndReason, 0)
        self.fault = fault
        self.hub_ticks = HUB_TICKS
        self._lively_until = 0.0
        self._hub_at = math.inf
        self.accept_failed = accept_failed
        self.report: Callable[..., None] | None = None
        self.make_room = make_room
        self.pause_full: Callable[[], None] = lambda: None
        self.paused = False
        self.changed = True
        self.last_number = 0
        self._sweep: list[Expiring] = []
        self._sweep_at = 0.0
        self._swept_events = 0
        self.first_due = math.inf

    def is_full(self) -> bool:
        """Whether there are as many sessions as descriptors allow."""
        return len(self.live) >= self.limit

    def close(self) -> None:
        """Close the pipes and the poller; no session is left."""
        self.pipes.close()
        self.poller.close()

    def run_until(
        self,
        done: Callable[[], bool],
        *,
        on_tick: Callable[[], None],
        ends_doze: Callable[[], Callable[[], bool] | None] = lambda: None,
    ) -> None:
        """Move connections until `done`, as the outermost loop of the process; `on_tick` calls `tick`.

        `ends_doze` returns what `Dozing.sleep` asks.

        gevent's work, above all the control socket, runs when its loop has something to do. Its timers, and a
        thread that calls back into its loop, may be late by a few ticks.
        """
        poller, ticks, visit = self.poller, 0, HubVisit()
        poller.lead()
        dozing = Dozing(poller.fileno(), pause=TICK)
        tick_at = time.monotonic()
        self.keep_lively()  # greenlets begin with the first tick
        at_once = False
        while not done():
            hub_ready = poller.wait(0.0 if at_once else min(tick_at, self._hub_at))
            now = time.monotonic()
            hub_due = hub_ready or at_once
            if now >= tick_at:
                on_tick()
                tick_at = now + TICK
                ticks += 1
                hub_due = hub_due or now < self._lively_until or ticks % self.hub_ticks == 0
            if hub_ready:
                self.keep_lively()
            idle = True
            if hub_due or now >= self._hub_at:
                idle = visit.make()
                now = time.monotonic()
            busy = self.every_tick or self._sweep or self.resting or self.changed or now < self._lively_until
            dozing.note(poller.events, now, busy=bool(busy) or self.hub_ticks != HUB_TICKS)
            dozed = idle and dozing.is_due(now) and now < self._hub_at
            at_once = dozed or not idle  # what was cut short has no event
            if dozed:
                dozing.sleep(min(now + LONGEST, self._hub_at), ends_doze())
                on_tick()
                tick_at = time.monotonic() + TICK

    def keep_lively(self) -> None:
        """Let gevent's loop check its timers on each tick for a while: a greenlet has much to do."""
        self._lively_until = time.monotonic() + _HUB_LIVELY

    def rest(self, seconds: float) -> None:
        """Block a greenlet for so long, while connections are moved; it need not wait for a tick.

        One greenlet at a time: `Turns` lets the first of those that wait rest, and keeps the others waiting.
        """
        self._hub_at = time.monotonic() + seconds
        try:
            gevent.sleep(seconds)
        finally:
            self._hub_at = math.inf

    def tick(self) -> None:
        """Advance the clock and end what has waited too long."""
        now = self.now = time.monotonic()
        if self.resting:
            self.wake()
            self.poller.events += 1  # bytes may move without an event of the kernel
        for each in tuple(self.every_tick):
            each.expire(now)
        if self.poller.events != self._swept_events:
            self._sweep_at = min(self._sweep_at, now + _SWEEP_EVERY)
        if not self._sweep and now >= self._sweep_at and self.live:
            self._sweep = list(self.live)
            self._sweep_at = now + _SWEEP_EVERY
            self._swept_events = self.poller.events
            self.first_due = math.inf
        if self._sweep:
            self._continue_sweep(now)

    def _continue_sweep(self, now: float) -> None:
        due, self._sweep = self._sweep[:_SLICE], self._sweep[_SLICE:]
        for each in due:
            each.expire(now)
        if not self._sweep and self.poller.events == self._swept_events:
            self._sweep_at = max(self._sweep_at, min(self.first_due, now + _SWEEP_AT_LEAST))

    def wake(self) -> None:
        """Let resting sides try again."""
        resting, self.resting = self.resting, []
        for each in resting:
            each.resume()

    def wake_queued(self, waiter: Waiter | None) -> None:
        """Give the free place to the session that the pool has taken out of its queue, if any."""
        if waiter is not None:
            waiter.place_free()

    def end_all(self, reason: EndReason) -> None:
        """End every session."""
        for each in tuple(self.live):
            each.end(reason)


def descriptor_limit() -> int:
    """Raise the soft limit of open files to the hard one and return it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard if hard != resource.RLIM_INFINITY else os.sysconf("SC_OPEN_MAX")
