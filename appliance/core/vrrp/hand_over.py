"""The hand-over of an active: it sends priority 0, and holds the addresses until a successor is heard.

RFC 9568 section 6.4.3 (Shutdown) sends priority 0 and drops the addresses at once. Then nobody has them for
the successor's Skew_Time, up to a whole interval. Here the addresses stay that long, at most for `hand_over`
seconds (`election_messages.ElectionSettings`).
"""

from enum import Enum
from typing import Final

LINGER: Final = 0.03
"""Seconds that the addresses stay after the successor was heard.

keepalived sends its first advertisement before it adds the addresses.
"""


class SuccessorsHeard(Enum):
    """Whether all members of a sync group that hand over have heard their successors."""

    PARTIAL = "partial"
    COMPLETE = "complete"


class HandOver:
    """The timers of one hand-over that begins at `now` and takes `timeout` seconds at most.

    `successor` is the address of who was heard. Priority 0 is repeated once, at half time, as packets get
    lost; not more often, as each one starts the successor's Skew_Time anew (RFC 9568 section 6.4.2).
    """

    __slots__ = ("_end", "_release", "_repeat", "successor")

    def __init__(self, *, now: float, timeout: float) -> None:
        self.successor: str | None = None
        self._repeat: float | None = now + timeout / 2
        self._end = now + timeout
        self._release: float | None = None

    @property
    def may_release(self) -> bool:
        """Whether a successor was heard, so that the addresses may be removed at `deadline`."""
        return self._release is not None

    @property
    def deadline(self) -> float:
        """When to repeat priority 0, to release the addresses, or to give up."""
        if self._release is not None:
            return self._release
        return self._end if self._repeat is None else self._repeat

    def successor_heard(self, successor: str, *, now: float) -> None:
        """Store who has taken over; further advertisements change nothing."""
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
        """Return whether to send priority 0 again; True only once, and not after a successor was heard."""
        if self.may_release or self._repeat is None or now >= self._end:
            return False
        self._repeat = None
        return True
