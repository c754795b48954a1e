"""Requests for a reload or a stop, in order of arrival: one at a time, answered when it is done.

Between requests it does what is due: brings programs to the accepted snapshot, retries what was refused for
now, and checks the operator's file, as a request may have been lost while this program was restarted.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Final, TypeVar

import gevent
from gevent.event import AsyncResult
from gevent.queue import Empty, Queue
from structlog.typing import FilteringBoundLogger

from appliance.net.files.kept_counts import KeptCounts
from appliance.net.loop.turns import until_next, wait_while
from appliance.net.sources.read_files import ReadFiles
from appliance.reload.participation import Participation
from appliance.reload.reload_transaction import ReloadTransaction
from appliance.wire.lines.control import Answer, AnswerProblem, as_values, bad, good

DISCOVER: Final = "discover"
"""Source of requests that only give pools the servers found in the cluster."""

AGAIN: Final = "again"
"""Source of a reload that was refused for now, and is retried automatically."""

_TURN: Final = 1.0  # seconds between two checks for due work
_CONVERGE: Final = 5.0  # seconds between two checks which snapshot every program has
_OVERDUE: Final = 10.0  # the same at most, while requests follow each other without a pause of a turn
_BUG: Final = "internal error, see the log"
_LAST_TURN: Final = 5.0  # seconds that a running reload has when this program is terminated

_Done = TypeVar("_Done")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    source: str
    forced: bool = False
    stops: bool = False
    rehearses: bool = False
    result: "AsyncResult[Answer]" = field(default_factory=AsyncResult)


RESULTS: Final = ("done", "unchanged", "refused", "refused-again")
"""The counted results of a reload; the last is that of an automatic retry."""


class ReloadQueue:
    """Takes requests from all sources, executes them one at a time, and remembers their outcome.

    `after` does what follows a reload and returns what failed. `last` is for `status`; `refused` holds the
    errors of the last reload, until one succeeds. `busy` is True while work is under way.
    """

    def __init__(
        self,
        transaction: ReloadTransaction,
        log: FilteringBoundLogger,
        *,
        participation: Participation,
        counts: KeptCounts,
        after: Callable[[], list[AnswerProblem]],
    ) -> None:
        self.busy = False
        self._kept = counts
        self.last: dict[str, object] | None = None
        self.refused: tuple[AnswerProblem, ...] = ()
        self._incomplete = False
        self._transaction = transaction
        self._log = log
        self._participation = participation
        self._after = after
        self._converged_at = time.monotonic() - _CONVERGE  # at the first pause, which is soon
        self._looked_at = 0.0
        self._queue: Queue[_Request] = Queue()
        self._greenlet = gevent.spawn(self._work)

    @property
    def counts(self) -> Mapping[str, int]:
        """How many reloads had each result, over restarts of this program."""
        return self._kept.counts

    def ask(self, source: str, *, forced: bool = False) -> Answer:
        """Request a reload; return the answer when it is done."""
        return self._answer(_Request(source=source, forced=forced))

    def ask_to_stop(self, source: str) -> Answer:
        """Request to leave the virtual IPs; return the answer when that is done."""
        return self._answer(_Request(source=source, stops=True))

    def ask_to_rehearse(self, source: str) -> Answer:
        """Return what a reload would do, when its turn comes; it is not recorded as a reload."""
        return self._answer(_Request(source=source, rehearses=True))

    def hang_up(self) -> None:
        """Queue a reload without waiting, unless one is queued already: it will read the same file."""
        if all(each.stops or each.rehearses for each in self._queue.queue):
            self._queue.put(_Request(source="SIGHUP"))

    def close(self) -> None:
        """Wait a few seconds for a running reload to end, and take no other."""
        wait_while(lambda: self.busy, within=_LAST_TURN)
        self._greenlet.kill()

    def _answer(self, request: _Request) -> Answer:
        self._queue.put(request)
        answer: Answer = request.result.get()
        return answer

    def _work(self) -> None:
        self._guarded(lambda: self._transaction.converge(everybody=True))
        while True:
            request = self._next()
            request.result.set(self._done(request))

    def _done(self, request: _Request) -> Answer:
        if request.stops:
            return self._stop()
        if request.rehearses:
            return self._guarded(self._transaction.rehearse) or bad(_BUG)
        return self._obey_request(request)

    def _stop(self) -> Answer:
        accepted = self._transaction.accepted
        return self._guarded(lambda: self._participation.stop(accepted)) or bad(_BUG)

    def _obey_request(self, request: _Request) -> Answer:
        """Reload, and take part in the virtual routers again: after a refused file, in the accepted ones."""
        answer = self._obey(request.source, forced=request.forced)
        return _with_warnings(
            answer, self._guarded(lambda: self._participation.resume(self._transaction.accepted)) or []
        )

    def _obey(self, source: str, files: ReadFiles | None = None, *, forced: bool = False) -> Answer:
        self._log.info("reload-started", source=source, waiting=self._queue.qsize())
        others = {DISCOVER: self._transaction.follow_found, AGAIN: self._transaction.try_again}
        answer = self._guarded(others.get(source, partial(self._transaction.reload, files, forced=forced)))
        answer = _with_warnings(answer or bad(_BUG), self._after())
        self._remember(source, answer)
        return answer

    def _remember(self, source: str, answer: Answer) -> None:
        refused = "refused-again" if source == AGAIN else "refused"
        outcome = refused if not answer.ok else "unchanged" if "unchanged" in answer.values else "done"
        try:
            self._kept.count(outcome)
        except OSError as error:
            self._log.warning("reload-not-counted", reason=error.strerror)
        if source != DISCOVER:  # which retries, and reports the outcome itself
            self.refused = answer.errors
        self._incomplete = bool(
            answer.errors and "configuration" in answer.values
        )  # accepted, but not used by all
        errors = {"errors": as_values(answer.errors)} if answer.errors else {}
        self.last = {"at": time.time(), "source": source, "ok": answer.ok, **errors, **answer.values}

    def _next(self) -> _Request:
        """Return the next request; do what is due until there is one, and if requests leave no pause."""
        while True:
            try:
                request: _Request = self._queue.get(timeout=until_next(_TURN))
            except Empty:
                self._do_what_is_due(time.monotonic())
            else:
                if time.monotonic() - self._converged_at >= _OVERDUE:
                    self._do_what_is_due(time.monotonic())
                return request

    def _do_what_is_due(self, now: float) -> None:
        """Keep every program on the accepted snapshot, and the snapshot on the operator's file."""
        if now - self._converged_at >= _CONVERGE:
            self._guarded(self._transaction.load_validator)
            self._guarded(lambda: self._transaction.converge(everybody=False))
            self._guarded(lambda: self._participation.converge(self._transaction.accepted))
            if self._incomplete and self._guarded(self._transaction.is_applied_everywhere):
                self._incomplete, self.refused = False, ()
                self._log.info("reload-completed", configuration=self._transaction.accepted.number)
            self._converged_at = time.monotonic()
        if self._guarded(self._transaction.is_to_be_tried_again):
            self._obey(AGAIN)
        watch = self._transaction.watch
        if watch and now - self._looked_at >= watch:
            self._looked_at = now
            files: ReadFiles | None = self._guarded(self._transaction.unasked)
            if files is not None:
                self._obey("watch", files)

    def _guarded(self, work: Callable[[], _Done]) -> _Done | None:
        """Do one piece of work; a bug in it costs its answer, not this program."""
        self.busy = True
        try:
            return work()
        except Exception:  # noqa: BLE001  # the next request may well succeed; the traceback is in the log
            self._log.exception("reload-failed")
            return None
        finally:
            self.busy = False


def _with_warnings(answer: Answer, problems: list[AnswerProblem]) -> Answer:
    """Return the answer to a reload that succeeded, with the warnings of what follows it."""
    if not answer.ok or not problems:
        return answer
    warned = answer.values.get("warnings")
    warnings = [*(warned if isinstance(warned, list) else ()), *as_values(problems)]
    return good(**{**answer.values, "warnings": warnings})
