"""The server side of a control socket for programs with greenlets: one question and one answer at a time.

Only the owner and the members of `group:` can connect; members may give read-only commands. However many
questions come, the program's other work gets its turns (`net.loop.turns`); members get a share of the time,
and a deadline for each message (`ReaderShare`).

Descriptors are sent with a line as SCM_RIGHTS. The client owns those of an answer. The server owns those of a
question, and closes them after the answer unless a handler keeps them.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import gevent
from gevent import Greenlet, socket

from appliance.net.control import descriptor_passing, permissions
from appliance.net.control.command_table import CommandTable, OnError
from appliance.net.control.connection_slots import ConnectionSlots
from appliance.net.control.gevent_listener import listen_for_readers
from appliance.net.control.unix_listener import SocketName
from appliance.net.loop.turns import FirstCome, Turns, until_next
from appliance.net.privileges.peer_credentials import peer_credentials
from appliance.wire.lines.control import QUESTION_LIMIT, Answer, ControlError, Question, encode_answer
from appliance.wire.lines.line_buffer import LineBuffer

_LOOK: Final = 0.001  # seconds between new connections while all places are taken
_REST: Final = 4.0  # multiple of the time that a question took
_LONGEST: Final = 0.1  # most seconds of a question that count: it may have waited for another


class ReaderShare:
    """Connections of readers, each with the greenlet that serves it."""

    def __init__(self) -> None:
        self._places: ConnectionSlots[Greenlet] = ConnectionSlots()
        self._waiting = FirstCome()
        self._next_at = 0.0

    def enter(self, serving: Greenlet, user: int) -> bool:
        """Give a connection a place, if need be that of another; return whether it has one."""
        if self._is_full:
            gevent.sleep(_LOOK)  # closed connections leave, waiting questions are served
        if self._is_full:
            leaver = self._places.give_way()
            if leaver is None:
                return False
            leaver.kill(block=False)
        self._places.enter(serving, user)
        return True

    @property
    def _is_full(self) -> bool:
        return len(self._places) >= permissions.MOST_READERS

    def leave(self, serving: Greenlet) -> None:
        """Free the place."""
        self._places.leave(serving)

    @contextmanager
    def question(self, serving: Greenlet) -> Iterator[None]:
        """Wait until a question may be answered, and hold back others meanwhile."""
        self._places.rest(serving)  # a connection with a question has not been idle long
        with self._waiting.turn():
            gevent.sleep(max(0.0, self._next_at - time.monotonic()))
            begun = time.monotonic()
            self._places.work(serving)
            try:
                yield
            finally:
                self._places.rest(serving)
                now = time.monotonic()
                self._next_at = now + _REST * min(now - begun, _LONGEST)


KEEP: Final = 1.0
"""Seconds between two checks that a socket still exists."""

READER_SECONDS: Final = 10.0
"""Seconds for a reader to send a question, from its first byte on, and as many to read the answer."""

_PIECE: Final = 1 << 18  # bytes of an answer sent between two turns
_PAUSE: Final = 0.5  # seconds until a connection is accepted again after descriptors ran out


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A question to a handler, with its connection; `descriptors` are closed unless `keep` takes them."""

    question: Question
    descriptors: list[int]
    caller: "Caller"

    def keep(self) -> tuple[int, ...]:
        """Return the descriptors, which the handler must close from now on."""
        kept = tuple(self.descriptors)
        self.descriptors.clear()
        return kept


@dataclass(slots=True, eq=False)
class Caller:
    """One connection, of which only the `owner` may change things; `on_close` is called once when it ends."""

    owner: bool = True
    on_close: list[Callable[[], None]] = field(default_factory=list)
    begun: float | None = None

    def seconds_left(self, *, unfinished: bool) -> float | None:
        """Return the seconds left for a question that has begun, None if none has."""
        if not unfinished:
            self.begun = None
            return None
        now = time.monotonic()
        self.begun = self.begun or now
        return max(0.001, self.begun + READER_SECONDS - now)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithDescriptors:
    """An answer with copies of descriptors; the sender keeps its own."""

    answer: Answer
    descriptors: Sequence[int]


Handler = Callable[[Call], Answer | WithDescriptors]


class ControlServer:
    """Answers one program's commands on a unix socket, with one greenlet per connection.

    `for_readers` are the read-only commands: users other than root and the owner can give no others. A
    handler may block its greenlet. A handler's error is answered, and reported to `on_error`. If the socket
    is removed, also with its directory, it is created again as soon as the directory exists. `turns` are the
    program's, unless gevent's loop gives them.
    """

    def __init__(
        self,
        path: Path,
        handlers: Mapping[str, Handler],
        *,
        on_error: OnError,
        for_readers: Collection[str] = (),
        turns: Turns | None = None,
    ) -> None:
        self._path = path
        self._commands = CommandTable(handlers, for_readers=for_readers, on_error=on_error)
        self._readers = ReaderShare()
        self._turns = turns or Turns()
        self._on_error = on_error
        self._listener = listen_for_readers(path)
        self._name = SocketName(path)
        self._loop = gevent.spawn(self._accept)
        self._keeper = gevent.spawn(self._keep)

    def close(self) -> None:
        """Stop listening and remove the socket, unless it is a successor's; connections end on their own."""
        self._keeper.kill()
        self._loop.kill()
        self._name.remove()
        self._listener.close()

    def _keep(self) -> None:
        """Listen again if the socket was removed: no client could find it."""
        while True:
            gevent.sleep(until_next(KEEP))
            if not self._name.is_missing:
                continue
            with contextlib.suppress(OSError):  # the directory does not exist yet, or is full
                listener = listen_for_readers(self._path)
                self._loop.kill()
                self._listener.close()
                self._listener, self._name = listener, SocketName(self._path)
                self._loop = gevent.spawn(self._accept)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:  # out of descriptors: try again a little later, traffic has priority
                self._on_error("accept", error)
                gevent.sleep(_PAUSE)
                continue
            self._spawn(connection)
            self._turns.give()

    def _spawn(self, connection: socket.socket) -> None:
        """Serve the owner always, and a few readers at a time: descriptors remain for the owner."""
        caller = Caller(owner=permissions.is_owner(connection))
        serving = gevent.Greenlet(self._serve, connection, caller)
        if not caller.owner:
            if not self._readers.enter(serving, peer_credentials(connection).user):
                connection.close()
                return
            # A greenlet killed before it starts runs nothing.
            serving.rawlink(self._readers.leave)
            serving.rawlink(lambda _: connection.close())
        serving.start()

    def _serve(self, connection: socket.socket, caller: Caller) -> None:
        lines = LineBuffer(QUESTION_LIMIT if caller.owner else permissions.READER_BYTES)
        descriptors: list[int] = []
        try:
            while chunk := self._receive(connection, descriptors, lines, caller):
                self._turns.give()
                for line in lines.feed(chunk):
                    self._turns.give()
                    if line:
                        self._answer(connection, line, descriptors, caller)
                        descriptor_passing.close_all(descriptors)
        except (OSError, ControlError) as error:
            if isinstance(error, ControlError):  # an OSError is a peer that went away
                self._on_error("line", error)
        finally:
            connection.close()
            descriptor_passing.close_all(descriptors)
            for callback in caller.on_close:
                callback()

    def _receive(
        self, connection: socket.socket, descriptors: list[int], lines: LineBuffer, caller: Caller
    ) -> bytes:
        if caller.owner:
            return descriptor_passing.receive(connection, descriptors)
        with gevent.Timeout(caller.seconds_left(unfinished=lines.unfinished), TimeoutError):
            return descriptor_passing.receive(connection, descriptors, permissions.READER_BYTES)

    def _answer(self, connection: socket.socket, line: bytes, descriptors: list[int], caller: Caller) -> None:
        if caller.owner:
            self._send(connection, self._result(line, descriptors, caller), caller)
            return
        with self._readers.question(gevent.getcurrent()):
            answer = self._result(line, descriptors, caller)
        with gevent.Timeout(READER_SECONDS, TimeoutError):
            self._send(connection, answer, caller)

    def _send(self, connection: socket.socket, answer: Answer | WithDescriptors, caller: Caller) -> None:
        if isinstance(answer, WithDescriptors):
            descriptor_passing.send(
                connection, encode_answer(answer.answer), answer.descriptors if caller.owner else ()
            )
            return
        line = memoryview(encode_answer(answer))
        for start in range(0, len(line), _PIECE):
            if start:  # not before the first: after the answer to `stop` no greenlet may be left for it
                self._turns.give()
            connection.sendall(line[start : start + _PIECE])

    def _result(self, line: bytes, descriptors: list[int], caller: Caller) -> Answer | WithDescriptors:
        def run(handler: Handler, question: Question) -> Answer | WithDescriptors:
            return handler(Call(question=question, descriptors=descriptors, caller=caller))

        return self._commands.answer(line, owner=caller.owner, run=run)
