"""Parts of supervisord in the form in which the appliance uses them: log, poll, pipes.

A signal ends supervisord's poll at once. Programs write to our standard output directly and to standard error
through a pipe, and have only the capabilities that they use. supervisord logs in the form of the appliance's
programs.
"""

import contextlib
import os
import signal
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NoReturn

from structlog.typing import FilteringBoundLogger
from supervisor.options import ServerOptions, decode_wait_status
from supervisor.poller import PollPoller

from appliance.net.privileges import capabilities
from appliance.net.process import python
from appliance.net.starting import forked_program
from appliance.supervisor.program_forks import ProgramForks

# The first two are events as well; the third is about our socket, which only its owner can open.
_UNSAID: Final = ("exited: ", "stopped: ", "Server 'unix_http_server' running without")
_VRRP: Final = "appliance.programs.vrrp"
_OWN_SETTINGS: Final = "SUPERVISOR_"  # variables in which supervisord gives a program its name
_OBEYED_LATE: Final = (signal.SIGTERM, signal.SIGINT)

EXIT_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGUSR1)
"""The signals that end everything; USR1 is the soft stop."""

_RESTLESS: Final = 0.1  # longest poll in seconds while a program is starting or stopping


class SupervisorLog:
    """supervisord's logger, as far as supervisord uses one. Messages that the events repeat go to debug."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        self._log = log

    def critical(self, message: str, **_: object) -> None:
        """Log an error that needs the operator."""
        if message.startswith(_UNSAID):
            return
        self._log.error("supervisor", message=message)

    error = critical

    def warn(self, message: str, **_: object) -> None:
        """Log a warning."""
        if message.startswith(_UNSAID):
            return
        self._log.warning("supervisor", message=message)

    def info(self, message: str, **_: object) -> None:
        """Log for debugging: the events have what operators need."""
        self._log.debug("supervisor", message=message)

    def debug(self, message: str, **_: object) -> None:
        """Drop messages for supervisord's developers only."""

    trace = blather = debug

    def close(self) -> None:
        """Do nothing: standard output stays open."""

    reopen = close


class Wakeup:
    """The end of a pipe that every signal writes to, in supervisord's socket map: a signal ends its poll.

    Python calls poll(2) again after a signal whose handler raises nothing (PEP 475). Without this pipe
    supervisord would handle the signals, and its dead children, only when the poll ends: a second later.
    """

    def __init__(self) -> None:
        self.descriptor, write = os.pipe()
        for end in (self.descriptor, write):
            os.set_blocking(end, False)
        signal.set_wakeup_fd(write, warn_on_full_buffer=False)

    def readable(self) -> bool:
        """Return True: supervisord polls it for input."""
        return True

    def writable(self) -> bool:
        """Return False: nothing is ever written here."""
        return False

    def handle_read_event(self) -> None:
        """Empty the pipe; supervisord's handlers have noted which signals arrived."""
        with contextlib.suppress(BlockingIOError):
            os.read(self.descriptor, 4096)

    def handle_error(self) -> None:
        """Do nothing: nothing here can fail."""


class Poller(PollPoller):  # type: ignore[misc]  # supervisor has no types
    """supervisord's poller, which wakes up more often while a program is starting or stopping."""

    unsettled: Callable[[], bool]

    def poll(self, timeout: float) -> tuple[list[int], list[int]]:
        """Return the descriptors that are readable and writable; `timeout` is seconds."""
        ready: tuple[list[int], list[int]] = super().poll(
            min(timeout, _RESTLESS) if self.unsettled() else timeout
        )
        return ready


class Options(ServerOptions):  # type: ignore[misc]  # supervisor has no types
    """supervisord's options: our logger, and programs that write to our standard output directly."""

    def __init__(self, log: FilteringBoundLogger) -> None:
        super().__init__()
        self._log = log
        self.poller = Poller(self)
        self.ended = ""
        self.forks: ProgramForks | None = None
        self.others: dict[int, Callable[[str], None]] = {}
        """Callbacks by process id, for children that are not programs: called with how the child ended."""

    def make_logger(self) -> None:
        """Log as the appliance's programs do."""
        self.logger = SupervisorLog(self._log)

    def cleanup_fds(self) -> None:
        """Do nothing: after `supervisorctl reload` the lock on the runtime directory must still be held."""

    def setsignals(self) -> None:
        """Handle signals from now on, also those pending since the start."""
        super().setsignals()
        # The original installs no handler for it, so it would end supervisord at once (signal(7)).
        signal.signal(signal.SIGUSR1, self.signal_receiver.receive)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, EXIT_SIGNALS)

    def fork(self) -> int:
        """Fork a child that signals can end: with supervisord's handlers they would be lost before the exec.

        Signals are blocked until `execve`.
        """
        # Between fork and exec the child has supervisord's handlers, which only note a signal: it would be
        # lost with the exec. So signals are blocked until the child has the default actions.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, EXIT_SIGNALS)
        child = os.fork()
        if child == 0:
            for number in EXIT_SIGNALS:
                signal.signal(number, signal.SIG_DFL)
            signal.signal(signal.SIGUSR2, signal.SIG_IGN)  # ends no program, even before it handles it
        else:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return child

    def execve(self, filename: str, argv: Sequence[str], env: Mapping[str, str]) -> NoReturn:
        """Become a program, with those of our capabilities for it that it uses.

        It gets none if it is to run under another name than its own, or in another environment than ours:
        there PYTHONPATH and LD_PRELOAD would choose what runs.

        For `vrrp` two of the signals stay blocked until its loop serves: if it exited while still importing
        its modules, an address that a crash has left on the interface would stay there, advertised by no
        router.
        """
        late = _OBEYED_LATE if python.module_of(argv) == _VRRP else ()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, set(EXIT_SIGNALS) - set(late))
        ours = starts_as_ours(filename, argv, env)
        capabilities.grant(capabilities.used_by(argv) if ours else ())
        if ours and self.forks is not None and self.forks.runs(argv):
            forked_program.become(argv, env)
        os.execve(filename, list(argv), env)  # noqa: S606  # no shell is the point

    def make_pipes(self, stderr: bool = True) -> dict[str, int | None]:  # noqa: ARG002, FBT001, FBT002  # supervisor's signature
        """Return pipes for standard input and error, and a copy of our output for the program's own."""
        pipes: dict[str, int | None] = super().make_pipes(True)  # noqa: FBT003  # supervisor's signature
        for end in ("stdout", "child_stdout"):
            self.close_fd(pipes[end])
        return {**pipes, "stdout": None, "child_stdout": os.dup(1)}

    def waitpid(self) -> tuple[int | None, int | None]:
        """Reap one child, and remember how it ended for the event that follows."""
        pid, status = super().waitpid()
        if pid:
            self.ended = decode_wait_status(status)[1]
            if on_end := self.others.pop(pid, None):
                on_end(self.ended)
        return pid, status


def starts_as_ours(filename: str, argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Return whether the interpreter runs under its own name, and in our environment."""
    given = {name: value for name, value in env.items() if not name.startswith(_OWN_SETTINGS)}
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(_OWN_SETTINGS)}
    return filename == argv[0] and given == inherited
