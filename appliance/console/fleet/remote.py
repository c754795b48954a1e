"""Commands on several nodes at the same time: what goes in, what comes out, and a deadline for all.

Each is a process of this machine: OpenSSH's client, or the command itself for this node. A process that is
still there at the end is ended; the command on the other node then reads the end of its input.
"""

import contextlib
import os
import selectors
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import IO, Final

from appliance.model.messages.quoting import printable

_CHUNK: Final = 1 << 16
_LONGEST_ERRORS: Final = 1 << 16
_SSH_FAILED: Final = 255
"""The exit status of OpenSSH's client without a connection, or after one that was lost."""

_DENIED: Final = (
    "permission denied (",
    "host key verification failed",
    "too many authentication failures",
    "unable to negotiate",
    "could not resolve hostname",
    "bad configuration option",
    "bad owner or permissions",
)
"""What OpenSSH's client reports, in small letters, where a node may well be up."""

_MOST_WAIT: Final = 1.0
_END: Final = 2.0  # seconds for a process that was asked to end


class RemoteCommand:
    """A command on one node.

    `output` is all that it has printed. `status` is its exit status, None while it runs. `trouble` is why
    nothing more can be expected of it, None for a command that has ended by itself.
    """

    def __init__(
        self, name: str, words: Sequence[str], environment: Mapping[str, str], *, here: bool, longest: int
    ) -> None:
        self.name = name
        self.output = bytearray()
        self.status: int | None = None
        self.trouble: str | None = None
        self._errors = bytearray()
        self._here = here
        self._longest = longest
        self._unsent = memoryview(b"")
        self._closing = False
        # A session of its own: Ctrl-C in a terminal is for the one who decides what becomes of all nodes.
        self._process = subprocess.Popen(  # noqa: S603  # our own command, or ssh with the name of a node
            words,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environment),
            start_new_session=True,
        )
        self._stdin, self._stdout, self._stderr = _pipes(self._process)
        self._ended = os.pidfd_open(self._process.pid)
        for each in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(each.fileno(), False)

    @property
    def errors(self) -> str:
        """What it has printed on standard error."""
        return bytes(self._errors).decode(errors="replace").strip()

    @property
    def is_unreachable(self) -> bool:
        """Whether there was never a connection to the node."""
        return self.status == _SSH_FAILED and not self.output and not self._here

    @property
    def denial(self) -> str | None:
        """What OpenSSH's client reports if a key or its configuration is why there was no connection."""
        lines = self.errors.splitlines() if self.is_unreachable else ()
        return next((each for each in lines if any(said in each.lower() for said in _DENIED)), None)

    @property
    def is_running(self) -> bool:
        """Whether something can still be expected."""
        return self.status is None and self.trouble is None

    def send(self, data: bytes, *, last: bool = False) -> None:
        """Have something written to its standard input; after the `last` it ends."""
        self._unsent = memoryview(bytes(self._unsent) + data)
        self._closing = self._closing or last

    def waits_for(self, selector: selectors.BaseSelector) -> None:
        """Register what it waits for, with a function of ours for each."""
        selector.register(self._ended, selectors.EVENT_READ, self._end)
        if not self._stdout.closed:
            selector.register(self._stdout, selectors.EVENT_READ, self._read_output)
        if not self._stderr.closed:
            selector.register(self._stderr, selectors.EVENT_READ, self._read_errors)
        if not self._stdin.closed and (self._unsent or self._closing):
            selector.register(self._stdin, selectors.EVENT_WRITE, self._write)

    def give_up(self, trouble: str) -> None:
        """Expect nothing more of it, and end it."""
        if not self.is_running:
            return
        self.trouble = trouble
        self.close()

    def close(self) -> None:
        """End it, and close everything; a command of this node ends by itself at the end of its input."""
        for pipe in (self._stdin, self._stdout, self._stderr):
            with contextlib.suppress(OSError):  # what could not be written to it
                pipe.close()
        if self._ended >= 0:
            os.close(self._ended)
            self._ended = -1
        if self._process.poll() is None and not self._here:
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_END)
                return
            self._process.kill()

    def _write(self) -> None:
        try:
            self._unsent = self._unsent[os.write(self._stdin.fileno(), self._unsent[:_CHUNK]) :]
        except BlockingIOError:
            return
        except OSError:  # it has ended, and its status says how
            self._unsent, self._closing = memoryview(b""), True
        if self._closing and not self._unsent:
            with contextlib.suppress(OSError):
                self._stdin.close()

    def _read_output(self) -> None:
        self.output += _read(self._stdout)
        if len(self.output) > self._longest:
            self.give_up(f"it answers more than {self._longest} bytes")

    def _read_errors(self) -> None:
        self._errors = (self._errors + _read(self._stderr))[-_LONGEST_ERRORS:]

    def _end(self) -> None:
        """Take what the process has left in its pipes, and its exit status."""
        if not self.is_running:
            return
        for read, pipe in ((self._read_output, self._stdout), (self._read_errors, self._stderr)):
            before = -1
            while not pipe.closed and before != (before := len(self.output) + len(self._errors)):
                read()
        if self.trouble is None:
            self.status = self._process.wait()
            self.close()


def _pipes(process: "subprocess.Popen[bytes]") -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    if process.stdin is None or process.stdout is None or process.stderr is None:
        raise ValueError("a process without pipes")  # it is started with all three
    return process.stdin, process.stdout, process.stderr


def _read(pipe: IO[bytes]) -> bytes:
    """Return what is there; at the end close the pipe."""
    with contextlib.suppress(BlockingIOError):
        data = os.read(pipe.fileno(), _CHUNK)
        if not data:
            pipe.close()
        return data
    return b""


@contextmanager
def closed_at_the_end(commands: Sequence[RemoteCommand]) -> Iterator[None]:
    """End in any case what still runs."""
    with ExitStack() as stack:
        for each in commands:
            stack.callback(each.close)
        yield


def wait(
    commands: Sequence[RemoteCommand],
    is_done: Callable[[RemoteCommand], bool],
    *,
    seconds: float,
    late: str = "no answer within {:g} s",
    progress: Callable[[RemoteCommand], None] = lambda _: None,
) -> None:
    """Wait for the commands, giving up those that are late; `progress` is called for each that is done."""
    until = time.monotonic() + seconds
    open_ones = list(commands)
    while True:
        for each in [each for each in open_ones if is_done(each) or not each.is_running]:
            open_ones.remove(each)
            progress(each)
        left = until - time.monotonic()
        if not open_ones:
            return
        if left <= 0:
            for each in open_ones:
                each.give_up(late.format(seconds))
            continue
        _look(open_ones, min(left, _MOST_WAIT))


def _look(commands: Sequence[RemoteCommand], seconds: float) -> None:
    with selectors.DefaultSelector() as selector:
        for each in commands:
            each.waits_for(selector)
        # The end of a process comes last: what it has printed before is read by then.
        for key, _ in selector.select(seconds):
            if not getattr(key.fileobj, "closed", False):
                key.data()


def why(command: RemoteCommand) -> str:
    """Return why a command that has ended without an answer has none."""
    said = printable(command.errors.splitlines()[-1]) if command.errors else ""
    if command.trouble:
        return f"{command.trouble}{f': {said}' if said else ''}"
    if command.denial:
        return f"{printable(command.denial)} (does `ssh {command.name}` log you in?)"
    if command.is_unreachable:
        return said or "cannot be reached"
    if command.status == _SSH_FAILED and said:
        return f"the connection was lost: {said}"
    return said or f"its command ended with {command.status}"
