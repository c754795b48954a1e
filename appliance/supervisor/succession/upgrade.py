"""A release that takes over because this supervisord was ordered to start it: by an operator, or by a signal.

    appliance upgrade   ->   supervisord starts `appliance run` of that release as its child
                             that one takes over, as every second `appliance run` does
    appliance upgrade   <-   it is in charge, or why not

The child asks to take over as any other does. The only difference is that we know its process: systemd is
notified that it is the service's now, and the operator learns how it ended.
"""

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from appliance.supervisor.succession.dialogue import Due, refuse
from appliance.supervisor.succession.line_connection import LineConnection
from appliance.supervisor.succession.reports import SuccessionReports
from appliance.supervisor.succession.take_over_state import Phase, TakeOverState
from appliance.wire.lines.control import Question, bad, encode_answer, good
from appliance.wire.lines.succession import COMMAND, SuccessionError, decode_command, wanted_command

_ASKS_WITHIN: Final = 120.0  # seconds for it to read the configuration and load its programs
_LONGEST_REFUSAL: Final = 8192  # bytes read of the reason why it does not start
_FIRST_PROCESS: Final = (
    "it is the first process of its container, which ends with it: start one of the other release beside it"
)
_ROOT_ONLY: Final = "not permitted: it runs with capabilities, so only root may choose what has them next"


class Starter(Protocol):
    """Starts a release as our child, and notifies the service manager."""

    def start(self, command: Sequence[str], *, refusals: int, ended: Callable[[str], None]) -> int:
        """Start it, and return its process id; `ended` is called with how it exited. Raises OSError."""
        ...

    def main_process(self, pid: int) -> None:
        """Notify the service manager that this process is now the main one of the service."""
        ...

    def is_privileged(self) -> bool:
        """Return whether the releases that we start have rights that our user alone does not have."""
        ...


@dataclass(slots=True, kw_only=True)
class _Started:
    """The release that was started: its process, until when it may ask, and the client to answer."""

    pid: int
    refusals: int
    deadline: float
    connection: LineConnection | None
    asked: bool = False


class Upgrade:
    """The one release at a time that we have started to replace us."""

    def __init__(
        self, state: TakeOverState, *, due: Due, reports: SuccessionReports, starter: Starter
    ) -> None:
        self._state, self._due, self._reports, self._starter = state, due, reports, starter
        self._started: _Started | None = None

    @property
    def busy(self) -> bool:
        """Return whether a started release is on its way."""
        return self._started is not None

    def asked(self, connection: LineConnection, question: Question, now: float, *, refusal: str) -> None:
        """Start the release that an operator names over a connection, or refuse."""
        try:
            command = wanted_command(question)
        except SuccessionError as error:
            refuse(connection, str(error))
            return
        if connection.user != 0 and self._starter.is_privileged():
            refuse(connection, _ROOT_ONLY)
        elif reason := refusal or self._start(command, now, connection):
            refuse(connection, reason)

    def signalled(self, now: float, environment: Mapping[str, str], *, refusal: str) -> None:
        """Run the command again that started this release: it runs the release installed there now."""
        try:
            reason = refusal or self._start(decode_command(environment.get(COMMAND, "")), now, None)
        except SuccessionError as error:
            reason = f"{COMMAND}: {error}"
        if reason:
            self._reports.not_upgraded(reason)

    def look(self, now: float) -> None:
        """End a release that takes too long to ask; called at each turn of the loop."""
        started = self._started
        if started is None:
            return
        if self._state.phase is not Phase.SERVING and self._state.other_pid == started.pid:
            started.asked = True
        elif not started.asked and now > started.deadline:
            started.deadline = now + _ASKS_WITHIN
            _kill(started.pid)

    def relieved(self, pid: int) -> None:
        """Notify the service manager and the operator, if the started release is in charge now."""
        if self._started and self._started.pid == pid:
            self._starter.main_process(pid)
            other = self._state.other
            self._answer(encode_answer(good(version=other.version, pid=pid)))

    def resumed(self, pid: int, reason: str) -> None:
        """Notify the operator that the started release could not take over."""
        if self._started and self._started.pid == pid:
            self._started.asked = True
            self._answer(encode_answer(bad(reason)))

    def abandon(self) -> None:
        """End the started release, unless it takes over already: we stop, and it would continue alone."""
        if self._started and not self._started.asked:
            _kill(self._started.pid)

    def _start(self, command: Sequence[str], now: float, connection: LineConnection | None) -> str:
        """Return why it cannot be started, "" if it was started."""
        if self._started:
            return f"process {self._started.pid} was started to take over, and is on its way"
        if os.getpid() == 1 or not os.getppid():  # its parent is in another PID namespace
            return _FIRST_PROCESS
        reading, writing = os.pipe()
        os.set_blocking(reading, False)
        try:
            pid = self._starter.start(
                command, refusals=writing, ended=lambda how: self._due.add(lambda _: self._forget(how))
            )
        except OSError as error:
            os.close(reading)
            return f"{command[0]}: {error.strerror}"
        finally:
            os.close(writing)
        self._started = _Started(
            pid=pid, refusals=reading, deadline=now + _ASKS_WITHIN, connection=connection
        )
        self._reports.upgrading(command, pid)
        return ""

    def _forget(self, how: str) -> None:
        """Report why it exited if it has not asked; otherwise that was reported already."""
        started, self._started = self._started, None
        if started is None:
            return
        refusal = _read(started.refusals)
        os.close(started.refusals)
        if not started.asked:
            reason = refusal or f"{how}: see the log for the reason"
            self._reports.not_upgraded(reason)
            if started.connection:
                refuse(started.connection, reason)

    def _answer(self, line: bytes) -> None:
        started = self._started
        if started and started.connection:
            started.connection.send(line)
            started.connection.close()
            started.connection = None


def _read(refusals: int) -> str:
    try:
        return os.read(refusals, _LONGEST_REFUSAL).decode(errors="replace").strip()
    except OSError:  # nothing was written, and another process still holds the other end
        return ""


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return  # it has exited
