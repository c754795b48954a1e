"""Tracks a file: the number in it, as keepalived's track_file does, or whether a path exists."""

import os
import re
import stat
import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import gevent
from gevent.event import AsyncResult

from appliance.net.loop import thread_pool
from appliance.net.tracking.track_check import LookResult, TrackCheck, TrackUnknown, raise_if_stalled

_Found = TypeVar("_Found")

_LONGEST: Final = 64
_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,10}")
_SHOWN: Final = 24


class ThreadAnswer(Generic[_Found]):
    """Asks repeatedly; if a question hangs, the next `get` waits for the same one."""

    def __init__(self, ask: Callable[[str], _Found], path: str, *, timeout: float) -> None:
        self.timeout: Final = timeout
        self._ask = ask
        self._path = path
        self._asked: AsyncResult | None = None

    def get(self) -> _Found | None:
        """Return the answer, None without one within the time-out; raises TrackUnknown."""
        started = time.monotonic()
        try:
            asked = self._asked = self._asked or thread_pool.begin(self._ask, self._path)
        except OSError as error:
            raise TrackUnknown(f"it cannot be read: {error.strerror}") from error
        try:
            found: _Found = asked.get(timeout=self.timeout)
        except gevent.Timeout:
            raise_if_stalled(started, self.timeout)
            return None
        finally:
            if asked.ready():
                self._asked = None
        return found


class FileTrack(TrackCheck):
    """The check of the number in a file, as keepalived's track_file does it.

    An empty or missing file is 0. Without a weight any number but 0 is a failure; with one the track is
    always up, and the number is the change of the priority. The file is read in a thread: if the file system
    hangs, the track is down.
    """

    def __init__(self, path: str, *, weighted: bool, timeout: float) -> None:
        self._weighted = weighted
        self._content = ThreadAnswer(_read, path, timeout=timeout)

    def look(self) -> LookResult:
        """Read the file and return the result; raises TrackUnknown."""
        found = self._content.get()
        if found is None:
            return LookResult(up=False, detail=f"not read within {self._content.timeout:g} s")
        if isinstance(found, OSError):
            return LookResult(up=False, detail=f"cannot be read: {found.strerror}")
        return self._judge(found.strip())

    def _judge(self, text: bytes) -> LookResult:
        if not text:
            return LookResult(up=True, detail="no number, which is 0")
        if not _NUMBER.fullmatch(text):
            return LookResult(up=False, detail=f"not a number: {text[:_SHOWN].decode(errors='replace')!r}")
        value = int(text)
        return LookResult(up=self._weighted or value == 0, detail=f"the number is {value}", value=value)


def _read(path: str) -> bytes | OSError:
    """Return the file's text, b"" without a file, or the error: gevent would print an exception."""
    try:
        return _text(path)
    except (FileNotFoundError, NotADirectoryError):
        return b""
    except OSError as error:
        return error


def _text(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(0, "not a regular file")
        return os.read(descriptor, _LONGEST)
    finally:
        os.close(descriptor)


class ExistsTrack(TrackCheck):
    """The check whether a path exists, as `[ -e PATH ]` in a check script of keepalived does it.

    It may be of any kind; a link whose target is missing does not exist. A thread checks it: if the file
    system hangs, the track is down.
    """

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
