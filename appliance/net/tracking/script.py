"""Tracks a script: its exit status is the result."""

from collections.abc import Sequence
from pathlib import Path

from appliance.net.scripts.account import Account, UnknownUserError, account
from appliance.net.scripts.command import Command
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown


class ScriptTrack(TrackCheck):
    """The check of a script: one run at a time. Background processes of a run are killed with it."""

    def __init__(
        self, words: Sequence[str], *, user: str | None, timeout: float, runtime: Path | None = None
    ) -> None:
        self._words = tuple(words)
        self._user = user
        self._timeout = timeout
        self._runtime = runtime
        self._account: Account | None = None
        self._running: Command | None = None
        # A check for HAProxy always fails where we replace it, for no obvious reason.
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

    def close(self) -> None:
        """Kill what runs."""
        if self._running is not None:
            self._running.kill()
