"""What every kind of tracked thing has in common: it looks when asked, says what it saw, and waits.

A look blocks its greenlet only, and for about the track's timeout at most.
"""

import time
from dataclasses import dataclass
from typing import Final, Protocol

_STALLED: Final = 0.1
"""Seconds by which a timeout is late only when the whole process was."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look saw. `value` is the number in a file, 0 for other kinds; `detail` is for operators."""

    up: bool
    detail: str
    value: int = 0


class Unseen(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """This machine could not even look, out of descriptors say: nothing is known of what is tracked."""


def judge_timeout(started: float, timeout: float) -> None:
    """Raise Unseen when it is this process that was not running when the time was up.

    The answer may have come meanwhile: a machine that was busy must not move its addresses.
    """
    if time.monotonic() - started > timeout + _STALLED:
        raise Unseen("the tracker was not running for a while")


class TrackCheck(Protocol):
    """One tracked thing. `close` may come at any moment, from another greenlet, and ends what runs."""

    def look(self) -> Seen:
        """Return what there is to see now; raises Unseen."""
        ...

    def wait(self, seconds: float) -> None:
        """Return after this time, or before it when there may be something new to see."""
        ...

    def close(self) -> None:
        """Give everything back; processes of the check are killed."""
        ...
