"""Tracks what a script says by its exit status: 0 is up."""

from collections.abc import Sequence
from pathlib import Path

import gevent

from appliance.net.commands.account import Account, UnknownUserError, account
from appliance.net.commands.command import Command
from appliance.net.tracking.tracked_check import Seen, Unseen


class ScriptTrack:
    """A script, at most one run of it at a time. What it leaves in the background is ended with it."""

    def __init__(
        self, words: Sequence[str], *, user: str | None, timeout: float, runtime: Path | None = None
    ) -> None:
        self._words = tuple(words)
        self._user = user
        self._timeout = timeout
        self._runtime = runtime
        self._account: Account | None = None
        self._running: Command | None = None

    def look(self) -> Seen:
        """Run the script and return what it says; raises Unseen."""
        last = self._running
        if last is not None and not last.ended.wait(self._timeout):
            return Seen(up=False, detail=f"process {last.pid} of an earlier run cannot be killed")
        try:
            who = self._account = self._account or account(self._user, timeout=self._timeout)
            self._running = Command(self._words, who, sweep=True, runtime=self._runtime)
        except UnknownUserError as error:
            return Seen(up=False, detail=str(error))
        except OSError as error:
            raise Unseen(f"no process can be started: {error.strerror}") from error
        ending = self._running.wait(self._timeout)
        return Seen(up=ending.passed, detail=ending.detail)

    def wait(self, seconds: float) -> None:
        """Wait: nothing announces itself."""
        gevent.sleep(seconds)

    def close(self) -> None:
        """Kill what runs."""
        if self._running is not None:
            self._running.kill()
