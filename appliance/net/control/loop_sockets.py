"""A control socket for a program of one loop: the lines and the socket of net.control, without greenlets.

A handler must not block. What takes its time is answered later: the handler returns a Deferred, and whoever
ends the work resolves it. A connection has one question at a time under way, the next ones wait their turn.
Questions are answered in the order in which they came, in short slices of the loop's time, so that a flood of
them delays nobody's deadline.
When all places are taken, who comes next gets the one of the connection that has been idle longest.
"""

import contextlib
import socket
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Final

from appliance.net.control import peers
from appliance.net.control.unix_listener import listen_unix
from appliance.net.files import readers
from appliance.net.loop.loop import Loop
from appliance.wire.lines.control import (
    Answer,
    ControlError,
    LineBuffer,
    Question,
    bad,
    decode_question,
    encode_answer,
)

_CHUNK: Final = 65536
_LONGEST_LINE: Final = 65536  # a question is a command and two or three words
_MOST_CONNECTIONS: Final = 64
_SLICE: Final = 0.001  # seconds of one turn of the loop after which the next question waits for the next turn
_KEEP: Final = 1.0  # seconds between two looks whether the socket is still there
_PAUSE: Final = 0.5  # seconds until a connection is accepted again, after the machine had no descriptor left


class Deferred:
    """An answer that comes later, to all who wait for it. It is one; what is given after that is ignored."""

    def __init__(self) -> None:
        self._answer: Answer | None = None
        self._sends: list[Callable[[Answer], None]] = []

    def resolve(self, answer: Answer) -> None:
        """Give the answer."""
        if self._answer is None:
            self._answer = answer
            for send in self._sends:
                send(answer)

    def deliver(self, send: Callable[[Answer], None]) -> None:
        """Have the answer given to `send`, at once when it is there already."""
        if self._answer is None:
            self._sends.append(send)
        else:
            send(self._answer)


Handler = Callable[[Question], Answer | Deferred]
OnError = Callable[[str, Exception], None]


class LoopControlServer:
    """Serves one program's commands on a unix socket, from its loop.

    A handler that raises is answered with its error, and reported to `on_error`. `for_readers` are the
    commands that only look: others than root and the owner get no other one.
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
        self._handlers = dict(handlers)
        self._for_readers = frozenset(for_readers)
        self._on_error = on_error
        self._connections: dict[_Connection, None] = {}  # as a set, who has been idle longest comes first
        self._listener = _listen(path)
        self._listener.settimeout(0)
        self._inode = path.stat().st_ino
        self._again: float | None = None
        self._look_at = time.monotonic() + _KEEP
        self._listen()
        loop.add(self)

    @property
    def deadline(self) -> float | None:
        """Return when to be woken: when the question came that waits longest, or to look for the socket."""
        first = self._first
        at = self._again if first is None else first.since
        return self._look_at if at is None else min(at, self._look_at)

    def tick(self, now: float) -> None:
        """Answer questions that have come until `now`, one of each connection, until the slice is over."""
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
    def _first(self) -> "_Connection | None":
        return min((each for each in self._connections if each.waiting), key=_since, default=None)

    def close(self) -> None:
        """Stop listening, remove the socket unless it is a successor's, and end the connections."""
        self._loop.remove(self)
        with contextlib.suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:
                self._path.unlink()
        self._loop.forget(self._listener.fileno())
        self._listener.close()
        for each in list(self._connections):
            each.close()

    def result(self, line: bytes, *, owner: bool) -> Answer | Deferred:
        """Return what is said to one line; raises ControlError when it is none."""
        question = decode_question(line)
        handler = self._handlers.get(question.command)
        if handler is None:
            return bad(f"unknown command {question.command!r}; known: {', '.join(sorted(self._handlers))}")
        if not owner and (refusal := peers.refusal(question.command, self._for_readers)):
            return refusal
        try:
            return handler(question)
        except ControlError as error:
            return bad(str(error))
        except Exception as error:  # noqa: BLE001  # a bug in one command must not end the program; it is reported
            self._on_error(question.command, error)
            return bad(f"{question.command}: {type(error).__name__}: {error}")

    def broken(self, error: ControlError) -> None:
        """Take note of a connection that says something else than control lines."""
        self._on_error("line", error)

    def ended(self, connection: "_Connection") -> None:
        """Forget a connection, which makes room for another one."""
        self._connections.pop(connection, None)
        self._listen()

    def rested(self, connection: "_Connection") -> None:
        """Take note of a connection that has got its answers: from now on it is idle."""
        if connection in self._connections:
            self._connections[connection] = self._connections.pop(connection)
            self._listen()

    def _keep(self) -> None:
        """Listen again where somebody has removed the socket; a name that is there may be a successor's."""
        if self._path.exists():
            return
        with contextlib.suppress(OSError):  # the directory is not there yet, or full
            listener = _listen(self._path)
            self._loop.forget(self._listener.fileno())
            self._listener.close()
            self._listener, self._inode = listener, self._path.stat().st_ino
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
        owner = peers.is_owner(accepted.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, peers.SIZE))
        if not owner and sum(not each.owner for each in self._connections) >= peers.MOST_READERS:
            accepted.close()  # room is left for the owner
            return
        if self._is_full and self._idlest is not None:
            self._idlest.close()
        self._connections[_Connection(self._loop, self, accepted, owner=owner)] = None
        self._listen()

    @property
    def _is_full(self) -> bool:
        return len(self._connections) >= _MOST_CONNECTIONS

    @property
    def _idlest(self) -> "_Connection | None":
        return next((each for each in self._connections if each.idle), None)


class _Connection:
    """One asker: lines in, answers out, in order."""

    def __init__(
        self, loop: Loop, server: LoopControlServer, connection: socket.socket, *, owner: bool
    ) -> None:
        self.owner = owner
        self._loop = loop
        self._server = server
        self._socket = connection
        self._lines = LineBuffer(_LONGEST_LINE)
        self._questions: deque[bytes] = deque()
        self._output = b""
        self._asked = False
        self._open = True
        self.since = 0.0  # when the question came that can be answered next
        loop.read(connection.fileno(), self._read)

    @property
    def waiting(self) -> bool:
        """Say whether a question can be answered now."""
        return bool(self._questions) and not self._asked and not self._output

    @property
    def idle(self) -> bool:
        """Say whether nothing is owed to the asker."""
        return not (self._questions or self._asked or self._output)

    def next(self) -> None:
        """Answer the question that waits longest."""
        self._asked = True
        try:
            answer = self._server.result(self._questions.popleft(), owner=self.owner)
        except ControlError as error:
            self._server.broken(error)
            self.close()
            return
        if isinstance(answer, Deferred):
            answer.deliver(self._send)
        else:
            self._send(answer)

    def close(self) -> None:
        """End the connection; an answer that comes later goes nowhere."""
        if self._open:
            self._open = False
            self._questions.clear()
            self._loop.forget(self._socket.fileno())
            self._socket.close()
            self._server.ended(self)

    def _read(self) -> None:
        try:
            chunk = self._socket.recv(_CHUNK)
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
            # Until they are answered: what comes after them waits.
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


def _listen(path: Path) -> socket.socket:
    return listen_unix(path, mode=readers.socket_mode(path.parent))


def _since(connection: _Connection) -> float:
    return connection.since
