"""What the checks of all tracks share; one blocks only its greenlet, for about the track's timeout."""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import gevent

_STALLED: Final = 0.1
"""Seconds by which a timeout is late only if the whole process was not running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookResult:
    """The result of one check. `value` is the number in a file, else 0; `detail` is for operators."""

    up: bool
    detail: str
    value: int = 0


class TrackUnknown(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """This machine could not check, for example without descriptors: the state of the track stays."""


def raise_if_stalled(started: float, timeout: float) -> None:
    """Raise TrackUnknown if this process was not running when the timeout was up.

    The answer may have come meanwhile, and a busy machine must not give up its addresses for that.
    """
    if time.monotonic() - started > timeout + _STALLED:
        raise TrackUnknown("the tracker was not running for a while")


class TrackCheck(ABC):
    """The check of one track. Another greenlet may call `close` at any moment, which ends a running check."""

    @abstractmethod
    def look(self) -> LookResult:
        """Check now, and return the result; raises TrackUnknown."""

    def wait(self, seconds: float) -> None:
        """Return after this many seconds, or earlier if the result may have changed."""
        gevent.sleep(seconds)

    def close(self) -> None:
        """Free everything; processes of the check are killed. Most checks keep nothing."""
        return
