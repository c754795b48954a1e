"""Our part in a take-over as the new appliance: our programs come up, and we report that, or give back."""

import socket
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import msgspec

from appliance.model.paths import Paths
from appliance.model.program_names import PROXIES
from appliance.net.files.lock_files import KeptLock
from appliance.net.files.program_failures import ProgramFailure
from appliance.net.privileges.peer_credentials import listening_process
from appliance.supervisor.succession.dialogue import Dialogue
from appliance.supervisor.succession.line_connection import LineConnection
from appliance.supervisor.succession.reports import SuccessionReports
from appliance.supervisor.succession.take_over_state import Phase, Supervised, TakeOverState
from appliance.wire.lines.control import Answer, ControlError, Question, bad, decode_answer, encode_question
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.succession import DONE, GIVE_BACK, Party, Predecessor

_PATIENCE: Final = 0.5  # seconds for an answer; a program without one is asked again
_CHUNK: Final = 65536


@dataclass(frozen=True, slots=True, kw_only=True)
class NotReady:
    """Why a program does not serve yet; `failed` if it has tried, and reports why it could not."""

    program: str
    reason: str
    failed: bool = False


def not_ready(paths: Paths, programs: Mapping[str, int]) -> Iterator[NotReady]:
    """Yield each of those programs, with these process ids, that does not serve yet."""
    for program, pid in programs.items():
        if listening_process(paths.control(program)) != pid:
            yield NotReady(program=program, reason="it does not answer yet")
        elif program in PROXIES:  # one that cannot start workers continues with those that it found
            yield from _of_proxy(paths, program)


def _of_proxy(paths: Paths, program: str) -> Iterator[NotReady]:
    try:
        answer = _status(paths, program)
    except (OSError, ControlError) as error:
        yield NotReady(program=program, reason=str(error))
        return
    yield from _missing(program, answer)


def _missing(program: str, answer: Answer) -> Iterator[NotReady]:
    if failure := answer.values.get("failure"):
        yield NotReady(program=program, reason=_words(failure), failed=True)
    elif answer.values.get("snapshot") is None:
        yield NotReady(program=program, reason="its workers are not ready")


def _words(failure: object) -> str:
    try:
        return msgspec.convert(failure, ProgramFailure).reason
    except msgspec.ValidationError:
        return str(failure)


def _status(paths: Paths, program: str) -> Answer:
    lines = LineBuffer()
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(_PATIENCE)
        connection.connect(str(paths.control(program)))
        connection.sendall(encode_question(Question(command="status")))
        while chunk := connection.recv(_CHUNK):
            for line in lines.feed(chunk):
                return decode_answer(line)
    raise ControlError("no answer")


_READY_WITHIN: Final = 45.0  # seconds for our programs to serve
_FAILS_FOR: Final = 5.0  # seconds in which a failed program may still come up
_GIVEN_BACK_WITHIN: Final = 30.0  # seconds for the former one to end the programs that we started


class TakingOver:
    """The new appliance's side. `in_charge` is called when the former one is relieved, or has died."""

    def __init__(  # what it connects
        self,
        state: TakeOverState,
        paths: Paths,
        *,
        reports: SuccessionReports,
        lock: KeptLock,
        supervised: Supervised,
        dialogue: Dialogue,
        in_charge: Callable[[], None],
    ) -> None:
        self._state, self._paths, self._reports, self._lock = state, paths, reports, lock
        self._supervised, self._dialogue, self._in_charge = supervised, dialogue, in_charge
        self._failing_since, self._said_done = 0.0, False

    def begin(self, found: Predecessor, connection: LineConnection, now: float) -> None:
        """Take over from the appliance that `run` found, which stands by at the other end of a connection."""
        state = self._state
        state.phase, state.deadline = Phase.TAKING_OVER, now + _READY_WITHIN
        state.other_pid = found.pid
        state.other = Party(version=found.version, instance=found.instance)
        self._dialogue.begin(connection, said=self._said, gone=lambda _: self._begin_alone())

    def look(self, now: float) -> None:
        """Report that we serve when all programs do; give back if one of them does not in time."""
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
            self._dialogue.send(encode_question(Question(command=DONE)))
        elif given_up := self._supervised.given_up():
            self._give_back(given_up, now)
        elif now > self._state.deadline or now > self._failing_since + _FAILS_FOR:
            self._give_back("; ".join(f"{each.program}: {each.reason}" for each in waits), now)

    def told_to_end(self, now: float) -> None:
        """Give back: the former appliance is still there."""
        self._give_back("asked to end", now)

    def _said(self, line: bytes, now: float) -> None:
        try:
            answer = decode_answer(line)
        except ControlError as error:
            answer = bad(str(error))
        if not answer.ok:
            self._give_way(f"withdrawn: {answer.reason}", now)
        elif self._said_done:
            self._begin_alone()

    def _begin_alone(self) -> None:
        self._dialogue.hang_up()
        self._state.phase = Phase.SERVING
        self._in_charge()
        self._reports.in_charge()

    def _give_back(self, reason: str, now: float) -> None:
        self._dialogue.send(encode_question(Question(command=GIVE_BACK)))
        self._give_way(reason, now)

    def _give_way(self, reason: str, now: float) -> None:
        self._reports.gave_way(reason)
        self._dialogue.hang_up()
        self._supervised.stand_by()
        self._lock.leave()
        self._state.phase, self._state.failed = Phase.RELIEVED, True
        self._state.deadline = now + _GIVEN_BACK_WITHIN
