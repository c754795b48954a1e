"""The client side of a control socket: one question, one answer."""

import contextlib
import select
from collections.abc import Callable, Sequence
from pathlib import Path

import gevent
from gevent import socket
from gevent.event import Event
from gevent.lock import RLock
from gevent.queue import Empty, Queue

from appliance.net.closable import Closable
from appliance.net.control import descriptor_passing
from appliance.wire.lines import status_answer
from appliance.wire.lines.control import Answer, ControlError, Question, decode_answer, encode_question
from appliance.wire.lines.line_buffer import LineBuffer
from appliance.wire.lines.status_answer import Status, StatusAnswerError


class ControlUnavailable(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """The program does not answer: it is not running, it exited, or it exceeded the time-out."""


class ControlClient(Closable):
    """A persistent connection to a control server. Questions from several greenlets take turns.

    `closed` is set as soon as the other side is gone: the kernel closes the sockets of a dead process, so
    this detects its death. The constructor and every question raise ControlUnavailable.
    """

    def __init__(self, path: Path, *, timeout: float = 5.0) -> None:
        self.path = path
        self.closed = Event()
        self._lines = LineBuffer()
        self._turn = RLock()
        self._answers: Queue[tuple[Answer, tuple[int, ...]] | None] = Queue()
        try:
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        except OSError as error:  # out of descriptors
            raise ControlUnavailable(f"{path}: {error.strerror or error}") from error
        self._socket.settimeout(timeout)
        try:
            self._socket.connect(str(path))
        except OSError as error:
            self._socket.close()
            raise ControlUnavailable(f"{path}: {error.strerror or error}") from error
        self._socket.settimeout(None)
        self._reader = gevent.spawn(self._read)

    def ask(
        self,
        question: Question,
        *,
        timeout: float = 30.0,
        descriptors: Sequence[int] = (),
        on_sent: Callable[[], None] = lambda: None,
    ) -> Answer:
        """Return the answer; descriptors that come with it are closed. `timeout` is seconds.

        `on_sent` is called once the whole question is sent: a server gone before that never had it.
        """
        answer, received = self.ask_for_descriptors(
            question, timeout=timeout, descriptors=descriptors, on_sent=on_sent
        )
        descriptor_passing.close_all(list(received))
        return answer

    def ask_for_descriptors(
        self,
        question: Question,
        *,
        timeout: float = 30.0,
        descriptors: Sequence[int] = (),
        on_sent: Callable[[], None] = lambda: None,
    ) -> tuple[Answer, tuple[int, ...]]:
        """Return the answer and the descriptors that came with it, which the caller now owns."""
        line, command = encode_question(question), question.command
        with self._turn:
            if self.closed.is_set():
                raise ControlUnavailable(f"{self.path}: gone")
            try:
                descriptor_passing.send(self._socket, line, descriptors)
                on_sent()
                answer: tuple[Answer, tuple[int, ...]] | None = self._answers.get(timeout=timeout)
            except OSError as error:
                self.close()
                raise ControlUnavailable(f"{self.path}: {error.strerror or error}") from error
            except Empty:
                # A late answer would be taken for that of the next question: this connection is unusable.
                self.close()
                raise ControlUnavailable(
                    f"{self.path}: no answer to {command} within {timeout:g} s"
                ) from None
        if answer is None:
            raise ControlUnavailable(f"{self.path}: went away during {command}")
        return answer

    @property
    def is_gone(self) -> bool:
        """Whether the other side is gone by now; `closed` is set when the loop has read that."""
        if self.closed.is_set():
            return True
        poll = select.poll()
        poll.register(self._socket, 0)
        return bool(poll.poll(0))

    def close(self) -> None:
        """Close the connection. Waiting questions raise ControlUnavailable."""
        self.closed.set()
        self._reader.kill()
        self._socket.close()

    def _receive(self, descriptors: list[int]) -> bytes:
        return descriptor_passing.receive(self._socket, descriptors, most_descriptors=descriptor_passing.MOST)

    def _read(self) -> None:
        descriptors: list[int] = []
        try:
            while chunk := self._receive(descriptors):
                for line in self._lines.feed(chunk):
                    given, descriptors[:] = tuple(descriptors), []
                    self._answers.put((decode_answer(line), given))
        except (OSError, ControlError):
            pass  # either way the connection is unusable: waiting questions fail below
        finally:
            self.closed.set()
            self._answers.put(None)
            descriptor_passing.close_all(descriptors)


def status_of(path: Path, kind: type[Status], *, timeout: float) -> Status | None:
    """Return a program's answer to `status`; None without a valid answer in time."""
    with contextlib.suppress(ControlUnavailable, StatusAnswerError):
        answer = ask(path, Question(command="status"), timeout=timeout)
        return status_answer.decode(answer.values, kind) if answer.ok else None
    return None


def ask(path: Path, question: Question, *, timeout: float = 30.0) -> Answer:
    """Ask one question on a new connection; raises ControlUnavailable."""
    with ControlClient(path, timeout=min(timeout, 5.0)) as client:
        return client.ask(question, timeout=timeout)
