"""Tracks the exit status of a script, as keepalived's track_script does: 0 is up."""

from collections.abc import Sequence
from pathlib import Path

import gevent

from appliance.net.scripts.account import Account, UnknownUserError, account
from appliance.net.scripts.command import Command
from appliance.net.tracking.track_check import LookResult, TrackUnknown


class ScriptTrack:
    """The check of a script: one run at a time. What a run leaves in the background is killed with it."""

    def __init__(
        self, words: Sequence[str], *, user: str | None, timeout: float, runtime: Path | None = None
    ) -> None:
        self._words = tuple(words)
        self._user = user
        self._timeout = timeout
        self._runtime = runtime
        self._account: Account | None = None
        self._running: Command | None = None
        # What looks for HAProxy fails for ever where we are in its place, and nobody would know why.
        named = any("haproxy" in each.lower() for each in words)
        self._hint = "; it names HAProxy, and `program` asks for our proxy" if named else ""

    def look(self) -> LookResult:
        """Run the script and return the result; raises TrackUnknown."""
        last = self._running
        if last is not None and not last.ended.wait(self._timeout):
            return LookResult(up=False, detail=f"process {last.pid} of an earlier run cannot be killed")
        try:
            who = self._account = self._account or account(self._user, timeout=self._timeout)
            self._running = Command(self._words, who, sweep=True, runtime=self._runtime)
        except UnknownUserError as error:
            return LookResult(up=False, detail=str(error))
        except OSError as error:
            raise TrackUnknown(f"no process can be started: {error.strerror}") from error
        ending = self._running.wait(self._timeout)
        return LookResult(up=ending.passed, detail=ending.detail + ("" if ending.passed else self._hint))

    def wait(self, seconds: float) -> None:
        """Wait so many seconds: nothing reports a change before."""
        gevent.sleep(seconds)

    def close(self) -> None:
        """Kill what runs."""
        if self._running is not None:
            self._running.kill()
