"""The programs that obey snapshots, as the reload program asks them: prepare, commit, abort, and who is up.

A program that is down takes the accepted snapshot when it starts, so it does not stand in a reload's way.
One that runs and does not answer does: it would go on with a configuration that nobody asked for.
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import gevent

from appliance.core.acceptance import PROGRAMS
from appliance.model.paths import Paths
from appliance.net.control import ControlClient, ControlUnavailable
from appliance.net.supervisor_rpc import ProcessInfo, Supervisor, SupervisorUnavailable
from appliance.wire.control import Answer, Question, bad

_COMING_UP: Final = frozenset({"STARTING", "RUNNING"})
_FAILING: Final = frozenset({"BACKOFF", "FATAL", "EXITED"})
_LOOK_AGAIN: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """Longest waits, seconds: for a sign of life, a start, and each step of a change."""

    life: float = 5.0
    start: float = 15.0
    prepare: float = 60.0
    commit: float = 30.0
    abort: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """A program that is not there to be asked, and what supervisord says about it."""

    reason: str


Outcome = Answer | Down


class Fleet:
    """All programs of one appliance."""

    def __init__(self, paths: Paths, *, patience: Patience) -> None:
        self._paths = paths
        self._patience = patience
        self._supervisor = Supervisor(paths.supervisor_socket, timeout=patience.life)

    def prepare(self, programs: Iterable[str], number: int) -> dict[str, Outcome]:
        """Ask all at once to do everything of a snapshot that can fail."""
        return self._ask_all("prepare", programs, number, self._patience.prepare)

    def commit(self, programs: Iterable[str], number: int) -> dict[str, Outcome]:
        """Ask one after the other to make a snapshot real."""
        return {each: self._ask(each, "commit", number, self._patience.commit) for each in programs}

    def abort(self, programs: Iterable[str], number: int) -> dict[str, Outcome]:
        """Ask all at once to forget a snapshot."""
        return self._ask_all("abort", programs, number, self._patience.abort)

    def snapshot_of(self, program: str) -> int | None:
        """Return the number of the snapshot that a program obeys, None where it does not say."""
        said = self._ask(program, "status", None, self._patience.life)
        number = said.values.get("snapshot") if isinstance(said, Answer) else None
        return number if isinstance(number, int) else None

    def start(self, programs: Iterable[str]) -> None:
        """Have programs started; raises SupervisorUnavailable."""
        for each in programs:
            self._supervisor.start(each)

    def stop(self, programs: Iterable[str]) -> None:
        """Have programs stopped; raises SupervisorUnavailable."""
        for each in programs:
            self._supervisor.stop(each)

    def put_right(self, programs: Collection[str]) -> None:
        """Start those that never ran, stop others of ours that run; raises SupervisorUnavailable.

        A program that has run and is stopped was stopped by the operator, and stays so.
        """
        processes = self.processes()
        never = (each for each in programs if each in processes and processes[each].started_at is None)
        self.start(each for each in never if processes[each].state == "STOPPED")
        known = (each for each in PROGRAMS if each in processes and each not in programs)
        self.stop(each for each in known if processes[each].state in _COMING_UP | _FAILING)

    def try_again(self, program: str) -> None:
        """Have a program that failed to start started now, not when its pause is over."""
        if self._state(program) in _FAILING:
            self._supervisor.stop(program)
            self._supervisor.start(program)

    def processes(self) -> Mapping[str, ProcessInfo]:
        """Return what supervisord knows; empty where there is none."""
        try:
            return {each.name: each for each in self._supervisor.processes()}
        except SupervisorUnavailable:
            return {}

    def wait_for(self, program: str) -> Down | None:
        """Return once a program that is coming up can be asked; Down where it is not or takes too long."""
        return self._wait(program, lambda: self._can_be_asked(program))

    def wait_until_obeys(self, program: str, number: int) -> Down | None:
        """Return once a program obeys a snapshot; Down where it is not coming up or takes too long."""
        return self._wait(program, lambda: self.snapshot_of(program) == number)

    def _wait(self, program: str, condition: Callable[[], bool]) -> Down | None:
        deadline = time.monotonic() + self._patience.start
        while not condition():
            if self._state(program) not in _COMING_UP or time.monotonic() > deadline:
                return Down(reason=self._description(program))
            gevent.sleep(_LOOK_AGAIN)
        return None

    def _ask_all(
        self, command: str, programs: Iterable[str], number: int, timeout: float
    ) -> dict[str, Outcome]:
        asked = {each: gevent.spawn(self._ask, each, command, number, timeout) for each in programs}
        return {each: greenlet.get() for each, greenlet in asked.items()}

    def _ask(self, program: str, command: str, number: int | None, timeout: float) -> Outcome:
        values = {} if number is None else {"snapshot": number}
        try:
            client = ControlClient(self._paths.control(program), timeout=self._patience.life)
        except ControlUnavailable as error:
            return Down(reason=str(error))
        with client:
            try:
                client.ask(Question(command="status"), timeout=self._patience.life)
                return client.ask(Question(command=command, values=values), timeout=timeout)
            except ControlUnavailable as error:
                return bad(str(error))

    def _can_be_asked(self, program: str) -> bool:
        try:
            ControlClient(self._paths.control(program), timeout=self._patience.life).close()
        except ControlUnavailable:
            return False
        return True

    def _state(self, program: str) -> str:
        process = self.processes().get(program)
        return process.state if process else ""

    def _description(self, program: str) -> str:
        process = self.processes().get(program)
        if process is None:
            return "supervisord does not know it"
        return f"{process.state}: {process.spawn_error}" if process.spawn_error else process.state
