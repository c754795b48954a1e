"""The hand-over of an active: it sends priority 0, and holds the addresses until a successor advertises.

RFC 9568 section 6.4.3 (Shutdown) sends priority 0 and drops the addresses at once. Then no router has them
for the successor's Skew_Time, up to a whole interval. Here the addresses stay that long, at most for
`hand_over` seconds (`election_messages.ElectionSettings`).
"""

from enum import Enum
from typing import Final

LINGER: Final = 0.03
"""Seconds that the addresses stay after the successor advertised.

keepalived sends its first advertisement before it adds the addresses.
"""


class SuccessorsHeard(Enum):
    """Whether all members of a sync group that hand over have successors that advertise."""

    PARTIAL = "partial"
    COMPLETE = "complete"


class HandOver:
    """The timers of one hand-over that begins at `now` and takes at most `timeout` seconds.

    `successor` is its address. Priority 0 is repeated once, at half time, in case the packet was lost; not
    more often, as each one restarts the successor's Skew_Time (RFC 9568 section 6.4.2).
    """

    __slots__ = ("_end", "_release", "_repeat", "successor")

    def __init__(self, *, now: float, timeout: float) -> None:
        self.successor: str | None = None
        self._repeat: float | None = now + timeout / 2
        self._end = now + timeout
        self._release: float | None = None

    @property
    def may_release(self) -> bool:
        """Whether a successor has advertised, so that the addresses may be removed at `deadline`."""
        return self._release is not None

    @property
    def deadline(self) -> float:
        """When to repeat priority 0, to release the addresses, or to give up."""
        if self._release is not None:
            return self._release
        return self._end if self._repeat is None else self._repeat

    def successor_heard(self, successor: str, *, now: float) -> None:
        """Store which router has taken over; further advertisements change nothing."""
        if self.successor is None:
            self.successor = successor
            self._repeat = None
            self._release = now + LINGER

    def successor_left(self) -> None:
        """Forget the successor, which has sent priority 0 as well, and wait for another one."""
        self.successor = None
        self._release = None

    def follow_group(self, successors: SuccessorsHeard, *, now: float) -> None:
        """Keep the addresses until all members of the sync group have successors; then release them soon."""
        if successors is SuccessorsHeard.PARTIAL:
            self._release = None
        elif self._release is None:
            self._release = now + LINGER

    def repeats(self, now: float) -> bool:
        """Return whether to send priority 0 again: True only once, and not after a successor advertised."""
        if self.may_release or self._repeat is None or now >= self._end:
            return False
        self._repeat = None
        return True
