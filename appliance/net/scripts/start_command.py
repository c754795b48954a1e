"""The start of a command of the operator: fork, become its user, exec.

A command is forked and exec'd here rather than by `subprocess`, whose Popen waits for the exec: a program on
a hanging file system would block us. The child has none of our environment, only the three standard
descriptors, and dies with this process, however that ends.
"""

import contextlib
import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

from appliance.net.process.prctl import die_with
from appliance.net.scripts.account import Account
from appliance.net.scripts.command_path import COMMAND_PATH
from appliance.net.scripts.script_leftovers import mark

_MOST_DESCRIPTORS: Final = 1 << 30
_UNCATCHABLE: Final = frozenset({signal.SIGKILL, signal.SIGSTOP})


def start_command(words: Sequence[str], account: Account, runtime: Path | None) -> tuple[int, int, int, int]:
    """Start a command; return the reading ends of its output and its error, its process id and pidfd.

    The second pipe ends with the reason why the command could not be run: exec(2) closes the writing end
    (O_CLOEXEC), so an empty pipe is a successful start. Raises OSError if this machine cannot fork.
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
