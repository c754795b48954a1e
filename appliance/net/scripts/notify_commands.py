"""Notify commands (keepalived's `notify`): in order per virtual router, routers in parallel.

In order, because a script for BACKUP that overtakes the one for MASTER leaves the wrong state. Background
processes of a command survive it; they need their own output.
"""

import contextlib
import os
import stat
from collections import deque
from collections.abc import Callable
from typing import Final

import gevent

from appliance.net.scripts.account import UnknownUserError, account
from appliance.net.scripts.command import Command
from appliance.wire.lines.tracker_lines import CommandEnded, RunCommand, WriteLine

_FLAGS: Final = os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC
_MODE: Final = 0o600

MOST_WAITING: Final = 64
"""Most queued commands of one router; beyond that the oldest is dropped, as its state is most outdated."""

_USER_TIMEOUT: Final = 5.0


class NotifyFifos:
    """The FIFOs by path; `report` is called with failed writes.

    A FIFO is also open for reading, so that its lines are kept for a later reader. A full one loses new
    lines: we never wait for a reader.
    """

    def __init__(self, report: Callable[[CommandEnded], None]) -> None:
        self._report = report
        self._open: dict[str, int] = {}

    def write(self, order: WriteLine) -> None:
        """Write a line into its FIFO."""
        try:
            os.write(self._descriptor(order.path), f"{order.line}\n".encode())
        except BlockingIOError:
            self._failed(order, "it has no reader, and is full")
        except OSError as error:
            self._failed(order, error.strerror or str(error))

    def close(self) -> None:
        """Close the FIFOs; unread lines are lost."""
        for descriptor in self._open.values():
            os.close(descriptor)
        self._open.clear()

    def _failed(self, order: WriteLine, why: str) -> None:
        self._report(CommandEnded(router=order.router, words=(order.path,), outcome=f"not written: {why}"))

    def _descriptor(self, path: str) -> int:
        """Return the present FIFO at a path; raises OSError."""
        known = self._open.get(path)
        if known is not None:
            if _is_at(known, path):
                return known
            os.close(self._open.pop(path))
        with contextlib.suppress(FileExistsError):
            os.mkfifo(path, _MODE)
        opened = os.open(path, _FLAGS)
        if not stat.S_ISFIFO(os.fstat(opened).st_mode):
            os.close(opened)
            raise OSError("it is no FIFO")
        self._open[path] = opened
        return opened


def _is_at(descriptor: int, path: str) -> bool:
    """Return whether a descriptor is of the file at a path, which may have been recreated."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


class NotifyCommands:
    """The queue of each router; `report` is called with the end of every command."""

    def __init__(self, report: Callable[[CommandEnded], None]) -> None:
        self._report = report
        self._waiting: dict[str, deque[RunCommand]] = {}
        self._turns: dict[str, gevent.Greenlet] = {}
        self._running: dict[str, Command] = {}

    def run(self, order: RunCommand) -> None:
        """Run a command after the earlier ones of its router."""
        waiting = self._waiting.setdefault(order.router, deque())
        if len(waiting) >= MOST_WAITING:
            self._report_end(waiting.popleft(), "not run: too many are waiting")
        waiting.append(order)
        if order.router not in self._turns:
            self._turns[order.router] = gevent.spawn(self._take_turns, order.router, waiting)

    def finish(self) -> None:
        """Wait until all ordered commands have ended; each has its timeout."""
        while self._turns:
            gevent.joinall(list(self._turns.values()))

    def close(self) -> None:
        """Kill running commands, drop queued ones."""
        for turn in self._turns.values():
            turn.kill(block=False)
        for command in self._running.values():
            command.kill()
        self._turns.clear()
        self._waiting.clear()

    def _take_turns(self, router: str, waiting: deque[RunCommand]) -> None:
        try:
            while waiting:
                order = waiting.popleft()
                self._report_end(order, self._outcome(order))
        finally:  # whatever happened, the next order is still run
            if self._turns.get(router) is gevent.getcurrent():
                del self._waiting[router], self._turns[router]

    def _outcome(self, order: RunCommand) -> str:
        try:
            who = account(order.user, timeout=min(order.timeout, _USER_TIMEOUT))
            command = self._running[order.router] = Command(order.words, who, sweep=False)
        except UnknownUserError as error:
            return f"not run: {error}"
        except OSError as error:
            return f"not run: no process can be started: {error.strerror}"
        detail = command.wait(order.timeout).detail
        del self._running[order.router]
        return detail

    def _report_end(self, order: RunCommand, outcome: str) -> None:
        self._report(CommandEnded(router=order.router, words=order.words, outcome=outcome))
