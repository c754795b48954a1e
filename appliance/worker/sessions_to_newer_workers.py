"""Moves a draining worker's sessions to workers of the newer generation, in batches.

A greenlet per target worker offers the batches, so that no worker waits while another one answers: on a busy
machine waiting for answers takes most of the time. Sessions that a worker refuses, or that were offered to
a worker that does not answer, continue here until the drain ends.

Open sessions go first. So their servers are as busy there as here when the sessions that wait for a server
follow, in their order; by then most of these are open.
"""

import time
from collections.abc import Callable, Sequence
from typing import Final

import gevent
from structlog.typing import FilteringBoundLogger

from appliance.core.balancing.pool_queue import Waiter
from appliance.model.paths import Paths
from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.session import moving
from appliance.worker.relay.session.session import Session
from appliance.worker.session_batches import SessionBatches
from appliance.worker.session_ids import SessionIds
from appliance.worker.session_transfer import SessionTransfer

_PAUSE: Final = 0.05
"""Seconds between two searches for sessions whose connect has since ended."""

_PAUSE_AFTER_FAILURE: Final = 0.5
"""Seconds until workers are asked again after one has not answered: it is restarted meanwhile."""


class DepartingSessions:
    """Moves the sessions of a worker's `traffic` to workers of a newer generation, once `aim` names them.

    `on_empty` is called when no session is left.
    """

    def __init__(
        self,
        paths: Paths,
        arguments: WorkerArguments,
        traffic: Traffic,
        ids: SessionIds,
        batches: SessionBatches,
        *,
        on_empty: Callable[[], None],
        log: FilteringBoundLogger,
    ) -> None:
        self._on_empty = on_empty
        self._paths, self._arguments, self._traffic, self._ids = paths, arguments, traffic, ids
        self._batches = batches
        self._log = log
        self._generation = 0
        self._workers: tuple[int, ...] = ()
        self._refused: set[int] = set()  # numbers of sessions without a place in the newer generation
        self._settling: set[int] = set()  # numbers of those that it takes once they are open
        self._pause = 0.0
        self._moved = 0
        self._began = 0.0
        self._greenlet: gevent.Greenlet | None = None

    def aim(self, generation: int, workers: Sequence[int]) -> None:
        """Move sessions to these workers of a generation from now on; a later order replaces this one."""
        self._generation, self._workers = generation, tuple(workers)
        self._refused, self._settling = set(), set()
        self._began = time.monotonic()
        if self._greenlet is None or self._greenlet.dead:
            self._greenlet = gevent.spawn(self._run)

    def may_leave(self, waiter: Waiter) -> bool:
        """Return whether a session that waits for a server is about to move."""
        if not self._workers or not isinstance(waiter, Session):
            return False
        return waiter.number not in self._refused and waiter.number not in self._settling

    def close(self) -> None:
        """Move no more; the worker ends."""
        if self._greenlet is not None:
            self._greenlet.kill()
        if self._moved:
            self._log.info(
                "sessions-moved",
                sessions=self._moved,
                to_generation=self._generation,
                seconds=round(time.monotonic() - self._began, 3),
            )

    def _run(self) -> None:
        while True:
            before, self._pause = self._moved, 0.0
            self._move_all(self._sessions(), moving.can_move)
            if self._moved == before and not self._pause:
                self._move_all(self._waiting(), moving.waits)
            if not self._traffic.live:
                self._on_empty()
            if self._moved == before:
                self._pause = max(self._pause, _PAUSE)
            if self._pause:
                gevent.sleep(self._pause)

    def _sessions(self) -> list[Session]:
        return [each for each in self._traffic.live if isinstance(each, Session)]

    def _waiting(self) -> list[Session]:
        """Return the sessions that wait for a server, the last one first."""
        waiting = [each for each in self._sessions() if moving.waits(each)]
        waiting = [each for each in waiting if each.number not in self._settling]
        return sorted(waiting, key=lambda each: each.number, reverse=True)

    def _move_all(self, sessions: list[Session], fits: Callable[[Session], bool]) -> None:
        """Move the sessions that fit, from the last one on, shared evenly among the workers."""
        first, number = self._arguments.index, len(self._workers)
        movers = [
            gevent.spawn(
                self._move_to, self._workers[(first + place) % number], sessions[place::number], fits
            )
            for place in range(number)
        ]
        try:
            gevent.joinall(movers)
        finally:
            gevent.killall(movers)

    def _move_to(self, index: int, left: list[Session], fits: Callable[[Session], bool]) -> None:
        """Move sessions to one worker until a batch fails: further batches would be held still in vain."""
        generation = self._generation
        path = self._paths.worker_control(self._arguments.program, generation, index)
        way = SessionTransfer(path, self._ids, on_left=self._count, log=self._log)
        try:
            while left and generation == self._generation:
                batch = self._batches.take(left, lambda each: each.number not in self._refused and fits(each))
                if batch and not self._move(batch, way, index):
                    return
                gevent.sleep(0)  # the traffic has its turn
        finally:
            way.close()

    def _count(self, left: int) -> None:
        self._moved += left

    def _move(self, batch: list[Session], way: SessionTransfer, index: int) -> bool:
        """Offer a batch to a worker, and continue with what it refuses; return whether it has answered."""
        refused, settling = self._refused, self._settling  # another order makes new ones
        tried = self._batches.offer(batch, way)
        refused |= tried.for_good
        settling |= tried.settling
        for each in batch:
            if each.number in refused or each.number in settling:
                moving.try_again(each)
        if tried.unanswered:
            self._log.warning("sessions-not-moved", to_worker=index, reason=tried.unanswered)
            self._pause = _PAUSE_AFTER_FAILURE
        return not tried.unanswered
