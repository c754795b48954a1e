"""Our part in a take-over as the former appliance: asked to stand by, then relieved, or in charge again."""

import os
import signal
from collections.abc import Callable
from typing import Final

from appliance.net.files.lock_files import KeptLock
from appliance.supervisor.succession.dialogue import Dialogue, refuse
from appliance.supervisor.succession.incumbent import UNSEEN
from appliance.supervisor.succession.line_connection import LineConnection
from appliance.supervisor.succession.reports import SuccessionReports
from appliance.supervisor.succession.take_over_state import Phase, Supervised, TakeOverState, ourselves
from appliance.wire.lines.control import (
    ControlError,
    Question,
    bad,
    decode_question,
    encode_answer,
    good,
)
from appliance.wire.lines.succession import DONE, GIVE_BACK, SuccessionError, party, values_of

_DONE_WITHIN: Final = 60.0  # seconds after which we resume; longer than the new one waits itself
_MARGIN: Final = 5.0  # seconds beyond the drain for the last workers of the relieved appliance


class MakingWay:
    """The former appliance's side.

    `relieved` is called when the new one is in charge, before that one gets the answer; `resumed` when it
    failed to take over, with the reason.
    """

    def __init__(
        self,
        state: TakeOverState,
        *,
        reports: SuccessionReports,
        lock: KeptLock,
        supervised: Supervised,
        dialogue: Dialogue,
        relieved: Callable[[], None],
        resumed: Callable[[str], None],
    ) -> None:
        self._state, self._reports, self._lock = state, reports, lock
        self._supervised, self._dialogue = supervised, dialogue
        self._relieved, self._resumed = relieved, resumed

    def asked(self, connection: LineConnection, question: Question, now: float) -> None:
        """Stand by for the appliance that asks over a connection, or refuse."""
        try:
            theirs = party(question.values)
        except SuccessionError as error:
            refuse(connection, str(error))
            return
        pid = connection.peer
        reason = self.refusal() if pid else UNSEEN
        if reason:
            refuse(connection, reason)
            return
        state = self._state
        state.phase, state.deadline = Phase.STANDING_BY, now + _DONE_WITHIN
        state.other_pid, state.other = pid, theirs
        self._reports.standing_by()
        self._supervised.stand_by()
        self._dialogue.begin(connection, said=self._said, gone=lambda _: self._resume("it has ended"))
        lock = self._lock.descriptor
        answer = encode_answer(good(**values_of(ourselves())))
        self._dialogue.send(answer, [] if lock is None else [lock])

    def refusal(self) -> str:
        """Return why we cannot be taken over now, "" if we can."""
        if self._state.phase is Phase.STANDING_BY:
            return f"process {self._state.other_pid} takes over from it at this moment"
        if self._state.phase is not Phase.SERVING:
            return "it takes over from another one itself at this moment"
        return self._supervised.refusal()

    def look(self, now: float) -> None:
        """Resume if the new appliance takes too long; called at each turn while we stand by."""
        if now > self._state.deadline:
            reason = f"not done within {_DONE_WITHIN:g} s"
            self._dialogue.send(encode_answer(bad(reason)))
            _kill(self._state.other_pid)
            self._resume(reason)

    def told_to_end(self) -> None:
        """Withdraw: a stop signal to us means both appliances."""
        reason = "it was asked to end"
        self._dialogue.send(encode_answer(bad(reason)))
        self._resume(reason)

    def _said(self, line: bytes, now: float) -> None:
        try:
            command = decode_question(line).command
        except ControlError:
            command = GIVE_BACK
        if command != DONE:
            self._dialogue.send(encode_answer(good()))
            self._resume("it has given back")
            return
        self._relieved()
        self._dialogue.send(encode_answer(good()))
        self._dialogue.hang_up()
        self._lock.leave()
        state = self._state
        state.phase, state.deadline = Phase.RELIEVED, now + self._supervised.drain() + _MARGIN
        self._reports.relieved()

    def _resume(self, reason: str) -> None:
        self._dialogue.hang_up()
        self._state.phase = Phase.SERVING
        self._supervised.resume(former=self._state.other.instance)
        self._reports.resumed(reason)
        self._resumed(reason)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except OSError:
        return  # gone, or we may not kill it: if it continues it reads that the offer was withdrawn
