"""A `vrrp` that a killed supervisord has left running, seen by the one that takes its place.

It runs until the new one serves: both advertise for a moment, from the same address with the same priority,
so that peers and clients see one router all the time, however long a start takes. Then it is told to end,
which it does without an advert of priority 0, and it leaves the addresses where they are. One that does not
answer is killed: its loop hangs, and so it does not advertise either.
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
"""The command that ends a predecessor without releasing anything."""

_PATIENCE: Final = 0.5  # seconds for an answer: its loop never waits, and the peers soon claim
_CHUNK: Final = 65536


class PredecessorError(Exception):
    """The predecessor does not answer, or not with what was asked for."""


class PredecessorLeavingError(Exception):
    """The predecessor was told to stop, and hands its addresses over to the peers."""


class Predecessor:
    """The program of process id `pid`, asked over its control socket."""

    def __init__(self, pid: int, connection: socket.socket, log: FilteringBoundLogger) -> None:
        self.pid = pid
        self._connection = connection
        self._lines = LineBuffer()
        self._log = log

    @classmethod
    def meet(cls, paths: Paths, log: FilteringBoundLogger) -> Self | None:
        """Return the `vrrp` that runs here; None where there is none, or it did not answer and was killed.

        Raises PredecessorLeavingError, also for one that has our own parent: supervisord started it, and
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

        A refusal is an error, as of one that does not know the command: nobody would end it, ever.
        """
        try:
            answer = self._answer_to(Question(command=TAKE_OVER))
            if vrrp_takeover.is_leaving(answer.values):
                raise PredecessorLeavingError
            return vrrp_takeover.decode(answer.values)
        except (OSError, ControlError) as error:
            raise PredecessorError(str(error)) from error

    def end(self) -> None:
        """Tell it to end, without waiting for that."""
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

        What is there counts, however late we are: it runs in real time, and we start as an ordinary process,
        which on a busy machine may stand still for longer than that.
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
