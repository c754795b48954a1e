"""Tracks a script: its exit status is the result."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from appliance.net.scripts.account import Account, UnknownUserError, account
from appliance.net.scripts.command import Command
from appliance.net.scripts.haproxy_scripts import runs_haproxys_script
from appliance.net.tracking.file import ThreadAnswer
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown

_HINT: Final = "; it names HAProxy, and `program` asks for our proxy"


class ScriptTrack(TrackCheck):
    """The check of a script: one run at a time. Background processes of a run are killed with it.

    Where it begins to fail, its file is read: the result of a check for HAProxy says that it is one.
    """

    def __init__(
        self, words: Sequence[str], *, user: str | None, timeout: float, runtime: Path | None = None
    ) -> None:
        self._words = tuple(words)
        self._user = user
        self._timeout = timeout
        self._runtime = runtime
        self._account: Account | None = None
        self._running: Command | None = None
        self._hint: str | None = None
        # In a thread: the file system of the script may hang.
        self._named = ThreadAnswer(lambda _: runs_haproxys_script(words), words[0], timeout=timeout)

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
        if ending.passed:
            self._hint = None
            return LookResult(up=True, detail=ending.detail)
        if self._hint is None:
            self._hint = self._found_hint()
        return LookResult(up=False, detail=ending.detail + self._hint)

    def _found_hint(self) -> str:
        """Return a hint if the script looks for HAProxy, else nothing."""
        with suppress(TrackUnknown):
            if self._named.get():
                return _HINT
        return ""

    def close(self) -> None:
        """Kill what runs."""
        if self._running is not None:
            self._running.kill()
