"""The nursery of a master: a process that has imported what workers need, and forks them on request.

Each worker shares that memory, and starts without imports. The master forks the nursery first of all, while
it has neither a loop nor sockets: nothing of the master reaches its workers. The nursery has no capability,
like them. It ends when the master's end of its socket is closed, so it dies with its master, and the next
master, perhaps of another release, has one of its own.

A worker is the master's own child, for which the master is made a subreaper: the nursery forks a process that
forks the worker and exits.
"""

import contextlib
import json
import os
import signal
import socket
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from appliance.net.privileges import capabilities
from appliance.net.process import python, shown_command, subreaper
from appliance.net.process.signals import survive
from appliance.net.starting import forked_program
from appliance.net.starting.forked_program import ReleaseFiles

NAME: Final = "appliance.proxy.nursery"
"""What `ps` shows of it in the place of a program's module."""

_IN_ONE_MESSAGE: Final = 250  # descriptors; the kernel takes at most SCM_MAX_FD (253)
_PATIENCE: Final = 5.0  # seconds for a fork, and before the first one for the imports
_STDIN: Final = 0
_STDERR: Final = 2
_MOST: Final = 65536


class NurseryGone(Exception):  # noqa: N818  # a state of the other side, not a mistake of ours
    """The nursery cannot fork a worker: it has ended, does not answer, or another release is installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Order:
    """A worker to be forked; `descriptors` are its numbers of those that come with the order."""

    words: list[str]
    environment: dict[str, str]
    descriptors: list[int]


class Nursery:
    """The nursery of this master, as it asks for workers."""

    def __init__(self, connection: socket.socket, pid: int, group: str) -> None:
        self._connection, self._pid = connection, pid
        self._words = tuple(python.command(NAME, group))
        self._files = ReleaseFiles()
        self._ended = False

    def fork(
        self, words: Sequence[str], environment: Mapping[str, str], *, descriptors: Sequence[int], errors: int
    ) -> int:
        """Fork a program, and return its process id: it is our child.

        It inherits `descriptors` by their numbers, and `errors` as its standard error. Raises NurseryGone,
        and OSError if there can be no further process.
        """
        if self._files.changed:
            raise NurseryGone("another release has been installed")
        if self._ended:
            raise NurseryGone("it has ended")
        order = _Order(words=list(words), environment=dict(environment), descriptors=[_STDERR, *descriptors])
        try:
            self._send(order, [errors, *descriptors])
            answer = self._connection.recv(_MOST).decode()
        except OSError as error:
            self._give_up(words)
            raise NurseryGone(f"no answer: {error}") from error
        pid, _, reason = answer.partition(" ")
        if not pid:
            self._give_up(words)
            raise NurseryGone("it has ended")
        if reason:
            raise OSError(int(pid), reason)
        return int(pid)

    def close(self) -> None:
        """End it; its workers continue."""
        if not self._ended:
            self._ended = True
            self._connection.close()
            _end(self._pid)

    def _give_up(self, words: Sequence[str]) -> None:
        """End it, and what it may have forked without an answer: there would be two of that program."""
        self.close()
        begun = {tuple(words), self._words}
        while found := [each for each in subreaper.children() if _words_of(each) in begun]:
            for pid in found:
                _end(pid)

    def _send(self, order: _Order, descriptors: Sequence[int]) -> None:
        text = os.memfd_create("order", os.MFD_CLOEXEC)
        try:
            _write(text, json.dumps([order.words, order.environment, order.descriptors]).encode())
            whole = [text, *descriptors]
            for start in range(0, len(whole), _IN_ONE_MESSAGE):
                some = whole[start : start + _IN_ONE_MESSAGE]
                socket.send_fds(self._connection, [str(len(whole)).encode()], some)
        finally:
            os.close(text)


def begin(module: str, group: str) -> Nursery | None:
    """Fork the nursery of this process for a module; None where workers can only have a process of their own.

    Call it before there is a loop, a thread or a descriptor that workers must not have.
    """
    if not forked_program.is_possible():
        return None
    subreaper.become_subreaper()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Held back: until it has handlers of its own, a signal to every process would end the new one.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    try:
        pid = os.fork()
        if pid == 0:
            _be_nursery(theirs, module, group, mask)
    except OSError:
        ours.close()
        theirs.close()
        return None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    theirs.close()
    ours.settimeout(_PATIENCE)
    return Nursery(ours, pid, group)


def _be_nursery(connection: socket.socket, module: str, group: str, mask: Iterable[int]) -> NoReturn:
    try:
        forked_program.forget()
        # A signal to every process of a unit or a terminal is not meant for it; it ends with the master.
        survive(signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2, signal.SIGQUIT)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        capabilities.grant(())
        forked_program.close_others({*forked_program.STANDARD, connection.fileno()})
        shown_command.show(python.command(NAME, group), os.environ)
        forked_program.load([module])
        while order := _received(connection):
            connection.send(_forked(*order))
    except BaseException:  # noqa: BLE001  # the end of the process, whatever it was
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(0)


def _received(connection: socket.socket) -> tuple[_Order, list[int]] | None:
    """Return the next order with its descriptors, None when the master has gone."""
    whole: list[int] = []
    expected = 1
    while len(whole) < expected:
        said, some, _, _ = socket.recv_fds(connection, _MOST, _IN_ONE_MESSAGE, socket.MSG_CMSG_CLOEXEC)
        if not said:
            return None
        expected = int(said)
        whole += some
    text, *descriptors = whole
    with os.fdopen(text, "rb") as file:
        file.seek(0)
        words, environment, numbers = json.loads(file.read())
    return _Order(words=words, environment=environment, descriptors=numbers), descriptors


def _forked(order: _Order, descriptors: list[int]) -> bytes:
    """Fork a worker as a grandchild, and return its number or the errno with the reason."""
    reader, writer = os.pipe()
    try:
        between = os.fork()
        if between == 0:
            _be_parent_of(order, descriptors, writer)
        os.waitpid(between, 0)
        return os.read(reader, _MOST)
    except OSError as error:
        return f"{error.errno} {error.strerror}".encode()
    finally:
        for each in (reader, writer, *descriptors):
            os.close(each)


def _be_parent_of(order: _Order, descriptors: list[int], writer: int) -> NoReturn:
    """Fork the worker, report its process id and exit: then it is the master's child."""
    try:
        shown_command.show(order.words, order.environment)  # before it exists: nobody sees another one of it
        child = os.fork()
        if child == 0:
            _be_worker(order, descriptors)
        os.write(writer, str(child).encode())
    except OSError as error:
        os.write(writer, f"{error.errno} {error.strerror}".encode())
    finally:
        os._exit(0)


def _be_worker(order: _Order, descriptors: list[int]) -> NoReturn:
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    os.dup2(nothing, _STDIN)
    given = dict(zip(order.descriptors, descriptors, strict=True))
    forked_program.become(order.words, order.environment, descriptors=given)


def _end(child: int) -> None:
    with contextlib.suppress(ProcessLookupError, ChildProcessError):
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def _words_of(pid: int) -> tuple[str, ...]:
    try:
        words = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return ()
    return tuple(map(os.fsdecode, words.removesuffix(b"\0").split(b"\0")))


def _write(descriptor: int, data: bytes) -> None:
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(data)
