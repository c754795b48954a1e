"""The programs that use snapshots, as the reload program controls them: prepare, commit, abort, status.

A program that is down reads the accepted snapshot when it starts, so it does not block a reload. One that
runs and does not answer does: it would keep a configuration that nobody asked for.
"""

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import gevent
import msgspec

from appliance.core.program_table import CONFIGURED
from appliance.model.paths import Paths
from appliance.net.control.control_client import ControlClient, ControlUnavailable, ask
from appliance.net.files import state_files
from appliance.net.files.atomic_write import write_whole
from appliance.net.process.own_processes import own_processes
from appliance.net.supervision.supervisor_rpc import ProcessInfo, SupervisorClient, SupervisorUnavailable
from appliance.wire.lines.control import Answer, Question

_COMING_UP: Final = frozenset({"STARTING", "RUNNING"})
_FAILING: Final = frozenset({"BACKOFF", "FATAL", "EXITED"})
_LOOK_AGAIN: Final = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramTimeouts:
    """Longest waits in seconds: `life` for any answer, `start` for a program to come up, and each step.

    `prepare` is longer than a proxy waits for its workers, so that the proxy can report the cause.
    """

    life: float = 5.0
    start: float = 15.0
    prepare: float = 120.0
    commit: float = 30.0
    abort: float = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramDown:
    """A program that is not running, and its state as supervisord reports it."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramUnreachable:
    """A program that runs and cannot be asked: it would continue with another configuration, unseen."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLost:
    """A program that got a command and gave no answer: it exited, or it hangs."""

    reason: str


Outcome = Answer | ProgramDown | ProgramLost

_PROXY: Final = "proxy-"


class _Stopped:
    """Names of the programs that `reload` stopped; on disk, as `reload` may be killed meanwhile."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def names(self) -> frozenset[str]:
        return frozenset(state_files.decoded(self._path, list[str]) or ())

    def add(self, name: str) -> None:
        self._write(self.names() | {name})

    def discard(self, name: str) -> None:
        self._write(self.names() - {name})

    def _write(self, names: frozenset[str]) -> None:
        if names != self.names():
            state_files.clear_way(self._path)
            write_whole(self._path, msgspec.json.encode(sorted(names)))


class ProgramClients:
    """All programs of one appliance."""

    def __init__(self, paths: Paths, *, timeouts: ProgramTimeouts) -> None:
        self._paths = paths
        self._timeouts = timeouts
        self._supervisor = SupervisorClient(paths.supervisor_socket, timeout=timeouts.life)
        self._stopped = _Stopped(paths.runtime / "stopped.json")
        self._kept: dict[str, ControlClient] | None = None

    @contextmanager
    def connections(self) -> Iterator[None]:
        """Keep the connections for all steps of one change: most of a step's time is that of its connects."""
        self._kept = {}
        try:
            yield
        finally:
            kept, self._kept = self._kept, None
            for each in kept.values():
                each.close()

    def prepare(self, programs: Iterable[str], number: int, *, forced: bool = False) -> dict[str, Outcome]:
        """Ask all at once to do everything for a snapshot that can fail; `forced` is passed to them."""
        more = {"forced": True} if forced else {}
        return self._ask_all("prepare", programs, number, self._timeouts.prepare, **more)

    def commit(self, steps: Iterable[Iterable[str]], number: int) -> dict[str, Outcome]:
        """Order the programs to make a snapshot real: those of a step at once, one step after another."""
        outcomes: dict[str, Outcome] = {}
        for programs in steps:
            outcomes |= self._ask_all("commit", programs, number, self._timeouts.commit)
        return outcomes

    def abort(self, programs: Iterable[str], number: int) -> dict[str, Outcome]:
        """Order all at once to forget a snapshot."""
        return self._ask_all("abort", programs, number, self._timeouts.abort)

    def order(self, program: str, command: str, **values: object) -> Outcome:
        """Send one program a command that changes no configuration."""
        return self._ask(program, command, None, self._timeouts.commit, **values)

    def snapshot_of(self, program: str) -> int | None:
        """Return the number of the snapshot that a program has, None if it does not answer."""
        answer = self._status(program)
        number = answer.values.get("snapshot") if answer else None
        return number if isinstance(number, int) else None

    def has_applied(self, program: str, number: int) -> bool:
        """Return whether a program has applied a snapshot, in all its workers if it has any."""
        answer = self._status(program)
        return (
            answer is not None
            and answer.values.get("snapshot") == number
            and not answer.values.get("failure")
        )

    def start(self, program: str) -> None:
        """Start a program, once it has ended; raises SupervisorUnavailable, OSError."""
        if not self._has_ended(program):
            self._stopped.add(program)
            raise SupervisorUnavailable(f"{program} is still stopping: it is started when it has ended")
        self._supervisor.start(program)
        self._stopped.discard(program)

    def stop(self, program: str) -> None:
        """Stop a program; raises SupervisorUnavailable, OSError (the stop could not be noted)."""
        try:
            self._stopped.add(program)
        finally:
            self._supervisor.stop(program)

    def put_right(self, programs: Collection[str]) -> None:
        """Start needed programs that never ran or that `stop` stopped; stop others of ours that run.

        Any other stopped program was stopped by the operator, and stays stopped. Raises
        SupervisorUnavailable, OSError.
        """
        processes, ours = self.processes(), self._stopped.names()
        needed = [processes[each] for each in programs if each in processes]
        for each in needed:
            if each.state == "STOPPED" and (each.started_at is None or each.name in ours):
                self.start(each.name)
        others = (processes[each] for each in CONFIGURED if each in processes and each not in programs)
        for each in others:
            if each.state in _COMING_UP | _FAILING:
                self.stop(each.name)
        for each in needed:
            if each.state in _COMING_UP:
                self._stopped.discard(each.name)

    def try_again(self, program: str) -> None:
        """Restart a program that failed to start now, not at the end of its pause."""
        if self._state(program) in _FAILING:
            # supervisord refuses to start a program in BACKOFF, but starts a stopped one.
            self.stop(program)
            self.start(program)

    def processes(self) -> Mapping[str, ProcessInfo]:
        """Return the processes that supervisord lists; empty without a supervisord."""
        try:
            return {each.name: each for each in self._supervisor.processes()}
        except SupervisorUnavailable:
            return {}

    def wait_for(self, program: str) -> ProgramDown | ProgramUnreachable | None:
        """Return once a program that is coming up or runs can be asked.

        Return Down if it does not come up or takes too long, Unreachable if it runs and cannot be asked in
        that time.
        """
        down = self._wait(program, lambda: self._can_be_asked(program))
        if down is not None and self._runs(program):
            return ProgramUnreachable(
                reason=f"it runs, and does not answer at {self._paths.control(program)}"
            )
        return down

    def wait_until_applied(self, program: str, number: int) -> ProgramDown | None:
        """Wait until a program has a snapshot; return ProgramDown if it does not start or takes too long."""
        return self._wait(program, lambda: self.snapshot_of(program) == number)

    def _has_ended(self, program: str) -> bool:
        """Wait while a program is stopping: supervisord would accept a start, and do nothing."""
        deadline = time.monotonic() + self._timeouts.start
        while self._state(program) == "STOPPING":
            if time.monotonic() > deadline:
                return False
            gevent.sleep(_LOOK_AGAIN)
        return True

    def _wait(self, program: str, condition: Callable[[], bool]) -> ProgramDown | None:
        deadline = time.monotonic() + self._timeouts.start
        while not condition():
            if not self._is_coming(program) or time.monotonic() > deadline:
                return ProgramDown(reason=self._description(program))
            gevent.sleep(_LOOK_AGAIN)
        return None

    def _ask_all(
        self, command: str, programs: Iterable[str], number: int, timeout: float, **more: object
    ) -> dict[str, Outcome]:
        asked = {each: gevent.spawn(self._ask, each, command, number, timeout, **more) for each in programs}
        return {each: greenlet.get() for each, greenlet in asked.items()}

    def _status(self, program: str) -> Answer | None:
        try:
            return ask(self._paths.control(program), Question(command="status"), timeout=self._timeouts.life)
        except ControlUnavailable:
            return None

    def _ask(self, program: str, command: str, number: int | None, timeout: float, **more: object) -> Outcome:
        values = more if number is None else {"snapshot": number, **more}
        try:
            client = self._connect(program)
        except ControlUnavailable as error:
            return ProgramDown(reason=str(error))
        try:
            if timeout > self._timeouts.commit:
                # A hanging program still accepts connections, in its backlog. It is detected here, within a
                # few seconds; the command itself may legitimately take two minutes.
                client.ask(Question(command="status"), timeout=self._timeouts.life)
            return client.ask(Question(command=command, values=values), timeout=timeout)
        except ControlUnavailable as error:
            return ProgramLost(reason=str(error))
        finally:
            self._leave(client)

    def _can_be_asked(self, program: str) -> bool:
        try:
            self._leave(self._connect(program))
        except ControlUnavailable:
            return False
        return True

    def _connect(self, program: str) -> ControlClient:
        """Return a connection to be given to `_leave`; raises ControlUnavailable."""
        kept = self._kept.get(program) if self._kept is not None else None
        if kept is not None:
            if not kept.is_gone:
                return kept
            kept.close()
        made = ControlClient(self._paths.control(program), timeout=self._timeouts.life)
        if self._kept is not None:
            self._kept[program] = made
        return made

    def _leave(self, client: ControlClient) -> None:
        if self._kept is None:
            client.close()

    def _is_coming(self, program: str) -> bool:
        """Return whether a program comes up or runs; then its control socket is there soon."""
        state = self._state(program)
        return state in _COMING_UP or (not state and self._is_there(program))

    def _runs(self, program: str) -> bool:
        """Return whether a program has been up for a while: a starting one reads the accepted snapshot."""
        state = self._state(program)
        return state == "RUNNING" or (not state and self._is_there(program))

    def _is_there(self, program: str) -> bool:
        """Return whether the process of a program exists, for when no supervisord can be asked."""
        module, group = (
            ("proxy", (program.removeprefix(_PROXY),)) if program.startswith(_PROXY) else (program, ())
        )
        wanted = (f"appliance.programs.{module}", group)
        return any((each.module, each.arguments) == wanted for each in own_processes(self._paths.runtime))

    def _state(self, program: str) -> str:
        process = self.processes().get(program)
        return process.state if process else ""

    def _description(self, program: str) -> str:
        process = self.processes().get(program)
        if process is None:
            return "supervisord does not know it"
        return f"{process.state}: {process.spawn_error}" if process.spawn_error else process.state
