"""What every kind of tracked thing has in common: it looks when asked, says what it saw, and waits.

A look blocks its greenlet only, and for about the track's timeout at most.
"""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look saw. `value` is the number in a file, 0 for other kinds; `detail` is for operators."""

    up: bool
    detail: str
    value: int = 0


class Unseen(Exception):  # noqa: N818  # a state of this machine, not a mistake
    """This machine could not even look, out of descriptors say: nothing is known of what is tracked."""


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
