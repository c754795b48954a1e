"""Running commands of the operator: awaited, terminated on time-out, with the end of their output.

A command has no shell and its own session (setsid(2)), so that all its processes can be signalled at once.
"""

import contextlib
import os
import select
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NoReturn

from gevent import get_hub
from gevent.event import Event

from appliance.model.messages.quoting import masked
from appliance.model.messages.redaction import redacted, scrubbed
from appliance.net.process.prctl import die_with
from appliance.net.scripts.account import Account
from appliance.net.scripts.command_path import COMMAND_PATH
from appliance.net.scripts.script_leftovers import mark

_MOST_DESCRIPTORS: Final = 1 << 30
_UNCATCHABLE: Final = frozenset({signal.SIGKILL, signal.SIGSTOP})

GRACE: Final = 0.5
"""Seconds between TERM and KILL for a command that exceeds its time-out."""

_UNPRINTABLE: Final = "\ufffd"  # U+FFFD, the replacement character, as for bytes that are not UTF-8
_CHUNK: Final = 65536  # the capacity of a pipe
_KEPT: Final = 2048
_SHOWN: Final = 200


def start_command(words: Sequence[str], account: Account, runtime: Path | None) -> tuple[int, int, int, int]:
    """Start a command; return the reading ends of its output and its error, its process id and pidfd.

    The second pipe ends with the reason why the command could not be run: exec(2) closes the writing end
    (O_CLOEXEC), so an empty pipe is a successful start. Raises OSError if this machine cannot fork.

    It is forked and exec'd here rather than by `subprocess`, whose Popen waits for the exec: a program on a
    hanging file system would block us. The child has none of our environment, only the three standard
    descriptors, and dies with this process, however that ends.
    """
    with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
        output, their_output = os.pipe2(os.O_CLOEXEC)
        ours.callback(os.close, output)
        theirs.callback(os.close, their_output)
        failure, their_failure = os.pipe2(os.O_CLOEXEC)
        ours.callback(os.close, failure)
        theirs.callback(os.close, their_failure)
        for descriptor in (output, failure):
            os.set_blocking(descriptor, False)
        parent = os.getpid()
        pid = os.fork()
        if pid == 0:
            marks = {} if runtime is None else mark(runtime, os.getpid())
            environment = {**_environment(account), **marks}
            _run(words, account, environment, their_output, their_failure, parent)
        pidfd = _hold(pid)
        ours.pop_all()
    return output, failure, pid, pidfd


def _hold(pid: int) -> int:
    """Return the pidfd of our child, which is killed if there is none to be had; raises OSError."""
    try:
        return os.pidfd_open(pid)
    except OSError:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        raise


def _run(
    words: Sequence[str],
    account: Account,
    environment: Mapping[str, str],
    output: int,
    failure: int,
    parent: int,
) -> NoReturn:
    """Become the command; runs in the child, and must not return."""
    try:
        os.setsid()
        _ordinary_signals()
        _redirect(output)
        _become(account)
        die_with(parent, signal.SIGKILL)  # after the change of user, which would undo it
        os.chdir("/")
        os.umask(0o022)
        os.closerange(3, failure)
        os.closerange(failure + 1, _MOST_DESCRIPTORS)
        os.execvpe(words[0], list(words), environment)  # noqa: S606  # no shell is the point
    except BaseException as error:  # noqa: BLE001  # nothing may run on in a copy of us
        with contextlib.suppress(OSError):
            os.write(failure, _objection(words[0], error).encode(errors="replace"))
    os._exit(127)


def _objection(program: str, error: BaseException) -> str:
    if isinstance(error, FileNotFoundError) and Path(program).exists():
        return f"{program}: the interpreter in its first line does not exist"
    return f"{program}: {error.strerror if isinstance(error, OSError) else error}"


def _ordinary_signals() -> None:
    for number in signal.valid_signals() - _UNCATCHABLE:
        with contextlib.suppress(OSError):  # EINVAL for two that the C library keeps for its threads
            signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _redirect(output: int) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.dup2(output, 1)
    os.dup2(output, 2)


def _become(account: Account) -> None:
    # Groups first, then the group, then the user: after setuid(2) the others cannot be changed.
    wanted = (account.uid, account.gid, set(account.groups))
    if wanted == (os.geteuid(), os.getegid(), set(os.getgroups())):
        return
    try:
        os.setgroups(account.groups)
        os.setgid(account.gid)
        os.setuid(account.uid)
    except PermissionError as error:
        raise PermissionError(error.errno, f"not permitted to run as user {account.name}") from error


def _environment(account: Account) -> dict[str, str]:
    return {"PATH": COMMAND_PATH, "HOME": account.home, "USER": account.name, "LOGNAME": account.name}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a command ended; `detail` is for operators: `exited 1: no such pod`. `late`: it was terminated."""

    passed: bool
    detail: str
    late: bool = False


class Command:
    """One running command; raises OSError if it cannot be started.

    With `sweep` the remaining processes of its process group are killed when it exits. With `runtime`, the
    runtime directory, its processes are marked for `script_leftovers`. Secrets in URLs among the words are
    hidden in its output: curl repeats the address of a webhook that answers 404.
    """

    def __init__(
        self, words: Sequence[str], account: Account, *, sweep: bool, runtime: Path | None = None
    ) -> None:
        self.ended = Event()
        self._sweep = sweep
        self._output, self._failure, self.pid, self._pidfd = start_command(words, account, runtime)
        self._tail = b""
        self._words = words
        self._ending = Ending(passed=False, detail="")
        loop = get_hub().loop
        self._reading = loop.io(self._output, 1)
        self._reading.start(self._read)
        self._dying = loop.io(self._pidfd, 1)
        self._dying.start(self._reap)

    def wait(self, timeout: float) -> Ending:
        """Return how it ended. After `timeout` seconds it gets TERM, and GRACE seconds later KILL."""
        try:
            if self.ended.wait(timeout) or self._ended_unnoticed():
                return self._ending
            self._sweep = True
            self._signal(signal.SIGTERM)
            self.ended.wait(GRACE)
        except BaseException:  # also GreenletExit: the waiting greenlet was killed
            self.kill()
            raise
        self._signal(signal.SIGKILL)
        return Ending(passed=False, detail=f"no end within {timeout:g} s{self._said()}", late=True)

    def _ended_unnoticed(self) -> bool:
        """Return whether it ended in time, and only this process was late because it was not running."""
        if self.ended.is_set():
            return True
        now = select.poll()
        now.register(self._pidfd, select.POLLIN)
        return bool(now.poll(0) and self.ended.wait(GRACE))

    def kill(self) -> None:
        """Kill the command and its process group."""
        self._sweep = True
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        """Send a signal to the leader and its process group.

        The group's number is not reused before its leader is reaped (credentials(7)). The leader is also
        signalled by its pidfd: it may not have called setsid yet, or may run with rights that we lack.
        """
        if self.ended.is_set():
            return
        for send in (self._to_leader, self._to_group):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                send(number)

    def _to_leader(self, number: signal.Signals) -> None:
        signal.pidfd_send_signal(self._pidfd, number)

    def _to_group(self, number: signal.Signals) -> None:
        os.killpg(self.pid, number)

    def _read(self) -> None:
        try:
            data = os.read(self._output, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self._reading.stop()
        self._tail = (self._tail + data)[-_KEPT:]

    def _reap(self) -> None:
        self._dying.close()
        if self._sweep:
            self._signal(signal.SIGKILL)
        self._read()
        self._reading.close()
        ended = os.waitid(os.P_PIDFD, self._pidfd, os.WEXITED)
        failure = _rest(self._failure)
        for descriptor in (self._pidfd, self._output, self._failure):
            os.close(descriptor)
        if failure:
            self._ending = Ending(passed=False, detail=f"cannot be run: {failure}")
        elif ended is not None:
            self._ending = self._ended(ended)
        self.ended.set()

    def _ended(self, ended: os.waitid_result) -> Ending:
        exited = ended.si_code == os.CLD_EXITED
        if exited and ended.si_status == 0:
            return Ending(passed=True, detail="exited 0")
        how = f"exited {ended.si_status}" if exited else f"killed by {_signal_name(ended.si_status)}"
        return Ending(passed=False, detail=how + self._said())

    def _said(self) -> str:
        """Return a colon and the end of the output, as one line that is safe on a terminal."""
        lines = (" ".join(line.split()) for line in self._tail.decode(errors="replace").splitlines())
        addresses = [word for word in self._words if "://" in word]
        text = scrubbed("; ".join(filter(None, lines)), redacted({"webhook": addresses}).secrets)
        if len(text) > _SHOWN:
            text = "..." + text[-_SHOWN:]
        return f": {masked(text, _UNPRINTABLE)}" if text else ""


def _rest(descriptor: int) -> str:
    with contextlib.suppress(BlockingIOError):
        return os.read(descriptor, _KEPT).decode(errors="replace")
    return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
