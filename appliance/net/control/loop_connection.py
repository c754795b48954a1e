"""One connection of a control socket in a program with one loop: it never blocks, the loop calls it."""

import socket
import time
from collections import deque
from typing import Final, Protocol

from appliance.net.control.deferred_answer import DeferredAnswer
from appliance.net.control.permissions import READER_BYTES
from appliance.net.loop.loop import Loop
from appliance.wire.lines.control import Answer, ControlError, encode_answer
from appliance.wire.lines.line_buffer import LineBuffer

_CHUNK: Final = 65536
_LONGEST_LINE: Final = 65536  # a question is a command and two or three words


class AnswersLines(Protocol):
    """The server of the connection."""

    def result(self, line: bytes, *, owner: bool) -> Answer | DeferredAnswer:
        """Return the answer to one line, perhaps deferred; raises ControlError for an invalid question."""
        ...

    def broken(self, error: ControlError) -> None:
        """Report a connection that does not send control lines."""
        ...

    def ended(self, connection: "LoopConnection") -> None:
        """Remove a closed connection."""
        ...

    def rested(self, connection: "LoopConnection") -> None:
        """Note that a connection has all its answers."""
        ...


class LoopConnection:
    """One client of a control socket in a loop: lines in, answers out, in order."""

    def __init__(self, loop: Loop, server: AnswersLines, connection: socket.socket, *, owner: bool) -> None:
        self.owner = owner
        self._loop = loop
        self._server = server
        self._socket = connection
        # Read-only commands have no values.
        self._lines = LineBuffer(_LONGEST_LINE if owner else READER_BYTES)
        self._chunk = _CHUNK if owner else READER_BYTES
        self._questions: deque[bytes] = deque()
        self._output = b""
        self._asked = False
        self._open = True
        self.since = 0.0  # CLOCK_MONOTONIC, when the next question to answer came
        loop.read(connection.fileno(), self._read)

    @property
    def waiting(self) -> bool:
        """Return whether a question can be answered now."""
        return bool(self._questions) and not self._asked and not self._output

    @property
    def idle(self) -> bool:
        """Return whether no answer is pending."""
        return not (self._questions or self._asked or self._output)

    def next(self) -> None:
        """Answer the oldest question."""
        self._asked = True
        try:
            answer = self._server.result(self._questions.popleft(), owner=self.owner)
        except ControlError as error:
            self._server.broken(error)
            self.close()
            return
        if isinstance(answer, DeferredAnswer):
            answer.deliver(self._send)
        else:
            self._send(answer)

    def close(self) -> None:
        """Close the connection; later answers are discarded."""
        if self._open:
            self._open = False
            self._questions.clear()
            self._loop.forget(self._socket.fileno())
            self._socket.close()
            self._server.ended(self)

    def _read(self) -> None:
        try:
            chunk = self._socket.recv(self._chunk)
            self._questions.extend(line for line in self._lines.feed(chunk) if line)
        except BlockingIOError:
            return
        except OSError:
            chunk = b""
        except ControlError as error:
            self._server.broken(error)
            chunk = b""
        if not chunk:
            self.close()
        elif self._questions:
            self.since = time.monotonic()
            # Until they are answered, later questions wait.
            self._loop.read(self._socket.fileno(), None)

    def _send(self, answer: Answer) -> None:
        self._asked = False
        if self._open:
            self._output = encode_answer(answer)
            self._write()

    def _write(self) -> None:
        try:
            self._output = self._output[self._socket.send(self._output) :]
        except BlockingIOError:
            pass
        except OSError:
            self.close()
            return
        self.since = time.monotonic()
        self._loop.write(self._socket.fileno(), self._write if self._output else None)
        if not self._output and not self._questions:
            self._loop.read(self._socket.fileno(), self._read)
            self._server.rested(self)
