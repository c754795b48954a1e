"""A draining worker's sessions go on in workers of the newer generation, in batches.

A batch is held still, offered with copies of its descriptors, and given up here with the word `take`: at
every moment one process reads and writes. What the other worker refuses, or what was offered to one that does
not answer, goes on here, until the drain ends. What was under way with `take` when the other worker died is
lost: it may have read bytes that nobody else has.

Open sessions go first, so that their servers are as busy there as here when those that wait for a server
follow, in their order. Most of these are open by then.
"""

import time
from collections.abc import Callable, Sequence
from itertools import count
from typing import Final

import gevent
from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.net.control.control_client import ControlClient, ControlUnavailable
from appliance.net.data.session import moving
from appliance.net.data.session.session import Session
from appliance.net.data.session.session_phases import CLOSED
from appliance.net.data.traffic import Traffic
from appliance.programs.worker.session_ids import SessionIds
from appliance.wire.lines import moving_sessions
from appliance.wire.lines.control import ControlError, Question
from appliance.wire.lines.moving_sessions import NO_ROOM, Taken
from appliance.wire.lines.worker_arguments import WorkerArguments

_PATIENCE: Final = 5.0
"""Seconds for an answer; meanwhile a batch stands still."""

_PAUSE: Final = 0.05
"""Seconds between two looks for sessions whose connect has ended meanwhile."""

_PAUSE_AFTER_FAILURE: Final = 0.5
"""Seconds until another worker is asked, after one that has not answered: it is started again meanwhile."""

BATCH: Final = 50
"""Sessions of one batch, all of which stand still until the last of them is taken."""

_LOOKS: Final = 1000
"""Sessions looked at before the traffic has its turn."""

_MOST_DESCRIPTORS: Final = 200
_MOST_BYTES: Final = 256 << 10
"""Bytes that peers have not taken, in one batch: a line may be 1 MiB, and has a third more."""


class DepartingSessions:
    """Moves the sessions of a worker's `traffic` to workers of a newer generation, once `aim` says which.

    `on_empty` is called when nothing is left.
    """

    def __init__(
        self,
        paths: Paths,
        arguments: WorkerArguments,
        traffic: Traffic,
        ids: SessionIds,
        *,
        on_empty: Callable[[], None],
        log: FilteringBoundLogger,
    ) -> None:
        self._on_empty = on_empty
        self._paths, self._arguments, self._traffic, self._ids = paths, arguments, traffic, ids
        self._log = log
        self._generation = 0
        self._workers: tuple[int, ...] = ()
        self._turns = count(arguments.index)
        self._clients: dict[tuple[int, int], ControlClient] = {}  # by generation and index
        self._refused: set[int] = set()  # numbers of sessions that the newer generation has no place for
        self._settling: set[int] = set()  # of those that it takes when they are open
        self._pause = 0.0
        self._left = list[Session]()  # not looked at yet in this round
        self._moved = 0
        self._began = 0.0
        self._greenlet: gevent.Greenlet | None = None

    def aim(self, generation: int, workers: Sequence[int]) -> None:
        """Move sessions to these workers of a generation from now on; of two orders the later one holds."""
        self._generation, self._workers = generation, tuple(workers)
        self._refused, self._settling = set(), set()
        self._began = time.monotonic()
        if self._greenlet is None or self._greenlet.dead:
            self._greenlet = gevent.spawn(self._run)

    def close(self) -> None:
        """Move no more; the worker ends."""
        if self._greenlet is not None:
            self._greenlet.kill()
        self._hang_up_all()
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
        """Move those of the sessions that fit, from the last one on.

        After a failure the others stay for now: where nobody answers, each batch would stand still in vain.
        """
        self._left = sessions
        try:
            while self._left:
                if batch := self._batch(fits):
                    self._move(batch, self._workers[next(self._turns) % len(self._workers)])
                else:
                    gevent.sleep(0)  # the traffic has its turn
        finally:
            self._hang_up_all()

    def _batch(self, fits: Callable[[Session], bool]) -> list[Session]:
        """Return the next sessions that fit, as many as one message takes, of the next thousand."""
        found, descriptors, held = list[Session](), 0, 0
        for _ in range(min(_LOOKS, len(self._left))):
            each = self._left[-1]
            if each.number not in self._refused and fits(each):
                descriptors += len(moving.descriptors(each))
                held += moving.held_in_memory(each)
                if found and (descriptors > _MOST_DESCRIPTORS or held > _MOST_BYTES):
                    break
                found.append(each)
            self._left.pop()
            if len(found) == BATCH:
                break
        return found

    def _move(self, batch: list[Session], index: int) -> None:
        """Offer a batch to a worker, and leave what it takes."""
        for each in batch:
            moving.hold_still(each)
        try:
            self._offer_and_leave(batch, index)
        except ControlUnavailable as error:
            self._failed(index, str(error))
        except ControlError as error:
            # A former release has no words for those that wait.
            self._settling |= {each.number for each in batch if moving.waits(each)}
            self._failed(index, str(error))
        except Exception as error:  # noqa: BLE001  # the boundary: a bug costs this try, and not the others
            self._traffic.fault(error)
            self._failed(index, str(error))
        finally:
            for each in batch:
                moving.go_on(each)  # but for those that have left
                if each.number in self._refused or each.number in self._settling:
                    moving.try_again(each)

    def _failed(self, index: int, reason: str) -> None:
        """Have the other worker drop what it was offered and not given, and move no more for a while."""
        self._hang_up_all()
        self._log.warning("sessions-not-moved", to_worker=index, reason=reason)
        self._left, self._pause = [], _PAUSE_AFTER_FAILURE

    def _offer_and_leave(self, batch: Sequence[Session], index: int) -> None:
        client = self._connected(index)
        offered = [each for each in batch if each.phase != CLOSED]  # one may have ended meanwhile
        going = self._offer(client, offered)
        if client.closed.is_set():
            raise ControlUnavailable("it went away with an offer")
        # None, too: what was offered and is not taken is dropped there.
        self._take(client, going, tuple(offered.index(each) for each in going))

    def _connected(self, index: int) -> ControlClient:
        place = self._generation, index
        known = self._clients.get(place)
        if known is not None and not known.closed.is_set():
            return known
        if known is not None:
            known.close()
        path = self._paths.worker_control(self._arguments.program, *place)
        self._clients[place] = client = ControlClient(path, timeout=_PATIENCE)
        return client

    def _hang_up_all(self) -> None:
        """End the connections: what was offered over one and not taken is dropped there."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _offer(self, client: ControlClient, batch: Sequence[Session]) -> list[Session]:
        """Return those of a batch that the other worker can take, and that have not ended meanwhile."""
        told = tuple(moving.description(each, self._ids.of(each.number)) for each in batch)
        stages = [moving.stage(each) for each in batch]
        for each in batch:
            moving.note_copies(each)
        answer = client.ask(
            Question(command="offer", values=moving_sessions.values(moving_sessions.offer_of(told))),
            timeout=_PATIENCE,
            descriptors=[each for session in batch for each in moving.descriptors(session)],
        )
        if not answer.ok:
            raise ControlError("; ".join(each.message for each in answer.errors))
        reasons = moving_sessions.offered(answer.values).refused
        if len(reasons) != len(batch):
            raise ControlError(f"an answer for {len(reasons)} of {len(batch)} sessions")
        answered = tuple(zip(batch, reasons, stages, strict=True))
        self._refused |= {each.number for each, why, _ in answered if why not in ("", NO_ROOM)}
        return [each for each, why, before in answered if not why and moving.stage(each) == before]

    def _take(self, client: ControlClient, going: Sequence[Session], places: tuple[int, ...]) -> None:
        """Say that sessions are the other worker's own: whatever it answers, they are not ours any more.

        They leave with the last byte of the word, before anything else runs here. Where it cannot be said, as
        the other worker is gone, they stay, and this raises ControlUnavailable.
        """
        question = Question(command="take", values=moving_sessions.values(Taken(places=places)))
        before = self._moved
        try:
            answer = client.ask(question, timeout=_PATIENCE, on_sent=lambda: self._leave(going))
        except ControlUnavailable as error:
            if self._moved == before:
                raise
            self._log.error("sessions-lost", sessions=len(places), reason=str(error))
            return
        if not answer.ok:
            reason = "; ".join(each.message for each in answer.errors)
            self._log.error("sessions-lost", sessions=len(places), reason=reason)

    def _leave(self, going: Sequence[Session]) -> None:
        for each in going:
            moving.leave(each)
        self._moved += len(going)
