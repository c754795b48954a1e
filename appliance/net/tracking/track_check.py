"""What the checks of all kinds of tracks have in common: they look, return a result, and wait.

A look blocks only its greenlet, for about the track's timeout at most.
"""

import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final

import gevent

_STALLED: Final = 0.1
"""Seconds by which a timeout is late only when the whole process was not running."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookResult:
    """The result of one look. `value` is the number in a file, else 0; `detail` is for operators."""

    up: bool
    detail: str
    value: int = 0


class TrackUnknown(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """This machine could not look, out of descriptors say: the state of the track stays as it was."""


def raise_if_stalled(started: float, timeout: float) -> None:
    """Raise TrackUnknown where this process was not running when the timeout was up.

    The answer may have come meanwhile, and a busy machine must not give up its addresses for that.
    """
    if time.monotonic() - started > timeout + _STALLED:
        raise TrackUnknown("the tracker was not running for a while")


class TrackCheck(ABC):
    """The check of one track. `close` may be called at any moment by another greenlet, and ends a look."""

    @abstractmethod
    def look(self) -> LookResult:
        """Look now, and return the result; raises TrackUnknown."""

    def wait(self, seconds: float) -> None:
        """Return after so many seconds, or before when a look may have another result."""
        gevent.sleep(seconds)

    def close(self) -> None:
        """Free everything; processes of the check are killed. Mostly nothing is kept."""
        return
