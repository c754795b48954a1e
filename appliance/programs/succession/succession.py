"""Our part in a take-over of a running appliance by another one, as the one that is asked or that asks.

    new: take-over   ->   old: stands by: it restarts nothing, and lets its programs be ended
    new: ends the old programs, starts its own, which take sockets, sessions and addresses over
    new: done        ->   old: is relieved, and ends when the last of its processes has

Each watches the connection. If the new one dies, says `give-back` or takes too long, the old one goes on: it
ends what the new one started, and starts what it lacks, by the same take-overs. If the old one dies, the new
one goes on alone. If the old one is told to end, it withdraws, and the new one gives way. So there is one of
the two that ends in charge, at whatever line either of them is killed.
"""

import os
import signal
import socket
import time
from collections.abc import Callable, Mapping
from enum import Enum, auto
from typing import Final, Protocol

from structlog.typing import FilteringBoundLogger

from appliance import __version__
from appliance.model.operator_events import EventKind, OperatorEvent, Tell
from appliance.model.paths import Paths
from appliance.net.files import taken_over
from appliance.net.files.lock_files import KeptLock
from appliance.net.files.taken_over import TakenOver
from appliance.net.process import subreaper
from appliance.programs.succession.line_connection import LineConnection, SocketMap
from appliance.programs.succession.listener import SuccessionListener
from appliance.programs.succession.readiness import NotReady, not_ready
from appliance.wire.lines.control import (
    Answer,
    ControlError,
    Question,
    bad,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
    good,
)
from appliance.wire.lines.succession import (
    DONE,
    GIVE_BACK,
    INSTANCE,
    TAKE_OVER,
    Party,
    Predecessor,
    SuccessionError,
    party,
    values_of,
)

_READY_WITHIN: Final = 45.0  # seconds for the programs of the new one to serve
_FAILS_FOR: Final = 5.0  # seconds in which what has failed may still come up
_DONE_WITHIN: Final = 60.0  # seconds after which the old one goes on; longer than the new one waits itself
_MARGIN: Final = 5.0  # seconds beyond the drain for the last workers of the one that was relieved
_GIVEN_BACK_WITHIN: Final = 30.0  # seconds for the old one to end what the new one has started


class Phase(Enum):
    """What we are in a take-over. RELIEVED: another one is in charge, and we end when our children have."""

    SERVING = auto()
    TAKING_OVER = auto()
    STANDING_BY = auto()
    RELIEVED = auto()


class Supervised(Protocol):
    """The programs of this supervisord."""

    def refusal(self) -> str:
        """Return why they cannot be left to another one now, "" where they can."""
        ...

    def programs(self) -> Mapping[str, int]:
        """Return those that are to run, with the process id of each, 0 while it does not run for good."""
        ...

    def given_up(self) -> str:
        """Return why one of them will not come up, "" as long as all may."""
        ...

    def drain(self) -> float:
        """Return the seconds that sessions have to end."""
        ...

    def stand_by(self) -> None:
        """Restart nothing, and answer nobody."""
        ...

    def resume(self, *, former: str) -> None:
        """Supervise again, after the instance `former`: end what it started, and start what is missing."""
        ...


class Succession:
    """The take-overs of one supervisord; `predecessor` is whom it takes over from itself, at first."""

    def __init__(  # what it connects
        self,
        paths: Paths,
        log: FilteringBoundLogger,
        *,
        tell: Tell,
        lock: KeptLock,
        supervised: Supervised,
        socket_map: SocketMap,
        predecessor: Predecessor | None = None,
    ) -> None:
        self.phase = Phase.SERVING
        self.failed = False
        self._paths, self._log, self._tell, self._lock = paths, log, tell, lock
        self._supervised, self._map = supervised, socket_map
        self._ours = Party(version=__version__, instance=os.environ.get(INSTANCE, ""))
        self._predecessor = predecessor
        self._other: LineConnection | None = None
        self._other_pid, self._theirs = 0, Party()
        self._deadline, self._failing_since, self._said_done = 0.0, 0.0, False
        self._due: list[Callable[[float], None]] = []
        self._listener: SuccessionListener | None = None

    def begin(self, now: float) -> None:
        """Listen, or go on with the one that stands by for us."""
        if self._predecessor is None:
            self._listen()
            return
        found = self._predecessor
        self.phase, self._deadline = Phase.TAKING_OVER, now + _READY_WITHIN
        self._other_pid = found.pid
        self._theirs = Party(version=found.version, instance=found.instance)
        connection = socket.socket(fileno=found.connection)
        connection.set_inheritable(False)
        self._connect(connection, self._predecessor_said, self._predecessor_gone)

    def tick(self, now: float) -> bool:
        """Do what is due, and say whether this process is to end; called at each turn of the loop."""
        while self._due:
            self._due.pop(0)(now)
        if self._listener:
            self._listener.keep(now)
        if self.phase is Phase.TAKING_OVER:
            self._look(now)
        elif self.phase is Phase.STANDING_BY and now > self._deadline:
            self._withdraw(f"not done within {_DONE_WITHIN:g} s", kill=True)
        return self.phase is Phase.RELIEVED and (now > self._deadline or not subreaper.children())

    def told_to_end(self) -> bool:
        """Say whether nothing is left to be stopped, as another one is in charge."""
        if self.phase is Phase.STANDING_BY:
            self._withdraw("it was told to end", kill=False)
        elif self.phase is Phase.TAKING_OVER:
            self._give_back("told to end", time.monotonic())
        elif self.phase is Phase.RELIEVED:
            self._deadline = 0.0
        return self.phase is Phase.RELIEVED

    @property
    def busy(self) -> bool:
        """Return whether a take-over is under way, and the loop is to look often."""
        return self.phase is not Phase.SERVING

    def close(self) -> None:
        """Listen no more."""
        if self._listener:
            self._listener.close()
            self._listener = None

    def _listen(self) -> None:
        try:
            self._listener = SuccessionListener(self._paths.succession_socket, self._map, self._asked)
        except OSError as error:
            self._log.warning("cannot-be-taken-over", reason=error.strerror or str(error))

    def _connect(
        self,
        connection: socket.socket | LineConnection,
        said: Callable[[bytes, float], None],
        gone: Callable[[float], None],
    ) -> None:
        """Have what the other side does handled at the next tick: it changes what the loop goes round."""
        other = (
            connection if isinstance(connection, LineConnection) else LineConnection(connection, self._map)
        )
        other.on_line = lambda line: self._due.append(
            lambda now: said(line, now) if self._other is other else None
        )
        other.on_end = lambda: self._due.append(lambda now: gone(now) if self._other is other else None)
        self._other = other

    def _hang_up(self) -> None:
        if self._other:
            self._other.close()
        self._other = None

    # The one that is asked

    def _asked(self, connection: LineConnection, line: bytes) -> None:
        self._due.append(lambda now: self._answer(connection, line, now))

    def _answer(self, connection: LineConnection, line: bytes, now: float) -> None:
        try:
            question = decode_question(line)
            theirs = party(question.values)
        except (ControlError, SuccessionError) as error:
            _refuse(connection, str(error))
            return
        pid = connection.peer
        reason = (
            self._refusal(question.command)
            if pid
            else "it runs in another PID namespace: containers need --pid=host"
        )
        if reason:
            _refuse(connection, reason)
            return
        self._log.warning("standing-by", version=theirs.version, pid=pid)
        self._supervised.stand_by()
        self.phase, self._deadline = Phase.STANDING_BY, now + _DONE_WITHIN
        self._other_pid, self._theirs = pid, theirs
        self._connect(connection, self._successor_said, self._successor_gone)
        lock = self._lock.descriptor
        connection.send(encode_answer(good(**values_of(self._ours))), [] if lock is None else [lock])

    def _refusal(self, command: str) -> str:
        if command != TAKE_OVER:
            return f"unknown command {command!r}"
        if self.phase is Phase.STANDING_BY:
            return f"process {self._other_pid} takes over from it at this moment"
        if self.phase is not Phase.SERVING:
            return "it takes over from another one itself at this moment"
        return self._supervised.refusal()

    def _successor_said(self, line: bytes, now: float) -> None:
        try:
            command = decode_question(line).command
        except ControlError:
            command = GIVE_BACK
        if self._other:
            self._other.send(encode_answer(good()))
        if command != DONE:
            self._resume("it has given back")
            return
        self._hang_up()
        self.close()
        self._lock.leave()
        self.phase, self._deadline = Phase.RELIEVED, now + self._supervised.drain() + _MARGIN
        self._log.warning("relieved", version=self._theirs.version, pid=self._other_pid)

    def _successor_gone(self, _: float) -> None:
        self._resume("it has ended")

    def _withdraw(self, reason: str, *, kill: bool) -> None:
        if self._other:
            self._other.send(encode_answer(bad(reason)))
        if kill:
            _kill(self._other_pid)
        self._resume(reason)

    def _resume(self, reason: str) -> None:
        self._hang_up()
        self.phase = Phase.SERVING
        theirs = self._theirs
        self._log.error("take-over-failed", version=theirs.version, pid=self._other_pid, reason=reason)
        self._supervised.resume(former=theirs.instance)
        self._tell_of(
            EventKind.TAKE_OVER_FAILED, f"version {theirs.version}, process {self._other_pid}: {reason}"
        )

    # The one that asks

    def _look(self, now: float) -> None:
        """Say that we serve when all programs do; give back where one of them does not in time."""
        if self._said_done:
            return
        programs = self._supervised.programs()
        waits = [
            *(NotReady(program=name, reason="does not run") for name, pid in programs.items() if not pid),
            *not_ready(self._paths, {name: pid for name, pid in programs.items() if pid}),
        ]
        if not any(each.failed for each in waits):
            self._failing_since = now
        if not waits:
            self._said_done = True
            self._say(Question(command=DONE))
        elif given_up := self._supervised.given_up():
            self._give_back(given_up, now)
        elif now > self._deadline or now > self._failing_since + _FAILS_FOR:
            self._give_back("; ".join(f"{each.program}: {each.reason}" for each in waits), now)

    def _predecessor_said(self, line: bytes, now: float) -> None:
        try:
            answer = decode_answer(line)
        except ControlError as error:
            answer = bad(str(error))
        if not answer.ok:
            self._give_way(f"withdrawn: {_words(answer)}", now)
        elif self._said_done:
            self._in_charge()

    def _predecessor_gone(self, _: float) -> None:
        """Go on alone: what has become of the one that stood by is the same, relieved or killed."""
        self._in_charge()

    def _in_charge(self) -> None:
        self._hang_up()
        self.phase = Phase.SERVING
        self._listen()
        told = TakenOver(when=time.time(), version=self._theirs.version, pid=self._other_pid, by=__version__)
        taken_over.write(self._paths, told)
        self._log.warning("appliance-taken-over", version=told.version, pid=told.pid)
        self._tell_of(EventKind.TAKEN_OVER, f"from version {told.version}, process {told.pid}")

    def _give_back(self, reason: str, now: float) -> None:
        self._say(Question(command=GIVE_BACK))
        self._give_way(reason, now)

    def _give_way(self, reason: str, now: float) -> None:
        self._log.error("take-over-failed", version=__version__, pid=os.getpid(), reason=reason)
        self._hang_up()
        self._supervised.stand_by()
        self._lock.leave()
        self.phase, self.failed, self._deadline = Phase.RELIEVED, True, now + _GIVEN_BACK_WITHIN

    def _say(self, question: Question) -> None:
        if self._other:
            self._other.send(encode_question(question))

    def _tell_of(self, kind: EventKind, detail: str) -> None:
        event = OperatorEvent(
            when=time.time(), kind=kind, subject="appliance", after=__version__, detail=detail
        )
        self._tell(event)


def _refuse(connection: LineConnection, reason: str) -> None:
    connection.send(encode_answer(bad(reason)))
    connection.close()


def _words(answer: Answer) -> str:
    return "; ".join(each.message for each in answer.errors)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return  # gone, or not ours to kill: it reads that it was withdrawn when it goes on
