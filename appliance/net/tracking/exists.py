"""Tracks whether a path exists, as `[ -e PATH ]` in a check script of keepalived does.

It may be of any kind; a link whose target is missing does not exist. A thread checks it: if the file system
hangs, the track is down.
"""

import os
from typing import Final

from appliance.net.tracking.thread_answer import ThreadAnswer
from appliance.net.tracking.track_check import LookResult, TrackCheck


class ExistsTrack(TrackCheck):
    """The check of a path."""

    def __init__(self, path: str, *, timeout: float) -> None:
        self._path = path
        self._answer = ThreadAnswer(_objection, path, timeout=timeout)

    def look(self) -> LookResult:
        """Check the path, and return the result; raises TrackUnknown."""
        objection = self._answer.get()
        if objection is None:
            return LookResult(up=False, detail=f"{self._path}: no answer within {self._answer.timeout:g} s")
        return LookResult(up=not objection, detail=f"{self._path}: {objection or 'exists'}")


class OnlyWhileExists(TrackCheck):
    """Another check that runs and counts only while a path exists."""

    def __init__(self, path: str, check: TrackCheck, *, timeout: float) -> None:
        self._exists: Final = ExistsTrack(path, timeout=timeout)
        self._check = check

    def look(self) -> LookResult:
        """Check the path, then run the other check; raises TrackUnknown."""
        found = self._exists.look()
        return self._check.look() if found.up else found

    def wait(self, seconds: float) -> None:
        """Wait as the other check does."""
        self._check.wait(seconds)

    def close(self) -> None:
        """Free everything."""
        self._check.close()


def _objection(path: str) -> str:
    """Return why a path does not exist, "" if it does: gevent would print an exception."""
    try:
        os.stat(path)  # noqa: PTH116  # by name: a Path says ValueError of one with a zero byte only later
    except (OSError, ValueError) as error:
        return error.strerror or str(error) if isinstance(error, OSError) else str(error)
    return ""
