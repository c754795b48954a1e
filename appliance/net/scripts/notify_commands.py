"""Notify commands (keepalived's `notify`): in order per virtual router, routers in parallel.

In order, because a script for BACKUP that overtakes the one for MASTER leaves the wrong state. Background
processes of a command survive it; they need their own output.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

import gevent

from appliance.net.scripts.account import UnknownUserError, account
from appliance.net.scripts.command import Command
from appliance.wire.lines.tracker_lines import CommandEnded, RunCommand

MOST_WAITING: Final = 64
"""Most queued commands of one router; beyond that the oldest is dropped, as its state is most outdated."""

_USER_TIMEOUT: Final = 5.0


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
