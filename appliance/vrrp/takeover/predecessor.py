"""A `vrrp` that a killed supervisord has left running, as the one that replaces it sees it.

It runs until the new one serves: both advertise for a moment, from the same address with the same priority,
so peers and clients see one router all the time, however long a start takes. Then it gets the command to
exit, does so without an advert of priority 0, and leaves the addresses in place. A predecessor that does not
answer is killed: its loop hangs, so it does not advertise either.
"""

import os
import signal
import socket
import time
from typing import Final, Self

from structlog.typing import FilteringBoundLogger

from appliance.model.paths import Paths
from appliance.net.privileges.peer_credentials import listening_process
from appliance.net.process import subreaper
from appliance.net.process.leftovers import Leftovers
from appliance.wire.lines import vrrp_takeover
from appliance.wire.lines.control import Answer, ControlError, Question, decode_answer, encode_question
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.vrrp_takeover import KnownRouter

TAKE_OVER: Final = "take-over"
"""The command that asks for the state of all virtual routers."""

TAKEN_OVER: Final = "taken-over"
"""The command that makes a predecessor exit without releasing anything."""

_PATIENCE: Final = 0.5  # seconds for an answer: its loop never waits, and the peers claim soon
_CHUNK: Final = 65536


class PredecessorError(Exception):
    """The predecessor does not answer, or not with what was requested."""


class PredecessorLeavingError(Exception):
    """The predecessor is stopping, and hands its addresses over to the peers."""


class Predecessor:
    """The program with process id `pid`, reached over its control socket."""

    def __init__(self, pid: int, connection: socket.socket, log: FilteringBoundLogger) -> None:
        self.pid = pid
        self._connection = connection
        self._lines = LineBuffer()
        self._log = log

    @classmethod
    def meet(cls, paths: Paths, log: FilteringBoundLogger) -> Self | None:
        """Return the `vrrp` that runs here; None if there is none, or if it did not answer and was killed.

        Raises PredecessorLeavingError, also for a program with our own parent: supervisord started it, and
        ends it.
        """
        pid = listening_process(paths.control("vrrp")) or next(iter(Leftovers(paths, log).vrrps()), 0)
        if pid and subreaper.parent(pid) == os.getppid():
            raise PredecessorLeavingError
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(_PATIENCE)
        try:
            connection.connect(str(paths.control("vrrp")))
            met = cls(pid, connection, log)
            met.ask()
        except (OSError, PredecessorError) as error:
            connection.close()
            _kill(pid, str(error), log)
            return None
        return met

    def ask(self) -> tuple[KnownRouter, ...]:
        """Return the present state of its virtual routers; raises PredecessorError and ...LeavingError.

        A refusal is an error too, for example of a program without this command: nobody would ever end it.
        """
        try:
            answer = self._answer_to(Question(command=TAKE_OVER))
            if vrrp_takeover.is_leaving(answer.values):
                raise PredecessorLeavingError
            return vrrp_takeover.decode(answer.values)
        except (OSError, ControlError) as error:
            raise PredecessorError(str(error)) from error

    def end(self) -> None:
        """Send it the command to exit, without waiting for that."""
        self._connection.settimeout(0)
        try:
            self._connection.send(encode_question(Question(command=TAKEN_OVER)))
        except OSError as error:
            self.kill(str(error))

    def kill(self, why: str) -> None:
        """Send it SIGKILL, and log why."""
        _kill(self.pid, why, self._log)

    def close(self) -> None:
        """Close the connection to it."""
        self._connection.close()

    def _answer_to(self, question: Question) -> Answer:
        """Return its answer; raises TimeoutError.

        An answer that has arrived counts, however late we read it: the predecessor has real-time priority,
        while we start as an ordinary process, which on a busy machine may be stalled for longer than the
        timeout.
        """
        until = time.monotonic() + _PATIENCE
        self._connection.sendall(encode_question(question))
        while True:
            left = max(0.0, until - time.monotonic())
            self._connection.settimeout(left)
            try:
                chunk = self._connection.recv(_CHUNK)
            except (BlockingIOError, TimeoutError):
                if left:
                    continue
                raise TimeoutError(f"no answer within {_PATIENCE:g} s") from None
            if not chunk:
                raise ControlError("the connection was closed")
            for line in self._lines.feed(chunk):
                return decode_answer(line)


def _kill(pid: int, why: str, log: FilteringBoundLogger) -> None:
    log.warning("predecessor-killed", pid=pid, reason=why)
    if not pid:
        return
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    except PermissionError as error:
        log.error("predecessor-stays", pid=pid, reason=str(error))  # noqa: TRY400  # it is not ours to kill
