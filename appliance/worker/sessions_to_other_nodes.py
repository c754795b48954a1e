"""Moves sessions to another node, through `migrate`, when their virtual IP is there."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Final

import gevent
from structlog.typing import FilteringBoundLogger

from appliance.model.end_reasons import EndReason
from appliance.model.operator_events import EventKind, OperatorEvent, Publish
from appliance.model.paths import Paths
from appliance.model.program_names import MIGRATE
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.control.control_server import Call
from appliance.wire.lines.control import Answer, Question, good
from appliance.wire.lines.moving_sessions import NO_ROOM
from appliance.wire.lines.worker_arguments import WorkerArguments
from appliance.worker.relay import tcp
from appliance.worker.relay.all_sessions import Traffic
from appliance.worker.relay.session import moving
from appliance.worker.relay.session.session import Session
from appliance.worker.relay.session.session_phases import CLOSED, CONNECTING, OPEN
from appliance.worker.session_batches import SessionBatches
from appliance.worker.session_ids import SessionIds
from appliance.worker.session_transfer import SessionTransfer

MOST: Final = 100
"""Most sessions of one batch: it waits while the other node makes its sockets."""

_SETTLED: Final = 10.0
"""Seconds for `migrate` to learn what became of a batch: longer than its own time-outs together."""

_LONGEST: Final = 20.0
"""Seconds after which the rest is left for the next call."""

_COUNTED_WITHIN: Final = 30.0
"""Seconds for `migrate` to start again, and count what it had when it died."""

_PAUSE: Final = 0.5
_ANSWERED: Final = 2.0

_NO_ROOM_THERE: Final = "the other node has no descriptors left"
_MAPPED: Final = "::ffff:"


class EmigratingSessions:
    """The command `emigrate` of one worker."""

    def __init__(
        self,
        paths: Paths,
        arguments: WorkerArguments,
        traffic: Traffic,
        ids: SessionIds,
        batches: SessionBatches,
        *,
        publish: Publish,
        log: FilteringBoundLogger,
    ) -> None:
        self._paths, self._program, self._publish, self._log = paths, arguments.program, publish, log
        self._traffic, self._ids, self._batches = traffic, ids, batches

    def emigrate(self, call: Call) -> Answer:
        """Move the sessions whose clients came by an address, or a share of them: those that came last.

        Answer how many have moved, and why others stay.
        """
        address, wanted = call.question.text("address"), self._wanted(call)
        refused = dict[int, str]()
        moved, trouble = 0, ""

        def count(left: int) -> None:
            nonlocal moved
            moved += left

        way = SessionTransfer(
            self._paths.control(MIGRATE),
            self._ids,
            on_left=count,
            on_lost=lambda number, reason: self._report_lost(address, number, reason),
            log=self._log,
            more={"program": self._program, "address": address},
            settled_within=_SETTLED,
        )
        left, until = wanted[:], time.monotonic() + _LONGEST
        try:
            if left:  # the connections are made before any session waits for them
                trouble = self._batches.offer([], way).unanswered
            while left and not trouble and time.monotonic() < until:
                batch = self._batches.take(left, _fits, most=MOST)
                if batch:
                    tried = self._batches.offer(batch, way)
                    refused.update(tried.refused)
                    trouble = tried.unanswered
                    if trouble:
                        self._end_stuck(address, batch)
                gevent.sleep(0)  # the traffic has its turn
        finally:
            way.close()
        staying = set(wanted).intersection(self._at(address))
        stay = Counter(_why(each, refused, trouble) for each in staying)
        return good(moved=moved, stay=dict(stay), trouble=trouble)

    def _report_lost(self, address: str, number: int, reason: str) -> None:
        """Report sessions that `migrate` had when it died; of others it reports itself what became.

        The event does not wait for the next run, which counts them.
        """
        self._publish(
            OperatorEvent(
                when=time.time(), kind=EventKind.SESSIONS_LOST, subject=address, detail=f"{number}: {reason}"
            )
        )
        gevent.spawn(self._have_counted, number)

    def _have_counted(self, number: int) -> None:
        question = Question(command="count-lost", values={"sessions": number})
        until = time.monotonic() + _COUNTED_WITHIN
        while time.monotonic() < until:
            try:
                ask(self._paths.control(MIGRATE), question, timeout=_ANSWERED)
            except ControlUnavailable:
                gevent.sleep(_PAUSE)
            else:
                return

    def _end_stuck(self, address: str, batch: list[Session]) -> None:
        """End sessions that `migrate` was reading when it died: a worker may not end the mode of a socket."""
        stuck = [each for each in batch if each.phase != CLOSED and _is_stuck(each)]
        for each in stuck:
            self._log.error("session-ended-on-the-way", session=self._ids.of(each.number))
            each.end(EndReason.INTERNAL)
        if stuck:
            self._report_lost(address, len(stuck), "`migrate` died while it read them")

    def _wanted(self, call: Call) -> list[Session]:
        """Return the sessions to move, the first one to offer at the end."""
        found = self._at(call.question.text("address"))
        share = call.question.number("share") if "share" in call.question.values else 1.0
        wanted = sorted(found, key=lambda each: each.number)[len(found) - round(share * len(found)) :]
        # Those that wait for a place follow in their order: a server that has many sessions here must have
        # them there before it is given more (`max_connections`).
        waiting = [each for each in wanted if each.phase != OPEN]
        return [*reversed(waiting), *(each for each in wanted if each.phase == OPEN)]

    def _at(self, address: str) -> list[Session]:
        return [each for each in self._traffic.live if isinstance(each, Session) and _local(each) == address]


def _local(session: Session) -> str:
    try:
        return tcp.local_address(session.client.fd)[0].removeprefix(_MAPPED)
    except OSError:  # it has ended, which it reads soon
        return ""


def _is_stuck(session: Session) -> bool:
    return any(side is not None and tcp.is_in_repair(side.fd) for side in (session.client, session.server))


def _fits(session: Session) -> bool:
    if moving.can_move(session):
        moving.without_pipes(session)
        return True
    return moving.waits(session) and session.phase != CONNECTING


def _why(session: Session, refused: Mapping[int, str], trouble: str) -> str:
    if session.number in refused:
        why = refused[session.number]
        return _NO_ROOM_THERE if why == NO_ROOM else why
    if session.phase == CONNECTING:
        return "it connects to its server"
    return "it could not be offered" if trouble else "its bytes are under way"
