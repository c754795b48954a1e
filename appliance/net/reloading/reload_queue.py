"""Requests for a reload, in the order of their coming: one at a time, each answered when it is done.

Between requests it does what is due: programs that have not applied the accepted snapshot are led to it, and
the operator's file is looked at, for a request may have been lost while this program was restarted.
"""

import time
from collections.abc import Callable
from typing import Final, TypeVar

import gevent
from gevent.event import AsyncResult
from gevent.queue import Empty, Queue
from structlog.typing import FilteringBoundLogger

from appliance.net.reloading.reload_transaction import ReloadTransaction
from appliance.net.reloading.watched_file import Content
from appliance.wire.lines.control import Answer, AnswerProblem, as_values, bad, good

_TURN: Final = 1.0  # seconds between two looks at what is due
_CONVERGE: Final = 5.0  # seconds between two looks at which snapshot every program has
_LAST_TURN: Final = 5.0  # seconds that a running reload has when this program is told to end

_Done = TypeVar("_Done")


class ReloadQueue:
    """Takes requests from everywhere, has them done one at a time, and remembers what came of them.

    `after` does what follows a reload and returns what it could not. `counts` and `last` are for `status`;
    `refused` holds the errors of the last reload, until one succeeds. `busy` is True while work is under way.
    """

    def __init__(
        self,
        transaction: ReloadTransaction,
        log: FilteringBoundLogger,
        *,
        after: Callable[[], list[AnswerProblem]],
    ) -> None:
        self.busy = False
        self.counts = {"done": 0, "unchanged": 0, "refused": 0}
        self.last: dict[str, object] | None = None
        self.refused: tuple[AnswerProblem, ...] = ()
        self._incomplete = False
        self._transaction = transaction
        self._log = log
        self._after = after
        self._converged_at = self._looked_at = 0.0
        self._queue: Queue[tuple[str, bool, AsyncResult[Answer]]] = Queue()
        self._greenlet = gevent.spawn(self._work)

    def ask(self, source: str, *, forced: bool = False) -> Answer:
        """Return the answer to one request for a reload, when its own turn is done."""
        answer: Answer = self.note(source, forced=forced).get()
        return answer

    def hang_up(self) -> None:
        """Leave a request that nobody waits for, unless one is waiting: it will read the same file."""
        if self._queue.empty():
            self.note("SIGHUP")

    def note(self, source: str, *, forced: bool = False) -> "AsyncResult[Answer]":
        """Leave a request."""
        result: AsyncResult[Answer] = AsyncResult()
        self._queue.put((source, forced, result))
        return result

    def close(self) -> None:
        """Wait a few seconds for a running reload to come to its end, and take no other."""
        deadline = time.monotonic() + _LAST_TURN
        while self.busy and time.monotonic() < deadline:
            gevent.sleep(0.05)
        self._greenlet.kill()

    def _work(self) -> None:
        self._guarded(lambda: self._transaction.converge(everybody=True))
        while True:
            source, forced, result = self._next()
            result.set(self._obey(source, forced=forced))

    def _obey(self, source: str, content: Content | None = None, *, forced: bool = False) -> Answer:
        self._log.info("reload-started", source=source, waiting=self._queue.qsize())
        answer = self._guarded(lambda: self._transaction.reload(content, forced=forced))
        answer = _with_warnings(answer or bad("internal error, see the log"), self._after())
        self._remember(source, answer)
        return answer

    def _remember(self, source: str, answer: Answer) -> None:
        outcome = "refused" if not answer.ok else "unchanged" if "unchanged" in answer.values else "done"
        self.counts[outcome] += 1
        self.refused = answer.errors
        self._incomplete = bool(answer.errors and answer.values)  # accepted, and not obeyed by all
        errors = {"errors": as_values(answer.errors)} if answer.errors else {}
        self.last = {"at": time.time(), "source": source, "ok": answer.ok, **errors, **answer.values}

    def _next(self) -> tuple[str, bool, "AsyncResult[Answer]"]:
        """Return the next request; while there is none, do what is due."""
        while True:
            try:
                request: tuple[str, bool, AsyncResult[Answer]] = self._queue.get(timeout=_TURN)
            except Empty:
                self._do_what_is_due(time.monotonic())
            else:
                return request

    def _do_what_is_due(self, now: float) -> None:
        """Keep every program on the accepted snapshot, and the snapshot on the operator's file."""
        if now - self._converged_at >= _CONVERGE:
            self._guarded(self._transaction.load_validator)
            self._guarded(lambda: self._transaction.converge(everybody=False))
            if self._incomplete and self._guarded(self._transaction.is_applied_everywhere):
                self._incomplete, self.refused = False, ()
                self._log.info("reload-completed", configuration=self._transaction.accepted.number)
            self._converged_at = time.monotonic()
        watch = self._transaction.watch
        if watch and now - self._looked_at >= watch:
            self._looked_at = now
            content: Content | None = self._guarded(self._transaction.unasked)
            if content is not None:
                self._obey("watch", content)

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
    """Return the answer to a reload that was done with the warnings of what follows it."""
    if not answer.ok or not problems:
        return answer
    warned = answer.values.get("warnings")
    warnings = [*(warned if isinstance(warned, list) else ()), *as_values(problems)]
    return good(**{**answer.values, "warnings": warnings})
