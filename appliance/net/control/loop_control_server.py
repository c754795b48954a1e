"""A control socket for a program with one loop (`net.loop.loop`), without greenlets.

A handler must not block. For longer work it returns a DeferredAnswer, which the end of the work resolves. A
connection has one question in progress, the next ones wait. Questions are answered in order of arrival, in
short slices of the loop's time, so a flood of them delays no deadline. If all places are taken, a new
connection replaces the one idle longest; if all places of readers are taken, it replaces one of the user with
the most.
"""

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final, Protocol

from appliance.net.control import permissions
from appliance.net.control.command_table import CommandTable, OnError
from appliance.net.control.connection_slots import ConnectionSlots
from appliance.net.control.deferred_answer import DeferredAnswer
from appliance.net.control.permissions import READER_BYTES
from appliance.net.control.unix_listener import SocketName, listen_for_readers
from appliance.net.loop.loop import Loop
from appliance.net.privileges.peer_credentials import peer_credentials
from appliance.wire.lines.control import Answer, ControlError, Question, encode_answer
from appliance.wire.lines.line_buffer import LineBuffer

_CHUNK: Final = 65536
_LONGEST_LINE: Final = 65536  # a question is a command and two or three words

_MOST_CONNECTIONS: Final = 64
_SLICE: Final = 0.001  # seconds of a turn of the loop after which further questions wait for the next turn
_KEEP: Final = 1.0  # seconds between two checks that the socket still exists
_PAUSE: Final = 0.5  # seconds until a connection is accepted again after the machine ran out of descriptors

Handler = Callable[[Question], Answer | DeferredAnswer]


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


class LoopControlServer:
    """Answers one program's commands on a unix socket, from its loop.

    A handler's error is answered, and reported to `on_error`. `for_readers` are the read-only commands: users
    other than root and the owner can give no others.
    """

    def __init__(
        self,
        loop: Loop,
        path: Path,
        handlers: Mapping[str, Handler],
        *,
        on_error: OnError,
        for_readers: Collection[str] = (),
    ) -> None:
        self._loop = loop
        self._path = path
        self._commands = CommandTable(handlers, for_readers=for_readers, on_error=on_error)
        self._on_error = on_error
        self._connections: dict[LoopConnection, None] = {}  # in order: the one idle longest is first
        self._readers: ConnectionSlots[LoopConnection] = ConnectionSlots()
        self._listener = listen_for_readers(path)
        self._listener.settimeout(0)
        self._name = SocketName(path)
        self._again: float | None = None
        self._look_at = time.monotonic() + _KEEP
        self._listen()
        loop.add(self)

    @property
    def deadline(self) -> float | None:
        """Return when to wake: the arrival of the oldest question, or the next check of the socket."""
        first = self._first
        at = self._again if first is None else first.since
        return self._look_at if at is None else min(at, self._look_at)

    def tick(self, now: float) -> None:
        """Answer questions that came until `now`, one per connection, until the slice is over."""
        if self._again is not None and now >= self._again:
            self._again = None
            self._listen()
        if now >= self._look_at:
            self._look_at = now + _KEEP
            self._keep()
        until = time.monotonic() + _SLICE
        while (first := self._first) is not None and first.since <= now:
            first.next()
            if time.monotonic() >= until:
                break

    @property
    def _first(self) -> LoopConnection | None:
        return min(
            (each for each in self._connections if each.waiting), key=lambda each: each.since, default=None
        )

    def close(self) -> None:
        """Stop listening, remove the socket unless it is a successor's, and close the connections."""
        self._loop.remove(self)
        self._name.remove()
        self._loop.forget(self._listener.fileno())
        self._listener.close()
        for each in list(self._connections):
            each.close()

    def result(self, line: bytes, *, owner: bool) -> Answer | DeferredAnswer:
        """Return the answer to one line, perhaps deferred; raises ControlError for an invalid question."""
        return self._commands.answer(line, owner=owner, run=lambda handler, question: handler(question))

    def broken(self, error: ControlError) -> None:
        """Report a connection that does not send control lines."""
        self._on_error("line", error)

    def ended(self, connection: LoopConnection) -> None:
        """Remove a closed connection, which makes room for another."""
        self._connections.pop(connection, None)
        self._readers.leave(connection)
        self._listen()

    def rested(self, connection: LoopConnection) -> None:
        """Move a connection that has its answers to the end of the idle ones."""
        if connection in self._connections:
            self._connections[connection] = self._connections.pop(connection)
            self._readers.rest(connection)
            self._listen()

    def _keep(self) -> None:
        """Listen again if the socket was removed: no client could find it."""
        if not self._name.is_missing:
            return
        with contextlib.suppress(OSError):  # the directory does not exist yet, or is full
            listener = listen_for_readers(self._path)
            self._loop.forget(self._listener.fileno())
            self._listener.close()
            self._listener, self._name = listener, SocketName(self._path)
            self._listener.settimeout(0)
            self._listen()

    def _listen(self) -> None:
        if self._listener.fileno() >= 0:
            closed = self._again is not None or (self._is_full and self._idlest is None)
            self._loop.read(self._listener.fileno(), None if closed else self._accept)

    def _accept(self) -> None:
        try:
            accepted, _ = self._listener.accept()
        except BlockingIOError:
            return
        except OSError as error:  # out of descriptors
            self._on_error("accept", error)
            self._again = time.monotonic() + _PAUSE
            self._listen()
            return
        accepted.settimeout(0)
        owner = permissions.is_owner(accepted)
        if not owner and not self._has_room_for_reader():
            accepted.close()
            return
        if self._is_full and self._idlest is not None:
            self._idlest.close()
        made = LoopConnection(self._loop, self, accepted, owner=owner)
        self._connections[made] = None
        if not owner:
            self._readers.enter(made, peer_credentials(accepted).user)
        self._listen()

    def _has_room_for_reader(self) -> bool:
        """Return whether one more reader fits: if need be another gives way; the owner always has room."""
        if len(self._readers) < permissions.MOST_READERS:
            return True
        leaver = self._readers.give_way()
        if leaver is not None:
            leaver.close()
        return leaver is not None

    @property
    def _is_full(self) -> bool:
        return len(self._connections) >= _MOST_CONNECTIONS

    @property
    def _idlest(self) -> LoopConnection | None:
        return next((each for each in self._connections if each.idle), None)
