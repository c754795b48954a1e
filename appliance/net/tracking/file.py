"""Tracks the number in a file, as keepalived's track_file does.

An empty or missing file is 0. Without a weight any number but 0 is a failure; with one the track is always
up, and the number is the change of the priority.
"""

import os
import re
import stat
from typing import Final

from appliance.net.tracking.thread_answer import ThreadAnswer
from appliance.net.tracking.track_check import LookResult, TrackCheck

_LONGEST: Final = 64
_NUMBER: Final = re.compile(rb"[+-]?[0-9]{1,10}")
_SHOWN: Final = 24


class FileTrack(TrackCheck):
    """The check of a file. It is read in a thread: if the file system hangs, the track is down."""

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
