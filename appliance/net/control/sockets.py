"""Control sockets: unix sockets with one question and one answer at a time.

Only their owner can open them, and the members of `group:`, who are answered what they may look at.

Descriptors travel beside a line as SCM_RIGHTS. Those beside an answer belong to whoever asked; those beside a
question are the server's, which closes them when it has answered, whatever was asked.
"""

import contextlib
import os
import struct
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Self

import gevent
from gevent import socket
from gevent.event import Event
from gevent.lock import RLock
from gevent.queue import Empty, Queue

from appliance.net.control import peers, unix_listener
from appliance.net.files import readers
from appliance.wire.lines.control import (
    QUESTION_LIMIT,
    Answer,
    ControlError,
    LineBuffer,
    Question,
    bad,
    decode_answer,
    decode_question,
    encode_answer,
    encode_question,
)

_CHUNK: Final = 65536
KEEP: Final = 1.0
"""Seconds between two looks whether a socket is still there."""
_MAX_DESCRIPTORS: Final = 250  # the kernel takes at most SCM_MAX_FD (253) in one message


class ControlUnavailable(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """The program does not answer: it is not running, it went away, or it took longer than was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """A question as a handler sees it; `caller` is its connection.

    `descriptors` are closed when the handler has returned: what it is to keep it duplicates.
    """

    question: Question
    descriptors: tuple[int, ...]
    caller: "Caller"


@dataclass(slots=True, eq=False)
class Caller:
    """One connection to a control server; `on_close` runs once, when it ends.

    Who is not the `owner` may only look.
    """

    owner: bool = True
    on_close: list[Callable[[], None]] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class WithDescriptors:
    """An answer that hands copies of descriptors over; the sender keeps its own."""

    answer: Answer
    descriptors: Sequence[int]


Handler = Callable[[Call], Answer | WithDescriptors]


class ControlServer:
    """Serves one program's commands on a unix socket, one greenlet for each connection.

    `for_readers` are the commands that only look: others than root and the owner get no other one.

    A socket that somebody removes, or whose directory is removed and made again, is made again. Handlers may
    block their greenlet. One that raises is answered with its error, and reported to `on_error`.
    """

    def __init__(
        self,
        path: Path,
        handlers: Mapping[str, Handler],
        *,
        on_error: Callable[[str, Exception], None],
        for_readers: Collection[str] = (),
    ) -> None:
        self._path = path
        self._handlers = dict(handlers)
        self._for_readers = frozenset(for_readers)
        self._readers = 0
        self._on_error = on_error
        self._listener = _listen_for_readers(path)
        self._inode = path.stat().st_ino
        self._loop = gevent.spawn(self._accept)
        self._keeper = gevent.spawn(self._keep)

    def close(self) -> None:
        """Stop listening and remove the socket, unless it is a successor's; connections end by themselves."""
        self._keeper.kill()
        self._loop.kill()
        with contextlib.suppress(FileNotFoundError):
            if self._path.stat().st_ino == self._inode:  # not used again while we still listen
                self._path.unlink()
        self._listener.close()

    def _keep(self) -> None:
        """Listen again where nobody can find us any more; a name that is there may be a successor's."""
        while True:
            gevent.sleep(KEEP)
            if self._path.exists():
                continue
            with contextlib.suppress(OSError):  # the directory is not there yet, or full
                listener = _listen_for_readers(self._path)
                self._loop.kill()
                self._listener.close()
                self._listener, self._inode = listener, self._path.stat().st_ino
                self._loop = gevent.spawn(self._accept)

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError as error:  # out of descriptors: try again a little later, traffic has priority
                self._on_error("accept", error)
                gevent.sleep(0.5)
                continue
            gevent.spawn(self._serve_somebody, connection)

    def _serve_somebody(self, connection: socket.socket) -> None:
        """Serve the owner in any case, and as many others as leave him descriptors."""
        if peers.is_owner(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, peers.SIZE)):
            self._serve(connection, Caller())
        elif self._readers >= peers.MOST_READERS:
            connection.close()
        else:
            self._readers += 1
            try:
                self._serve(connection, Caller(owner=False))
            finally:
                self._readers -= 1

    def _serve(self, connection: socket.socket, caller: Caller) -> None:
        lines = LineBuffer(QUESTION_LIMIT)
        descriptors: list[int] = []
        try:
            while chunk := _receive(connection, descriptors):
                for line in lines.feed(chunk):
                    if line:
                        self._answer(connection, line, tuple(descriptors), caller)
                        _close(descriptors)
        except (OSError, ControlError) as error:
            if isinstance(error, ControlError):
                self._on_error("line", error)
        finally:
            connection.close()
            _close(descriptors)
            for callback in caller.on_close:
                callback()

    def _answer(
        self, connection: socket.socket, line: bytes, descriptors: tuple[int, ...], caller: Caller
    ) -> None:
        answer = self._result(line, descriptors, caller)
        if isinstance(answer, WithDescriptors):
            _send(connection, encode_answer(answer.answer), answer.descriptors if caller.owner else ())
            return
        connection.sendall(encode_answer(answer))

    def _result(self, line: bytes, descriptors: tuple[int, ...], caller: Caller) -> Answer | WithDescriptors:
        question = decode_question(line)
        handler = self._handlers.get(question.command)
        if handler is None:
            return bad(f"unknown command {question.command!r}; known: {', '.join(sorted(self._handlers))}")
        if not caller.owner and (refusal := peers.refusal(question.command, self._for_readers)):
            return refusal
        try:
            return handler(Call(question=question, descriptors=descriptors, caller=caller))
        except ControlError as error:
            return bad(str(error))
        except Exception as error:  # noqa: BLE001  # a bug in one command must not end the program; it is reported
            self._on_error(question.command, error)
            return bad(f"{question.command}: {type(error).__name__}: {error}")


class ControlClient:
    """A held connection to a control server. Questions from several greenlets take turns.

    `closed` is set when the other side has gone: its death notice. Raises ControlUnavailable.
    """

    def __init__(self, path: Path, *, timeout: float = 5.0) -> None:
        self.path = path
        self.closed = Event()
        self._lines = LineBuffer()
        self._turn = RLock()
        self._answers: Queue[tuple[Answer, tuple[int, ...]] | None] = Queue()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise ControlUnavailable(f"{path}: {error.strerror or error}") from error
        self._socket.settimeout(None)
        self._reader = gevent.spawn(self._read)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def ask(self, question: Question, *, timeout: float = 30.0, descriptors: Sequence[int] = ()) -> Answer:
        """Return the answer; descriptors that come with it are closed. `timeout` is seconds."""
        answer, received = self.ask_for_descriptors(question, timeout=timeout, descriptors=descriptors)
        _close(list(received))
        return answer

    def ask_for_descriptors(
        self, question: Question, *, timeout: float = 30.0, descriptors: Sequence[int] = ()
    ) -> tuple[Answer, tuple[int, ...]]:
        """Return the answer and the descriptors that came with it, which are now the caller's."""
        line, command = encode_question(question), question.command
        with self._turn:
            if self.closed.is_set():
                raise ControlUnavailable(f"{self.path}: gone")
            try:
                _send(self._socket, line, descriptors)
                answer: tuple[Answer, tuple[int, ...]] | None = self._answers.get(timeout=timeout)
            except OSError as error:
                self.close()
                raise ControlUnavailable(f"{self.path}: {error.strerror or error}") from error
            except Empty:
                # A late answer would be taken for the next one's: this connection cannot be used again.
                self.close()
                raise ControlUnavailable(
                    f"{self.path}: no answer to {command} within {timeout:g} s"
                ) from None
        if answer is None:
            raise ControlUnavailable(f"{self.path}: went away during {command}")
        return answer

    def close(self) -> None:
        """End the connection."""
        self.closed.set()
        self._reader.kill()
        self._socket.close()

    def _read(self) -> None:
        descriptors: list[int] = []
        try:
            while chunk := _receive(self._socket, descriptors):
                for line in self._lines.feed(chunk):
                    given, descriptors[:] = tuple(descriptors), []
                    self._answers.put((decode_answer(line), given))
        except (OSError, ControlError):
            pass  # either way the other side is of no use any more: what follows says so to whoever waits
        finally:
            self.closed.set()
            self._answers.put(None)
            _close(descriptors)


def ask(path: Path, question: Question, *, timeout: float = 30.0) -> Answer:
    """Ask one question on a connection of its own; raises ControlUnavailable."""
    with ControlClient(path, timeout=min(timeout, 5.0)) as client:
        return client.ask(question, timeout=timeout)


def listen_unix(path: Path) -> socket.socket:
    """Return a listening unix socket at `path`, in the place of one left by a dead program; for its owner."""
    return socket.socket(fileno=unix_listener.listen_unix(path).detach())


def _listen_for_readers(path: Path) -> socket.socket:
    mode = readers.socket_mode(path.parent)
    return socket.socket(fileno=unix_listener.listen_unix(path, mode=mode).detach())


def _close(descriptors: list[int]) -> None:
    """Close descriptors that came over a socket, and forget them."""
    while descriptors:
        os.close(descriptors.pop())


def _send(connection: socket.socket, data: bytes, descriptors: Sequence[int]) -> None:
    if len(descriptors) > _MAX_DESCRIPTORS:
        raise OSError(f"{len(descriptors)} descriptors do not fit one message")
    sent = 0
    if descriptors:
        rights = struct.pack(f"{len(descriptors)}i", *descriptors)
        sent = connection.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
    connection.sendall(data[sent:])


def _receive(connection: socket.socket, descriptors: list[int]) -> bytes:
    """Return the next chunk, b"" at the end, and add the descriptors that came with it.

    Raises ControlError when those of one line are too many: they are there, to be closed.
    """
    room = socket.CMSG_SPACE(_MAX_DESCRIPTORS * 4)
    chunk, ancillary, _, _ = connection.recvmsg(_CHUNK, room, socket.MSG_CMSG_CLOEXEC)
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            count = len(data) // 4
            descriptors.extend(struct.unpack(f"{count}i", data[: count * 4]))
    if len(descriptors) > _MAX_DESCRIPTORS:
        raise ControlError(f"more than {_MAX_DESCRIPTORS} descriptors beside one line")
    return bytes(chunk)
