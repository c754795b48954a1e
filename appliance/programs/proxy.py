"""The program `proxy-<group>`: the master of one group's workers, from its start to its end.

At its start it takes over what an earlier master left, so a kill costs nothing. The effect of TERM depends on
supervisord: if it shuts down, or none started the master, the workers drain and the master ends with them; if
only the master is restarted, or supervisord died, it leaves them serving for the next master. USR1 is TERM
without a deadline, as in HAProxy: sessions end on their own, or a later TERM gives them the drain time.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Sequence

import gevent

from appliance.core.rollout.states import GenerationState, WorkerId
from appliance.core.rollout.timing import NO_DEADLINE, Timing
from appliance.model.paths import Paths
from appliance.model.program_names import REDIRECT
from appliance.net.boards.hub_heartbeat import HubHeartbeat
from appliance.net.control.control_client import ControlUnavailable, ask
from appliance.net.control.control_server import ControlServer
from appliance.net.files import program_failures, snapshots
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.logging.line_limiter import limiter
from appliance.net.privileges import capabilities
from appliance.net.process import limits
from appliance.net.process.signals import survive
from appliance.net.starting.accepted_log import AcceptedLog
from appliance.net.supervision.appliance_end import everything_ends
from appliance.proxy.generation_numbers import AlreadyRunning, GenerationNumbers
from appliance.proxy.master import WORKER, ProxyMaster
from appliance.proxy.nursery import begin as begin_nursery
from appliance.proxy.status import status
from appliance.wire.lines.control import AnswerProblem, Question, good

_RETRY_FIRST = 1.0
_RETRY_LONGEST = 30.0
_BROKEN = 70  # EX_SOFTWARE of sysexits.h; supervisord starts the program again
_LEAVE_TIMEOUT = 20.0  # seconds that orphans wait for a next master before they drain
_WITHDRAWN = 2.0  # seconds for `redirect` to remove its rules
_LAST_ANSWER = 2.0  # seconds for workers to answer an exiting master


class Proxy:
    """The running program."""

    def __init__(self, paths: Paths, master: ProxyMaster) -> None:
        self._paths = paths
        self._master = master
        self._state = master.state
        self._signals = 0
        self._soft = False
        self._started_at = time.time()

    def run(self) -> int:
        """Serve until asked to end, and return the exit status."""
        for number in (signal.SIGTERM, signal.SIGINT):
            gevent.signal_handler(number, self._note_signal)
        gevent.signal_handler(signal.SIGUSR1, self._note_soft_stop)
        server = ControlServer(
            self._paths.control(self._state.program),
            {
                "status": lambda _: good(**status(self._master, started_at=self._started_at)),
                **self._master.commands,
            },
            on_error=lambda command, error: self._state.log.error(
                "command-failed", command=command, exc_info=error
            ),
            for_readers={"status"},
        )
        try:
            return self._serve()
        finally:
            server.close()

    def _serve(self) -> int:
        starting = gevent.spawn(self._start)  # it waits for the take-over, before any command can
        starting.link(lambda _: self._state.changed.set())
        self._master.take_over()
        gevent.spawn(limiter().follow, gevent.sleep)
        self._wait(lambda: starting.ready() or self._told_to_end())
        if starting.ready() and not starting.get():
            return 1
        self._wait(lambda: self._told_to_end() or (self._state.retired and not self._master.workers))
        starting.kill()
        if self._state.broken:
            return _BROKEN
        if not self._told_to_end():
            self._state.log.info("nothing-to-do", reason="the configuration has no such group")
        return self._end()

    def _start(self) -> bool:
        """Run the accepted snapshot; while orphans serve, try again until it runs."""
        pause = _RETRY_FIRST
        while problems := self._try_start():
            self._note_failure(problems)
            if self._state.rollout.accepting is None and self._state.pending is None:
                return False
            gevent.sleep(pause)
            pause = min(2 * pause, _RETRY_LONGEST)
        program_failures.remove(self._paths, self._state.program)
        return True

    def _try_start(self) -> tuple[AnswerProblem, ...]:
        with self._state.lock:
            accepted = snapshots.accepted(self._paths, self._state.log)
            if accepted is None:
                return (
                    AnswerProblem(message=f"{self._paths.accepted}: no configuration that could be used"),
                )
            return self._master.start(accepted)

    def _note_failure(self, problems: tuple[AnswerProblem, ...]) -> None:
        failure = ProgramFailure(since=time.time(), problems=problems)
        self._state.failure = failure
        self._state.log.error("start-failed", reason=failure.reason)
        program_failures.write(self._paths, self._state.program, failure)

    def _told_to_end(self) -> bool:
        return bool(self._signals) or self._soft or self._state.broken

    # The end

    def _end(self) -> int:
        master = self._master
        self._state.stopping = True
        if everything_ends(self._paths):
            self._state.closing = True
            self._withdraw_redirects()
            if self._soft:
                self._drain(None, until=1)
            self._drain(self._state.rollout.drain_settings.drain, until=2)
            master.workers.end(timeout=_LAST_ANSWER)
        else:
            self._leave()
        self._state.log.info("stopped")
        return 0

    def _drain(self, seconds: float | None, *, until: int) -> None:
        """Drain within these seconds, None for no deadline; return early after this many signals."""
        master = self._master
        if self._signals < until and len(master.workers):
            self._state.log.info("stopping", workers="drain", seconds=seconds)
        master.retire(within=NO_DEADLINE if seconds is None else seconds)
        self._wait(lambda: self._signals >= until or not len(master.workers))

    def _withdraw_redirects(self) -> None:
        """Make `redirect` remove the rules that lead here, while we accept; without it there are none."""
        current = self._state.current
        group = current.group(self._state.group) if current else None
        if group is None or not any(each.redirect for each in group.frontends):
            return
        question = Question(command="withdraw", values={"program": self._state.program})
        try:
            ask(self._paths.control(REDIRECT), question, timeout=_WITHDRAWN)
        except ControlUnavailable as error:
            self._state.log.warning("redirect-not-withdrawn", reason=str(error))

    def _leave(self) -> None:
        """Exit without the workers: those that serve wait for the next master, drains continue."""
        master = self._master
        master.give_up_pending()
        serving = [each for each in self._serving() if master.workers.pid(each)]
        self._state.log.info("stopping", workers="left", serving=len(serving))
        question = Question(command="leave", values={"patience": _LEAVE_TIMEOUT})
        master.workers.tell_now(question, serving, timeout=_LAST_ANSWER)

    def _serving(self) -> list[WorkerId]:
        generations = self._state.rollout.generations.values()
        return [
            worker.id
            for generation in generations
            if generation.state is not GenerationState.DRAINING
            for worker in generation.workers.values()
        ]

    def _wait(self, condition: Callable[[], bool]) -> None:
        while not condition():
            self._state.changed.wait()
            self._state.changed.clear()

    def _note_signal(self) -> None:
        self._signals += 1
        self._state.changed.set()

    def _note_soft_stop(self) -> None:
        self._soft = True
        self._state.changed.set()


def run(group: str, paths: Paths, *, module: Sequence[str] = WORKER, timing: Timing | None = None) -> int:
    """Run as the master of a group until asked to end, and return the exit status."""
    # Workers inherit it. They outlive us, and must also outlive a terminal from which we were started: its
    # end is SIGHUP for every process of the session.
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    survive(signal.SIGUSR2)
    files = limits.raise_open_files()
    nursery = begin_nursery(module[-1], group)  # first of all: it has nothing of this process
    program = f"proxy-{group}"
    logger = AcceptedLog(program, paths).logger
    try:
        numbers = GenerationNumbers(paths.runtime / f"{program}.lock")
    except (AlreadyRunning, OSError) as error:
        logger.error("start-failed", reason=str(error))  # noqa: TRY400  # the reason is the operator's, not ours
        return 1
    logger.info("starting", open_files=files, processors=limits.processors())
    heartbeat = HubHeartbeat(paths.heartbeat(program), logger)
    master = ProxyMaster(
        paths, group, numbers=numbers, logger=logger, module=module, nursery=nursery, timing=timing
    )
    ended = Proxy(paths, master).run()
    heartbeat.close()
    if nursery:
        nursery.close()
    return ended


def main() -> int:
    """Run the program for the group named by its only argument."""
    arguments = sys.argv[1:]
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m appliance.programs.proxy GROUP\n")
        return 2
    capabilities.keep_from_children()
    return run(arguments[0], Paths.from_environment(os.environ))


if __name__ == "__main__":
    sys.exit(main())
