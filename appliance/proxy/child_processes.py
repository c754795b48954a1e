"""Worker processes: starts them, waits until they are ready or dead, and kills them.

A process is held by its pidfd (pidfd_open(2)). It becomes readable when the process ends, even if the process
is not our child (a worker that another master started), which wait(2) never reports. And a signal sent by it
can never reach another process: process numbers are reused as soon as the old process has been reaped.
"""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence

from gevent import get_hub

from appliance.net.logging.output import STDERR, output
from appliance.net.process.python import SAFE_PATH
from appliance.proxy.nursery import Nursery, NurseryGone

_MOST_ERRORS = 65536

Reap = Callable[[], int]

READY = b"R"
"""What a worker writes when it could accept; an end of file instead means that it never will."""


class WorkerProcess:
    """One process, ours or adopted; raises ProcessLookupError if there is none.

    `reap` waits for the end of a child of ours, and returns its status as `subprocess` does. `errors` is a
    file with what it wrote to standard error, None if it uses our own.
    """

    def __init__(self, pid: int, *, reap: Reap | None = None, errors: int | None = None) -> None:
        self.pid = pid
        self._pidfd = os.pidfd_open(pid)
        self._reap = reap
        self._errors = errors

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send a signal; harmless when the process is gone."""
        if self._pidfd < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._pidfd, number)

    def wait(self) -> str:
        """Return how the process ended, once it is gone; only once, as the number may be reused."""
        _wait_readable(self._pidfd)
        detail = _ending(self._reap()) if self._reap else "gone"
        os.close(self._pidfd)
        self._pidfd = -1
        last_line = self.pass_errors_on().strip().rpartition("\n")[2]
        return f"{detail}: {last_line}" if last_line else detail

    def pass_errors_on(self) -> str:
        """Write its standard error to ours, and return that text; empty the second time."""
        if self._errors is None:
            return ""
        text = os.pread(self._errors, _MOST_ERRORS, 0).decode(errors="replace")
        os.close(self._errors)
        self._errors = None
        with contextlib.suppress(OSError):  # nobody reads it any more
            output(STDERR).write(text.encode())
        return text


def spawn(
    module: Sequence[str],
    arguments: Callable[[int], Sequence[str]],
    *,
    listeners: Sequence[int],
    environment: Mapping[str, str],
    nursery: Nursery | None = None,
) -> tuple[WorkerProcess, int]:
    """Start a Python program with these descriptors, and return it with the reading end of its ready pipe.

    The `nursery` forks it if it can; else it gets an interpreter of its own.

    `module` is what follows the interpreter; `arguments` makes the last arguments from the descriptor on
    which the program reports that it is ready. Its standard error is kept for `pass_errors_on`, to explain a
    failed start. Raises OSError.
    """
    # A file in memory and not a pipe: it needs no reader while the program runs, and never blocks.
    errors = os.memfd_create("errors", os.MFD_CLOEXEC)
    # A byte in this pipe means that the program is ready. When the program exits the kernel closes its end,
    # so the reader gets an end of file and does not wait in vain.
    ready, theirs = os.pipe2(os.O_CLOEXEC)
    words = [sys.executable, SAFE_PATH, *module, *arguments(theirs)]
    try:
        pid, reap = _started(words, (*listeners, theirs), errors, environment, nursery)
    except OSError:
        os.close(ready)
        os.close(errors)
        raise
    finally:
        os.close(theirs)
    try:
        return WorkerProcess(pid, reap=reap, errors=errors), ready
    except OSError:
        # Nothing could ever end it, and it would accept on the listeners.
        os.kill(pid, signal.SIGKILL)
        reap()
        os.close(ready)
        os.close(errors)
        raise


def _started(
    words: Sequence[str],
    descriptors: Sequence[int],
    errors: int,
    environment: Mapping[str, str],
    nursery: Nursery | None,
) -> tuple[int, Reap]:
    """Start a child, and return its process id and what waits for its end."""
    if nursery is not None:
        with contextlib.suppress(NurseryGone):
            pid = nursery.fork(words, environment, descriptors=descriptors, errors=errors)
            return pid, lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    child = subprocess.Popen(  # noqa: S603  # our own program
        words,
        pass_fds=descriptors,
        stdin=subprocess.DEVNULL,
        stderr=errors,
        env=dict(environment),
    )
    return child.pid, child.wait


def wait_ready(ready: int) -> bool:
    """Return True when the program is ready, False when it has exited or closed the pipe; closes `ready`."""
    try:
        _wait_readable(ready)
        return os.read(ready, 1) == READY
    finally:
        os.close(ready)


def _wait_readable(descriptor: int) -> None:
    watcher = get_hub().loop.io(descriptor, 1)
    try:
        get_hub().wait(watcher)
    finally:
        watcher.close()


def _ending(status: int) -> str:
    if status >= 0:
        return f"exited {status}"
    try:
        return f"killed by {signal.Signals(-status).name}"
    except ValueError:
        return f"killed by signal {-status}"
