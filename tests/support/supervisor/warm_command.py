"""The command `appliance` without its imports: each call is a process, forked from one that has them.

A new interpreter takes half a second of a processor to import what a command needs, and tests give hundreds
of commands. All else is as where the script is started: arguments, environment, directory, network, output,
exit status.
"""

import atexit
import ctypes
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

_TESTS: Final = Path(__file__).parents[2]
_SCRIPT: Final = str(Path(sys.executable).parent / "appliance")

_AT_START: Final = ("PYTHON", "LC_", "LANG", "TZ", "LD_")
"""How variables begin that are read once: a command with others of these gets an interpreter of its own."""

_MOUNTS: Final = Path("/proc/thread-self/ns/mnt")
_NETWORK: Final = Path("/proc/thread-self/ns/net")
_MACHINES_NETWORK: Final = Path("/proc/1/ns/net")
_OUR_MOUNTS: Final = _MOUNTS.stat()

_LONGEST: Final = 1 << 17


def run(
    arguments: Sequence[str], environment: Mapping[str, str], *, timeout: float
) -> "subprocess.CompletedProcess[str]":
    """Run the operator's command; raises subprocess.TimeoutExpired."""
    command = [_SCRIPT, *arguments]
    same_settings = _settings(environment) == _settings(os.environ)
    if not same_settings or not os.path.samestat(_MOUNTS.stat(), _OUR_MOUNTS):
        return subprocess.run(
            command, env=dict(environment), capture_output=True, text=True, check=False, timeout=timeout
        )
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        if (ended := _forking().ended) is not None:
            sys.stderr.write(f"what commands are forked from has ended with {ended}, and is started again\n")
            _forking.cache_clear()
        status = _forking().run(command, environment, [output.fileno(), errors.fileno()], timeout)
        output.seek(0)
        errors.seek(0)
        return subprocess.CompletedProcess(command, status, output.read().decode(), errors.read().decode())


def _settings(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(_AT_START)}


class _Forking:
    """The process that has everything imported. It ends when its standard input does: with us."""

    def __init__(self) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="lb-command-")
        self._path = f"{self._directory.name}/socket"
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
            listener.bind(self._path)
            listener.listen(64)
            self._process = subprocess.Popen(
                [sys.executable, "-Ps", "-m", "support.supervisor.warm_command", str(listener.fileno())],
                env={**os.environ, "PYTHONPATH": os.pathsep.join(_import_path())},
                stdin=subprocess.PIPE,
                pass_fds=[listener.fileno()],
                start_new_session=True,
            )

    @property
    def ended(self) -> int | None:
        """The exit status, None while it runs; somebody who ends all processes of a name ends it too."""
        return self._process.poll()

    def run(
        self, command: Sequence[str], environment: Mapping[str, str], output: list[int], timeout: float
    ) -> int:
        """Return the exit status, as subprocess has it."""
        call = {"command": command, "environment": dict(environment), "directory": str(Path.cwd())}
        with (
            _NETWORK.open() as network,
            socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection,
        ):
            connection.settimeout(timeout)
            connection.connect(self._path)
            socket.send_fds(connection, [json.dumps(call).encode()], [*output, network.fileno()])
            try:
                return int(connection.recv(100))
            except TimeoutError:
                raise subprocess.TimeoutExpired(list(command), timeout) from None


@cache
def _forking() -> _Forking:
    return _Forking()


def _import_path() -> list[str]:
    """Return where modules are looked for first: `support` after what the environment says."""
    return [*filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep)), str(_TESTS)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """What one command is started with."""

    command: Sequence[str]
    environment: Mapping[str, str]
    directory: str


def _next_call(listener: socket.socket) -> _Call:
    """Return in a process of its own for each call; the one that forks ends here."""
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [])
        if sys.stdin in ready:
            os._exit(0)
        connection, _ = listener.accept()
        with connection:
            if os.fork() == 0:
                listener.close()
                return _attended(connection)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG) != (0, 0):
                pass


def _attended(connection: socket.socket) -> _Call:
    """Return in the process that is to be the command; the other one tells how that ends."""
    text, descriptors, _, _ = socket.recv_fds(connection, _LONGEST, 3)
    child = os.fork()
    if child:
        ended = os.pidfd_open(child)
        ready, _, _ = select.select([ended, connection], [], [])
        if ended not in ready:  # who has asked does not wait any more
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        with suppress(OSError):
            connection.send(str(os.waitstatus_to_exitcode(status)).encode())
        os._exit(0)
    connection.close()
    output, errors, network = descriptors
    _enter(network)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for source, target in ((nothing, 0), (output, 1), (errors, 2)):
        os.dup2(source, target)
    for each in (nothing, *descriptors):
        os.close(each)
    return _Call(**json.loads(text))


def _enter(network: int) -> None:
    if os.path.samestat(os.fstat(network), _NETWORK.stat()):
        return
    if ctypes.CDLL(None, use_errno=True).setns(network, 0):
        raise OSError(ctypes.get_errno(), "setns")


def _main() -> None:
    import click  # noqa: PLC0415  # for the process that forks alone, not for the tests'

    from appliance.console import __main__ as script  # noqa: PLC0415  # the same
    from appliance.console.command import main  # noqa: PLC0415  # the same

    def load(group: click.Group) -> None:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                load(command)

    load(main)
    gc.freeze()
    with suppress(OSError), _MACHINES_NETWORK.open() as network:  # no test's network lives on with us
        _enter(network.fileno())
    call = _next_call(socket.socket(fileno=int(sys.argv[1])))
    os.chdir(call.directory)
    os.environ.clear()
    os.environ.update(call.environment)
    sys.argv = list(call.command)
    try:
        script.run()
    except SystemExit as end:
        if isinstance(end.code, str):
            raise
        # Taking apart again all that was imported would cost more than the command.
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(end.code or 0)


if __name__ == "__main__":
    _main()
