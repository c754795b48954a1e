"""The program `reload`: takes the line `reload`, and makes every program obey the operator's file, or none.

Requests come from the reload sockets, from SIGHUP and from this program's control socket. They are done one
at a time in the order of their coming, and each is answered when its own turn is done. One may be lost, while
this program is restarted for example: so the file is compared with what is obeyed now and then, and obeyed.
"""

import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import gevent
from gevent.event import AsyncResult, Event
from gevent.queue import Empty, Queue
from structlog.typing import FilteringBoundLogger

import appliance
from appliance.model.paths import Paths
from appliance.model.snapshot.snapshot import Snapshot, SnapshotError
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.control.sockets import Call, ControlServer
from appliance.net.files import lock_files, snapshots
from appliance.net.logging.log import configure, limiter, obey
from appliance.net.privileges import capabilities
from appliance.net.process.signals import survive
from appliance.net.reloading.program_clients import ProgramClients, ProgramTimeouts
from appliance.net.reloading.reload_socket import ReloadSockets
from appliance.net.reloading.reload_transaction import ReloadTransaction
from appliance.net.reloading.watched_file import Content
from appliance.wire.lines.control import Answer, AnswerProblem, as_values, bad, good
from appliance.wire.lines.reload_line import ReloadLine, UnknownLine

_TURN: Final = 1.0  # seconds between two looks at what is due
_CONVERGE: Final = 5.0  # seconds between two looks at what every program obeys
_LAST_TURN: Final = 5.0  # seconds that a running reload has when this program is told to end
_PREDECESSOR: Final = 10.0  # seconds for an earlier one to end
_LOOK_AGAIN: Final = 0.1


_Done = TypeVar("_Done")


class ReloadQueue:
    """Takes requests from everywhere, has them done one at a time, and remembers what came of them."""

    def __init__(
        self,
        changeover: ReloadTransaction,
        log: FilteringBoundLogger,
        *,
        after: Callable[[], list[AnswerProblem]],
    ) -> None:
        self.busy = False
        self.counts = {"done": 0, "unchanged": 0, "refused": 0}
        self.last: dict[str, object] | None = None
        self.refused: tuple[AnswerProblem, ...] = ()
        self._incomplete = False
        self._changeover = changeover
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
        """Let a running reload come to its end, for a while."""
        deadline = time.monotonic() + _LAST_TURN
        while self.busy and time.monotonic() < deadline:
            gevent.sleep(0.05)
        self._greenlet.kill()

    def _work(self) -> None:
        self._guarded(lambda: self._changeover.converge(everybody=True))
        while True:
            source, forced, result = self._next()
            result.set(self._obey(source, forced=forced))

    def _obey(self, source: str, content: Content | None = None, *, forced: bool = False) -> Answer:
        self._log.info("reload-started", source=source, waiting=self._queue.qsize())
        answer = self._guarded(lambda: self._changeover.reload(content, forced=forced))
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
            self._guarded(self._changeover.load_validator)
            self._guarded(lambda: self._changeover.converge(everybody=False))
            if self._incomplete and self._guarded(self._changeover.is_obeyed):
                self._incomplete, self.refused = False, ()
                self._log.info("reload-completed", configuration=self._changeover.accepted.number)
            self._converged_at = time.monotonic()
        watch = self._changeover.watch
        if watch and now - self._looked_at >= watch:
            self._looked_at = now
            content: Content | None = self._guarded(self._changeover.unasked)
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
    """Return the answer to a reload that was done with what is to be said besides."""
    if not answer.ok or not problems:
        return answer
    said = answer.values.get("warnings")
    warnings = [*(said if isinstance(said, list) else ()), *as_values(problems)]
    return good(**{**answer.values, "warnings": warnings})


class ReloadProgram:
    """The sockets, the desk behind them, and what follows the accepted configuration."""

    def __init__(self, paths: Paths, accepted: Snapshot, log: FilteringBoundLogger) -> None:
        self._paths = paths
        self._log = log
        self._started_at = time.time()
        self._changeover = ReloadTransaction(
            paths, accepted, ProgramClients(paths, patience=ProgramTimeouts()), log
        )
        self._sockets = ReloadSockets(self._respond, log)
        self._desk = ReloadQueue(self._changeover, log, after=self._follow)
        degraded = snapshots.read_degraded(paths)
        self._desk.refused = degraded.problems if degraded else ()
        self._control = ControlServer(
            paths.control("reload"),
            {"status": self._status, "reload": lambda _: self._desk.ask("control")},
            on_error=lambda command, error: log.error("control-failed", command=command, error=str(error)),
            for_readers={"status"},
        )

    def run(self) -> None:
        """Serve until TERM or INT."""
        end = Event()
        survive(signal.SIGUSR1, signal.SIGUSR2)
        gevent.signal_handler(signal.SIGHUP, self._desk.hang_up)
        for number in (signal.SIGTERM, signal.SIGINT):
            gevent.signal_handler(number, end.set)
        gevent.spawn(limiter().follow, gevent.sleep)
        heartbeat = HubHeartbeat(self._paths.heartbeat("reload"), self._log)
        self._follow()
        self._log.info("started", configuration=self._changeover.accepted.number)
        end.wait()
        self._sockets.close()
        self._desk.close()
        self._control.close()
        heartbeat.close()
        self._log.info("stopped")

    def _follow(self) -> list[AnswerProblem]:
        """Do what the accepted configuration asks of this program; return what it could not."""
        accepted = self._changeover.accepted
        obey("reload", accepted.log)
        self._sockets.follow([self._paths.reload_socket, *map(Path, accepted.reload.sockets)])
        failures = self._sockets.failures
        return [AnswerProblem(message=f"reload socket {path}: {why}") for path, why in failures.items()]

    def _respond(self, line: ReloadLine | UnknownLine) -> Answer:
        if isinstance(line, ReloadLine):
            return self._desk.ask("socket", forced=line.forced)
        self._log.warning("reload-line-unknown", reason=line.reason)
        return bad(line.reason)

    def _status(self, _: Call) -> Answer:
        degraded = snapshots.read_degraded(self._paths)
        return good(
            program="reload",
            pid=os.getpid(),
            started_at=self._started_at,
            version=appliance.__version__,
            snapshot=self._changeover.accepted.number,
            busy=self._desk.busy,
            reloads=self._desk.counts,
            last=self._desk.last,
            refused=as_values(self._desk.refused),
            degraded=as_values(degraded.problems) if degraded else None,
            socket_failures=self._sockets.failures,
            not_kept=self._changeover.not_kept,
        )


def main() -> None:
    """Run the program; without anything to obey it ends with its reasons on standard error."""
    capabilities.keep_from_children()
    paths = Paths.from_environment(os.environ)
    _wait_for_predecessor(paths.runtime / "reload.lock")
    try:
        accepted = snapshots.read(paths.accepted) or _chosen(paths)
    except SnapshotError:
        accepted = _chosen(paths)
    log = obey("reload", accepted.log)
    ReloadProgram(paths, accepted, log).run()


def _wait_for_predecessor(path: Path) -> None:
    """Wait for one that a killed supervisord has left: the change that it ends is accepted after all.

    It is not waited for longer than that may take; without a lock we go on as well.
    """
    deadline, log = time.monotonic() + _PREDECESSOR, configure("reload", level="info", form="json")
    try:
        while lock_files.hold(path) is None:  # held until this process ends
            if time.monotonic() > deadline:
                log.warning("predecessor-runs", path=str(path))
                return
            log.info("predecessor-awaited", path=str(path))
            gevent.sleep(_LOOK_AGAIN)
    except OSError as error:
        log.warning("lock-not-made", path=str(path), reason=error.strerror)


def _chosen(paths: Paths) -> Snapshot:
    """Return what a start of the appliance would take, where what is obeyed can be read no more."""
    from appliance.net.reloading import boot  # noqa: PLC0415  # the validator, for this case only

    log = configure("reload", level="info", form="json")
    try:
        start = boot.choose(paths)
        not_kept = boot.write(paths, start)
    except boot.BootError as error:
        sys.exit(f"{paths.accepted}: nothing to obey; `appliance run` writes it: {error}")
    for each in (*start.damaged, *not_kept):
        log.error("state-damaged", reason=each.message)
    return start.snapshot


if __name__ == "__main__":
    main()
